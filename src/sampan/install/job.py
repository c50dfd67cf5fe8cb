"""One change of what is in force, under way: what it was handed and what it found."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sampan import i18n
from sampan.install import disk
from sampan.install.journal import Pending
from sampan.install.machine import Machine
from sampan.install.model import (
    RECORD,
    RELEASES,
    Echo,
    HealthProbe,
    Installed,
    SelfTest,
)
from sampan.spec import codec
from sampan.spec.ports import Progress, Runner


def _nobody_knows(_pid: int) -> None:
    """How much memory is free."""


@dataclass(frozen=True)
class Hands:
    """The doors to processes, to the running service and to the person at the keyboard.

    ``root`` is laid before /proc, /etc and /run in tests; ``sleep`` stands between two looks at the service.
    ``free_memory`` gives the bytes that the control group of a process could still take, None where unknown.
    """

    runner: Runner
    health: HealthProbe
    selftest: SelfTest
    echo: Echo
    progress: Progress
    sleep: Callable[[float], None] = time.sleep
    root: Path = Path("/")
    free_memory: Callable[[int], int | None] = _nobody_knows


@dataclass(frozen=True)
class Job:
    """``record`` is what will be in force, ``pending`` how it was before; ``unit`` the unit's text to be, if any.

    ``untouched``: the release's files stay as they are. ``restart``: a person wants no hand-over.
    """

    prefix: Path
    record: Installed
    pending: Pending
    unit: str | None
    untouched: bool
    machine: Machine
    hands: Hands
    health_seconds: float
    restart: bool = False

    @property
    def release(self) -> Path:
        """The folder of the release to be."""
        return self.prefix / RELEASES / str(self.record.release)

    def say(self, key: str, **values: object) -> None:
        """One line for the step that was done."""
        self.hands.echo(i18n.text(f"install.step.{key}", **values))


def write_record(prefix: Path, record: Installed) -> None:
    """Put down what is in force: the one moment at which a change is done. Raises OSError."""
    disk.write(prefix / RECORD, codec.to_json(record).encode())
