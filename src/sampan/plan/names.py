"""The service's name: it becomes a folder, a systemd unit and part of a user's name."""

from __future__ import annotations

import re

from sampan.errors import UsageError

LONGEST = 48  # `sampan-NAME-RELEASE.tar` and `sampan-NAME.service` stay easy to read and to type
_FORM = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")


def check(name: str) -> str:
    """The name itself, if it is made of lower-case words ``[a-z0-9]`` joined by single hyphens.

    Raises UsageError ``plan.name`` with a name that would do.
    """
    if len(name) > LONGEST or not _FORM.fullmatch(name):
        raise UsageError("plan.name", name=name, longest=LONGEST, better=slug(name) or "service")
    return name


def default(weights_name: str, target: str) -> str:
    """A name from the model's and the target's, cut at a word's end where it is too long."""
    return slug(f"{weights_name}-{target}") or "service"


def slug(text: str) -> str:
    """Lower case, everything else a hyphen, at most LONGEST characters; may be empty."""
    words = re.findall(r"[a-z0-9]+", text.lower())
    kept = ""
    for word in words:
        longer = f"{kept}-{word}" if kept else word[:LONGEST]
        if len(longer) > LONGEST:
            break
        kept = longer
    return kept
