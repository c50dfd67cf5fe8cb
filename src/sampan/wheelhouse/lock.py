"""The hash lock of what travels, read for one target."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

from packaging.requirements import InvalidRequirement, Requirement

from sampan.errors import BadInputError

FILE = "requirements-target.txt"
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


@dataclass(frozen=True)
class Pinned:
    """One requirement, exact: ``hashes`` are the SHA-256 of every file of that version."""

    name: str
    version: str
    hashes: frozenset[str]

    @property
    def requirement(self) -> str:
        """As pip writes it."""
        return f"{self.name}=={self.version}"


@cache
def lock_text() -> str:
    """The lock that this version of sampan brings."""
    return (resources.files("sampan") / "data" / FILE).read_text(encoding="utf-8")


def pinned(text: str, environment: Mapping[str, str]) -> tuple[Pinned, ...]:
    """What the lock demands in that environment (PEP 508 markers of the target, not of this machine).

    Raises BadInputError where an entry is not exact or has no hash.
    """
    entries = []
    for entry in text.replace("\\\n", " ").splitlines():
        line = entry.partition("#")[0].strip()
        if line:
            item = _parse(line, environment)
            entries += [item] if item else []
    return tuple(entries)


def _parse(line: str, environment: Mapping[str, str]) -> Pinned | None:
    try:
        requirement = Requirement(line.partition("--hash")[0].strip())
    except InvalidRequirement as error:
        raise BadInputError(
            "wheelhouse.lock", file=FILE, line=line[:80], detail=str(error).splitlines()[0]
        ) from error
    if requirement.marker and not requirement.marker.evaluate(dict(environment)):
        return None
    exact = [item.version for item in requirement.specifier if item.operator == "=="]
    hashes = frozenset(_HASH.findall(line))
    if len(exact) != 1 or not hashes:
        raise BadInputError("wheelhouse.lock", file=FILE, line=line[:80], detail="== and --hash=sha256 are required")
    return Pinned(requirement.name, exact[0], hashes)
