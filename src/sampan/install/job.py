"""One installation under way: what it was handed, what it found, and how to take back what it did."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import ParamSpec

from sampan import i18n
from sampan.errors import SampanError
from sampan.install import disk
from sampan.install.facts import HostFacts
from sampan.install.machine import Machine
from sampan.install.model import (
    RECORD,
    RELEASES,
    Echo,
    HealthProbe,
    Installed,
    InstallOptions,
    SelfTest,
    unit_name,
    user_name,
)
from sampan.spec import codec
from sampan.spec.plan import Plan
from sampan.spec.ports import Progress, Runner

P = ParamSpec("P")


@dataclass(frozen=True)
class Hands:
    """The doors to processes, to the running service and to the person at the keyboard.

    ``root`` is laid before /proc, /etc and /run in tests; ``sleep`` stands between two looks at the service.
    """

    runner: Runner
    health: HealthProbe
    selftest: SelfTest
    echo: Echo
    progress: Progress
    sleep: Callable[[float], None] = time.sleep
    root: Path = Path("/")


@dataclass
class Undo:
    """What takes the steps back, last step first. One that fails does not keep the others from running."""

    echo: Echo
    steps: list[Callable[[], object]] = field(default_factory=list)

    def later(self, call: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> None:
        """Remember how to take back what is about to be done."""
        self.steps.append(partial(call, *args, **kwargs))

    def run(self) -> bool:
        """Take everything back, and say what could not be; whether all could."""
        whole = True
        while self.steps:
            try:
                self.steps.pop()()
            except (OSError, SampanError) as error:
                self.echo(i18n.text("install.undo-failed", detail=str(error)))
                whole = False
        return whole


@dataclass(frozen=True)
class Job:
    """``facts`` are as before the first step."""

    plan: Plan
    options: InstallOptions
    prefix: Path
    port: int
    facts: HostFacts
    machine: Machine
    hands: Hands
    undo: Undo

    @property
    def release(self) -> Path:
        """The folder of the release to be."""
        return self.prefix / RELEASES / str(self.plan.release)

    @property
    def unit(self) -> str:
        """The unit's name."""
        return unit_name(self.plan.name)

    @property
    def user(self) -> str:
        """The service's own user."""
        return user_name(self.plan.name)

    def say(self, key: str, **values: object) -> None:
        """One line for the step that was done."""
        self.hands.echo(i18n.text(f"install.step.{key}", **values))

    def write_record(self, record: Installed | None) -> None:
        """Write the prefix's record, or remove it. Raises OSError."""
        path = self.prefix / RECORD
        if record is None:
            path.unlink(missing_ok=True)
        else:
            disk.write(path, codec.to_json(record).encode())
