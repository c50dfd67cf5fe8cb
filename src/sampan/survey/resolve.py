"""From what the user typed after ``--target`` to a profile."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path

from sampan.errors import UsageError
from sampan.spec import codec
from sampan.spec.target import TargetProfile
from sampan.survey import known
from sampan.survey.machine import survey_this

THIS = "this"


def resolve(target: str) -> TargetProfile:
    """A known name, ``this`` (the machine we run on), or the path of a profile file (``….json``).

    Raises UsageError ``target.unknown`` (with the closest names), BadInputError for a damaged profile file.
    """
    if target == THIS:
        return survey_this()
    if target in known.names():
        return known.load(target)
    if target.endswith(".json") or "/" in target:
        return codec.load(TargetProfile, Path(target))
    raise UsageError("target.unknown", target=target, known=", ".join(closest(target)))


def closest(target: str) -> tuple[str, ...]:
    """The known names that look most like ``target``, best first; all of them where none does."""
    names = (*known.names(), THIS)
    wanted = target.lower().replace("_", "-").replace(" ", "-")
    parts = tuple(name for name in names if len(wanted) > 2 and wanted in name)
    near = (*parts, *get_close_matches(wanted, names, n=3, cutoff=0.5))
    return tuple(dict.fromkeys(near))[:5] or names
