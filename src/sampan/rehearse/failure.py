"""Why a rehearsal failed: the cause that matters most, in one sentence."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from dataclasses import dataclass

from sampan import i18n
from sampan.rehearse.machine import Way
from sampan.rehearse.steps import Record, Step, emulator_signal
from sampan.spec.plan import Reason

_TIMEOUT_KILL = "143"  # BusyBox's timeout ends the command with SIGTERM
_LAST_WORDS = 3


@dataclass(frozen=True)
class Failure:
    """Why it failed: a key below ``rehearse.fail.`` with its values."""

    key: str
    values: tuple[tuple[str, str], ...] = ()

    @property
    def reason(self) -> Reason:
        """The catalogue's whole key with the values."""
        return Reason(f"rehearse.fail.{self.key}", self.values)

    @property
    def text(self) -> str:
        """In the language in force."""
        return i18n.text(self.reason.key, **dict(self.values))


def outcome(step: Step) -> str:
    """How a command ended, in short."""
    if step.result == "late":
        return "not ready in time"
    return f"exit code {step.result}" if step.result else "did not end"


def why(step: Step, log: Sequence[str], way: Way) -> Failure:
    """The cause of a command's end, the telling ones first. Its own words count before the log's."""
    words = (*step.output, *log)
    values = (("step", step.name), ("last", last_words(step.output or log)))
    killed_by = emulator_signal(words) or (None if step.result == _TIMEOUT_KILL else step.signal)
    if killed_by == signal.SIGILL or any("signal SIGILL" in line for line in words):
        return Failure("illegal-instruction", (("cpu", way.cpu.name), *values))
    if killed_by:
        return Failure("signal", (("signal", _signal_name(killed_by)), *values))
    if step.result in ("late", _TIMEOUT_KILL, ""):
        return Failure("late", (("seconds", f"{step.seconds:.0f}"), *values))
    return Failure("ended", (("code", step.result), *values))


def unfinished(record: Record) -> Failure:
    """The sandbox ended before its steps did."""
    last = record.steps[-1] if record.steps else None
    values = (
        (("step", last.name), ("last", last_words((*last.output, *record.loose))))
        if last
        else (("step", "-"), ("last", ""))
    )
    return Failure("unfinished", values)


def last_words(lines: Sequence[str]) -> str:
    """The error that the command printed, else its last lines."""
    kept = [line.strip() for line in lines if line.strip()]
    mark = i18n.text("cli.error")
    errors = [index for index, line in enumerate(kept) if line.startswith(mark)]
    chosen = kept[errors[-1] :] if errors else kept[-_LAST_WORDS:]
    return " | ".join(chosen)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)
