"""What the sandbox printed, as values: lines that begin with @ are for us, the rest belongs to the step around it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

_SIGNAL_BASE = 128  # a shell gives 128 + N for a process that signal N ended
_AT_PAGESZ, _AT_HWCAP = 6, 16


@dataclass(frozen=True)
class Line:
    """One line and when it came, in seconds from the start."""

    seconds: float
    text: str


@dataclass(frozen=True)
class Step:
    """One step. ``result`` is its exit code as text, ``ready``, ``late``, or empty where it never ended."""

    name: str
    command: str
    output: tuple[str, ...]
    result: str
    seconds: float

    @property
    def ok(self) -> bool:
        """True where the step did what it should."""
        return self.result in ("0", "ready")

    @property
    def signal(self) -> int | None:
        """The signal that ended the command, None where none did."""
        code = int(self.result) if self.result.isdigit() else 0
        return code - _SIGNAL_BASE if code > _SIGNAL_BASE else None


@dataclass(frozen=True)
class Record:
    """Everything from one run. ``made``: the root folder was there; ``done``: the steps came to their end."""

    steps: tuple[Step, ...]
    made: bool
    done: bool
    loose: tuple[str, ...]  # lines outside any step: complaints while the sandbox was made

    def step(self, name: str) -> Step | None:
        """The step of that name, None where it was never begun."""
        return next((step for step in self.steps if step.name == name), None)


@dataclass(frozen=True)
class Machine:
    """What the bundle saw around it, read inside the sandbox."""

    arch: str
    user: str
    no_new_privs: bool
    interfaces: tuple[str, ...]
    page_size: int
    hwcap: int
    root: tuple[str, ...]
    devices: tuple[str, ...]


def parse(lines: Iterable[Line]) -> Record:
    """Split the output into steps."""
    steps: list[Step] = []
    loose: list[str] = []
    marks: set[str] = set()
    current: tuple[str, str, float] | None = None
    output: list[str] = []
    last = 0.0
    for line in lines:
        last = line.seconds
        word, _, rest = line.text.partition(" ")
        if word == "@begin":
            name, _, command = rest.partition(" ")
            current, output = (name, command, line.seconds), []
        elif word == "@end" and current and rest.split(" ")[0] == current[0]:
            steps.append(_step(current, output, rest.partition(" ")[2], line.seconds))
            current = None
        elif current is None and word.startswith("@"):
            marks.add(word)
        elif line.text:
            (output if current else loose).append(line.text)
    if current:
        steps.append(_step(current, output, "", last))
    return Record(tuple(steps), "@made" in marks, "@done" in marks, tuple(loose))


def _step(begun: tuple[str, str, float], output: list[str], result: str, now: float) -> Step:
    name, command, started = begun
    return Step(name, command, tuple(output), result, now - started)


def machine(step: Step) -> Machine:
    """The values of the step ``machine``; what is missing there stays empty or zero."""
    fields = dict(line.partition(" ")[::2] for line in step.output)
    vector = [int(word, 16) for word in fields.get("auxv", "").split()]
    pairs = dict(zip(vector[::2], vector[1::2], strict=False))
    status = next((line for line in step.output if line.startswith("NoNewPrivs")), "")
    user = next((line for line in step.output if line.startswith("uid=")), "")
    return Machine(
        arch=step.output[0] if step.output else "",
        user=user.split(" ")[0].removeprefix("uid="),
        no_new_privs=status.split()[-1:] == ["1"],
        interfaces=tuple(fields.get("interfaces", "").split()),
        page_size=pairs.get(_AT_PAGESZ, 0),
        hwcap=pairs.get(_AT_HWCAP, 0),
        root=tuple(fields.get("root", "").split()),
        devices=tuple(fields.get("dev", "").split()),
    )


def emulator_signal(lines: Iterable[str]) -> int | None:
    """The signal that the emulator reports for any program in the sandbox: 4 is an illegal instruction."""
    for line in lines:
        found = re.search(r"uncaught target signal (\d+)", line)
        if found:
            return int(found.group(1))
    return None
