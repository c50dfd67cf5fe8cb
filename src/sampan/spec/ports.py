"""What a stage may be handed by the edge: a runner of processes, a fetcher, a store, a display of progress.

Stages know these protocols only. The real ones live in ``sampan.edge``; tests hand in small fakes that pass the
same contract tests.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True)
class Completed:
    """A process that ended. ``output`` is stdout and stderr as they came, decoded leniently."""

    argv: tuple[str, ...]
    returncode: int
    output: str


class Runner(Protocol):
    """The one door to other processes."""

    def run(
        self,
        argv: Sequence[str],
        *,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        stdin: bytes | None = None,
        log: Path | None = None,
        on_line: Callable[[str], None] | None = None,
        timeout: float | None = None,
    ) -> Completed:
        """Run to the end and give what it printed; the caller judges the return code.

        ``env`` is laid over this process's environment. ``log`` receives the whole output as it comes.
        Raises MissingToolError where argv[0] does not exist. On Ctrl-C or timeout the whole process group is
        ended before the exception leaves.
        """
        ...


class Task(Protocol):
    """One line of progress."""

    def advance(self, amount: float = 1) -> None:
        """So much more is done."""
        ...

    def update(self, *, completed: float | None = None, total: float | None = None, note: str = "") -> None:
        """Set what is known now; ``note`` is a short word on the present item."""
        ...


class Progress(Protocol):
    """A display of what takes longer than two seconds."""

    def task(self, title: str, total: float | None = None) -> AbstractContextManager[Task]:
        """Show ``title`` while the block runs; ``total`` None means that the end is not known."""
        ...


class Store(Protocol):
    """The content-addressed cache."""

    root: Path

    def get_or_make(self, stage: str, key: Mapping[str, object], make: Callable[[Path], None]) -> Path:
        """The folder that ``make`` filled for exactly this ``key``, made once.

        ``make`` gets an empty folder; only when it returns does the folder appear under its final name, so an
        interrupted run leaves nothing that looks finished. Nobody writes into it afterwards: a folder whose files
        were cut, changed, removed or added to is made again.
        """
        ...

    def find(self, stage: str, key: Mapping[str, object]) -> Path | None:
        """The folder that was made for this ``key`` earlier, None where there is none yet or it was damaged."""
        ...

    def scratch(self, stage: str, key: Mapping[str, object]) -> Path:
        """A folder that survives an interruption, for work that can be continued (a build tree)."""
        ...

    def locked(self, name: str) -> AbstractContextManager[None]:
        """Hold ``name`` against other processes while the block runs; the kernel frees it when we die."""
        ...


class Fetcher(Protocol):
    """Downloads, each pinned by its SHA-256; served from the store when it is there already."""

    def pypi(self, requirement: str, *, file_name: str, sha256: str) -> Path:
        """One file of a project on the user's package index. Raises NetworkError, VerificationError."""
        ...

    def url(self, url: str, *, sha256: str | None, size: int | None = None) -> Path:
        """One file by its address. ``sha256`` None only for signed indexes that the caller verifies."""
        ...


class WheelFetcher(Fetcher, Protocol):
    """A Fetcher that also chooses among the wheels of a project."""

    def wheel(self, requirement: str, *, tags: Sequence[str], hashes: Collection[str]) -> Path:
        """The wheel of ``name==version`` whose SHA-256 is in ``hashes`` and whose tag comes first in ``tags``.

        Raises IncompatibleError ``net.no-wheel`` where the index has the project but no such wheel, NetworkError,
        VerificationError.
        """
        ...
