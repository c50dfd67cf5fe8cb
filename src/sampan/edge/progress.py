"""Progress for people: bars on a terminal, plain lines elsewhere, nothing where ``--json`` wants silence."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
)

from sampan.spec.ports import Task

_PLAIN_EVERY_SECONDS = 15.0


class _BarTask:
    def __init__(self, progress: Progress, task_id: TaskID, title: str) -> None:
        self._progress, self._id, self._title = progress, task_id, title

    def advance(self, amount: float = 1) -> None:
        self._progress.advance(self._id, amount)

    def update(self, *, completed: float | None = None, total: float | None = None, note: str = "") -> None:
        self._progress.update(self._id, completed=completed, total=total, note=note)


class BarProgress:
    """See ports.Progress; for terminals."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live: Progress | None = None

    @contextmanager
    def task(self, title: str, total: float | None = None) -> Iterator[Task]:
        """Show a bar while the block runs; nested tasks share one display."""
        outermost = self._live is None
        live = self._live or self._new()
        if outermost:
            self._live = live
            live.start()
        task_id = live.add_task(title, total=total, note="")
        try:
            yield _BarTask(live, task_id, title)
        finally:
            live.remove_task(task_id)
            if outermost:
                live.stop()
                self._live = None

    def _new(self) -> Progress:
        return Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(bar_width=28),
            TaskProgressColumn(),
            TimeElapsedColumn(),
            TextColumn("[dim]{task.fields[note]}"),
            console=self._console,
            transient=True,
        )


class _LineTask:
    def __init__(self, console: Console, title: str, total: float | None) -> None:
        self._console, self._title, self._total = console, title, total
        self._done = 0.0
        self._next = time.monotonic() + _PLAIN_EVERY_SECONDS

    def advance(self, amount: float = 1) -> None:
        self.update(completed=self._done + amount)

    def update(self, *, completed: float | None = None, total: float | None = None, note: str = "") -> None:
        self._done = self._done if completed is None else completed
        self._total = self._total if total is None else total
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + _PLAIN_EVERY_SECONDS
            share = f" {100 * self._done / self._total:.0f} %" if self._total else ""
            self._console.print(f"  … {self._title}{share} {note}".rstrip(), highlight=False, markup=False)


class LineProgress:
    """See ports.Progress; for logs: one line at most every fifteen seconds."""

    def __init__(self, console: Console) -> None:
        self._console = console

    @contextmanager
    def task(self, title: str, total: float | None = None) -> Iterator[Task]:
        """Say from time to time how far the block is."""
        yield _LineTask(self._console, title, total)


class SilentProgress:
    """See ports.Progress; says nothing."""

    class _Task:
        def advance(self, amount: float = 1) -> None:
            """Nothing to show."""

        def update(self, *, completed: float | None = None, total: float | None = None, note: str = "") -> None:
            """Nothing to show."""

    @contextmanager
    def task(self, title: str, total: float | None = None) -> Iterator[Task]:  # noqa: ARG002
        """Run the block."""
        yield self._Task()
