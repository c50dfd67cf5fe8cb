"""manifest.json: an in-toto Statement v1 over every file, with the facts of the build as its predicate.

Readers keep what they do not know: the statement stays the dict that was read, and this module only looks into it.
Format: https://github.com/in-toto/attestation/blob/main/spec/v1/statement.md
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sampan.bundle import layout
from sampan.errors import BadInputError

STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE = "urn:sampan:bundle:1"


@dataclass(frozen=True)
class Manifest:
    """A manifest that was read. ``statement`` is the whole of it, unknown fields included."""

    statement: Mapping[str, Any]

    @property
    def predicate(self) -> Mapping[str, Any]:
        """The facts of the build."""
        predicate: Mapping[str, Any] = self.statement["predicate"]
        return predicate

    @property
    def name(self) -> str:
        """The bundle's name."""
        return str(self.predicate["name"])

    @property
    def release(self) -> int:
        """The release number; a higher one replaces a lower one."""
        return int(self.predicate["release"])

    @property
    def rehearsed(self) -> bool:
        """Whether the bundle ran and answered in an emulated target."""
        return bool(self.predicate.get("rehearsal", {}).get("status") == "passed")

    @property
    def programs(self) -> frozenset[str]:
        """The paths that must be executable."""
        return frozenset(self.predicate.get("programs", ()))

    @property
    def digests(self) -> dict[str, str]:
        """SHA-256 in hexadecimal by path: every file but the manifest itself and SHA256SUMS."""
        return {subject["name"]: subject["digest"]["sha256"] for subject in self.statement["subject"]}


def to_bytes(statement: Mapping[str, Any]) -> bytes:
    """Equal statements give equal bytes."""
    return (json.dumps(statement, ensure_ascii=False, indent=1) + "\n").encode()


def parse(text: bytes, *, where: str) -> Manifest:
    """A manifest of ours. Raises BadInputError."""
    try:
        statement = json.loads(text)
    except ValueError as error:
        raise BadInputError("artefact.json", path=where, detail=str(error)) from error
    if not isinstance(statement, dict) or statement.get("predicateType") != PREDICATE_TYPE:
        found = statement.get("predicateType") if isinstance(statement, dict) else type(statement).__name__
        raise BadInputError("artefact.schema", path=where, expected=PREDICATE_TYPE, found=found)
    if not _whole(statement):
        raise BadInputError("artefact.fields", path=where, detail="subject, predicate.name, predicate.release")
    return Manifest(statement)


def _whole(statement: Mapping[str, Any]) -> bool:
    predicate, subject = statement.get("predicate"), statement.get("subject")
    return (
        isinstance(predicate, dict)
        and isinstance(predicate.get("name"), str)
        and type(predicate.get("release")) is int
        and isinstance(predicate.get("rehearsal", {}), dict)
        and _are_strings(predicate.get("programs", []))
        and isinstance(subject, list)
        and all(_is_subject(item) for item in subject)
    )


def _are_strings(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _is_subject(item: object) -> bool:
    if not isinstance(item, dict) or not isinstance(item.get("name"), str):
        return False
    digest = item.get("digest")
    return isinstance(digest, dict) and isinstance(digest.get("sha256"), str)


def read(folder: Path) -> Manifest:
    """The manifest of a sealed folder. Raises BadInputError."""
    path = folder / layout.MANIFEST
    try:
        return parse(path.read_bytes(), where=str(path))
    except FileNotFoundError as error:
        raise BadInputError("bundle.unsealed", path=str(folder)) from error
    except OSError as error:
        raise BadInputError("file.unreadable", path=str(path), detail=error.strerror) from error
