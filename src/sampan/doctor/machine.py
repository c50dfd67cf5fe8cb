"""The doors to the machine, and what was seen through them."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from sampan.doctor.conditions import Fact
from sampan.doctor.diagnose import Text
from sampan.errors import MissingToolError
from sampan.spec.ports import Runner

#: (host, port, through the environment's proxy) -> ready, another state, or what went wrong
HealthProbe = Callable[[str, int, bool], str]

_SBIN = "/usr/sbin:/usr/bin:/sbin:/bin"  # a plain `su` leaves sbin out of PATH


@dataclass(frozen=True)
class Service:
    """What is installed, or unpacked, here."""

    prefix: Path | None = None
    unit: str | None = None
    host: str = "127.0.0.1"
    port: int | None = None


@dataclass(frozen=True)
class Machine:
    """The doors to the machine. ``root`` is laid before /proc, /sys and /run; never before the prefix."""

    runner: Runner
    health: HealthProbe
    environ: Mapping[str, str]
    root: Path = Path("/")

    def run(self, *argv: str) -> str | None:
        """What a tool prints; None where there is no such tool."""
        path = f"{self.environ.get('PATH', '')}:{_SBIN}"
        try:
            return self.runner.run(argv, env={"PATH": path, "LC_ALL": "C"}, timeout=20.0).output
        except MissingToolError:
            return None

    def read(self, path: str) -> str:
        """A file below ``root``; empty where it is missing or closed."""
        try:
            return (self.root / path.lstrip("/")).read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""


@dataclass
class Seen:
    """``texts`` are to be scanned: the unit's journal and the kernel's lines on our programs."""

    facts: dict[str, Fact] = field(default_factory=dict)
    texts: list[Text] = field(default_factory=list)

    def add(self, where: str, found: Mapping[str, object]) -> None:
        """Facts that one place told; empty ones are left out."""
        told = {name: Fact(str(value), where) for name, value in found.items() if value not in (None, "")}
        self.facts.update(told)

    def add_text(self, source: str, text: str) -> None:
        """A text to be read, unless it is empty."""
        if text.strip():
            self.texts.append(Text(source, io.BytesIO(text.encode())))
