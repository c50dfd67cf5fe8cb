"""From what the user typed after ``--target`` to a profile."""

from __future__ import annotations

import re
from difflib import get_close_matches
from pathlib import Path

from sampan.errors import BadInputError, UsageError
from sampan.spec import arch, codec
from sampan.spec.target import TargetProfile
from sampan.survey import known
from sampan.survey.features import PAGE_SIZES
from sampan.survey.machine import survey_this

THIS = "this"
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]*")


def resolve(target: str) -> TargetProfile:
    """A known name, ``this`` (the machine we run on), or the path of a profile file (``….json``).

    Raises UsageError ``target.unknown`` (with the closest names), BadInputError for a damaged profile file and for a
    file of another kind (``target.no-profile``).
    """
    if target == THIS:
        return survey_this()
    if target in known.names():
        return known.load(target)
    if target.endswith(".json") or "/" in target:
        return load_file(Path(target))
    if Path(target).is_file():
        raise BadInputError("target.no-profile", path=target)
    raise UsageError("target.unknown", target=target, known=", ".join(closest(target)))


def load_file(path: Path) -> TargetProfile:
    """A profile that somebody may have written by hand. Raises BadInputError that names file and field."""
    profile = codec.load(TargetProfile, path)
    if not _NAME.fullmatch(profile.name):
        detail = f"name “{profile.name}”: [a-z0-9][a-z0-9._-]*"
        raise BadInputError("artefact.fields", path=str(path), detail=detail)
    if profile.page_size not in PAGE_SIZES:
        detail = f"page_size {profile.page_size}: {', '.join(map(str, PAGE_SIZES))}"
        raise BadInputError("artefact.fields", path=str(path), detail=detail)
    return profile


def name_of_host(host: str) -> str:
    """A profile's name for a host's name or address."""
    return re.sub(r"[^a-z0-9._-]+", "-", host.lower()).strip("._-") or "host"


def closest(target: str) -> tuple[str, ...]:
    """The known names that look most like ``target``, best first; all of them where none does."""
    names = (*known.names(), THIS)
    generic = f"generic-{arch.meant(target)}".replace("_", "-")
    if generic in names:  # an architecture's name is no machine's
        return (generic,)
    wanted = target.lower().replace("_", "-").replace(" ", "-")
    parts = tuple(name for name in names if len(wanted) > 2 and wanted in name)
    near = (*parts, *get_close_matches(wanted, names, n=3, cutoff=0.5))
    return tuple(dict.fromkeys(near))[:5] or names
