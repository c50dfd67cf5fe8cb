"""A rehearsed service that keeps running, for tests: from outside it is reached through its network namespace."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sampan.errors import MissingToolError, RehearsalError
from sampan.rehearse import machine, sandbox, verdict
from sampan.rehearse.machine import MachineFacts, Refusal
from sampan.rehearse.rehearse import skipped
from sampan.rehearse.script import HOME, Limits, Sandbox
from sampan.rehearse.steps import Line, Record, parse
from sampan.spec.plan import Plan
from sampan.spec.ports import Runner
from sampan.spec.target import TargetProfile


@dataclass(frozen=True)
class Service:
    """A service that answers at ``url`` for who has joined the network namespace of process ``pid``.

    ``home`` is the user's home folder inside, as this machine sees it; ``enter`` stands before a command line.
    """

    pid: int
    port: int
    home: Path
    cpu: str

    @property
    def url(self) -> str:
        """Where the service listens, inside its network namespace."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def enter(self) -> tuple[str, ...]:
        """The words that put a command of this machine into the service's network."""
        return ("nsenter", f"--net=/proc/{self.pid}/ns/net")


@contextmanager
def session(
    folder: Path,
    profile: TargetProfile,
    plan: Plan,
    *,
    busybox: Path,
    runner: Runner,
    work: Path,
    limits: Limits | None = None,
    look: Callable[[str], MachineFacts] = machine.look,
) -> Iterator[Service]:
    """Serve the bundle by its ``start.sh``, with nothing installed, while the block runs.

    Raises MissingToolError where this machine cannot rehearse, RehearsalError where the service does not start or,
    at the end, does not stop with exit code 0.
    """
    way = machine.decide(profile, look(profile.arch))
    if isinstance(way, Refusal):
        raise MissingToolError("rehearse.session", reason=skipped(way, profile).reason)
    box = Sandbox(
        work, folder, busybox, way, profile.arch, profile.page_size, plan.port, plan.name, limits or Limits()
    )
    with sandbox.prepared(box, "session", work) as ready:
        running = _Running(ready, runner, profile, plan)
        try:
            running.start()
            yield Service(running.pid, plan.port, ready.home / Path(HOME).name, way.cpu.name)
        finally:
            running.stop()
    running.raise_failure()


class _Running:
    """The sandbox in a thread of its own: the runner returns only when the last process has ended."""

    def __init__(self, box: Sandbox, runner: Runner, profile: TargetProfile, plan: Plan) -> None:
        self._box, self._runner, self._profile, self._plan = box, runner, profile, plan
        self._settled = threading.Event()  # the service answers, or the sandbox has ended
        self._thread = threading.Thread(target=self._run, name="rehearsal", daemon=True)
        self._record: Record | None = None
        self._error: BaseException | None = None
        self.pid = 0

    def start(self) -> None:
        """Wait until the service answers. Raises RehearsalError."""
        self._thread.start()
        self._settled.wait()
        if self._ended():
            self._thread.join()
            self.raise_failure()
            raise RehearsalError("rehearse.session", reason="-")

    def stop(self) -> None:
        """Ask the service to end and wait for it."""
        (self._box.home / Path(HOME).name / "stop").touch()
        self._thread.join()

    def raise_failure(self) -> None:
        """Raises what went wrong in the thread, else RehearsalError where the bundle failed a check."""
        if self._error:
            raise self._error
        if self._record is None:
            return
        if not self._record.made:
            raise RehearsalError("rehearse.session", reason=" | ".join(self._record.loose[-3:]))
        judged = verdict.judge(self._record, self._profile, self._plan, self._box.way, verdict.SESSION)
        if judged.failure:
            raise RehearsalError("rehearse.session", reason=judged.failure.text)

    def _ended(self) -> bool:
        return self._record is not None or self._error is not None

    def _run(self) -> None:
        limits = self._box.limits
        try:
            lines = sandbox.run(
                self._box,
                self._runner,
                timeout=limits.ready + limits.session + limits.stop + limits.http,
                on_line=self._see,
            )
            self._record = parse(lines)
        except BaseException as error:
            self._error = error  # raised in the caller's thread
        finally:
            self._settled.set()

    def _see(self, line: Line) -> None:
        word, _, rest = line.text.partition(" ")
        if word == "@pid":
            self.pid = int(rest)
        elif line.text == "@end serve ready":
            self._settled.set()
