"""The script that stands in for systemd where there is none, or no root: filled in from the same facts as a unit."""

from __future__ import annotations

import shlex
from importlib import resources

from sampan.install.unit import UnitFacts


def render(facts: UnitFacts) -> str:
    """The script's text: POSIX sh."""
    template = resources.files("sampan").joinpath("data/target/service.sh").read_text(encoding="utf-8")
    filled = {
        "PREFIX": shlex.quote(str(facts.prefix)),
        "LANGUAGE": facts.language,
        "COMMAND": shlex.join(facts.words),
    }
    for key, value in filled.items():
        template = template.replace(f"@{key}@", value)
    return template
