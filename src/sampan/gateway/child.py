"""One child process: it dies with us, its output is drained, its end is known at once.

One thread reads the output, one waits for the end and reports through the loop: asyncio's child watchers differ by
loop, Python version and kernel, a thread that waits does not.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import subprocess
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import IO

_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_TAIL_LINES = 40
_MAX_LINE_BYTES = 8192
_LAST_WORDS_SECONDS = 0.5  # for output that is still in the pipe at the end


class Child:
    """A running process.

    Must be started from the main thread: the kernel's parent-death signal follows the thread, not the process.
    """

    def __init__(
        self, argv: Sequence[str], environ: Mapping[str, str], on_line: Callable[[str], None] | None = None
    ) -> None:
        """Start it. Raises OSError where the executable cannot be run."""
        self._loop = asyncio.get_running_loop()
        self._ended = asyncio.Event()
        self._tail: deque[str] = deque(maxlen=_TAIL_LINES)
        self._on_line = on_line
        self._process = subprocess.Popen(
            list(argv),
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C is ours to handle: the engine must outlive requests in flight
            preexec_fn=_die_with_parent(),  # noqa: PLW1509  (one prctl, prepared before the fork)
        )
        self._reader = threading.Thread(target=self._drain, name="engine-output", daemon=True)
        self._reader.start()
        threading.Thread(target=self._await_end, name="engine-end", daemon=True).start()

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """As subprocess has it: negative is a signal; None while it runs."""
        return self._process.returncode if self._ended.is_set() else None

    @property
    def tail(self) -> tuple[str, ...]:
        """The last lines that it printed."""
        return tuple(self._tail)

    async def wait(self) -> int:
        """Wait for its end and give its return code."""
        await self._ended.wait()
        return self._process.returncode

    async def end(self, grace_seconds: float) -> None:
        """Ask it to end, then make it."""
        if self._ended.is_set():
            return
        self._signal(signal.SIGTERM)
        try:
            await asyncio.wait_for(self._ended.wait(), grace_seconds)
        except (asyncio.TimeoutError, TimeoutError):
            self._signal(signal.SIGKILL)
            await self._ended.wait()

    def kill(self) -> None:
        """SIGKILL; its end is reported as any other."""
        if not self._ended.is_set():
            self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):  # it has just ended
            os.killpg(self._process.pid, number)

    def _drain(self) -> None:
        stream = self._process.stdout
        if stream is not None:
            with stream:
                self._read_lines(stream)

    def _await_end(self) -> None:
        self._process.wait()
        self._reader.join(_LAST_WORDS_SECONDS)
        try:
            self._loop.call_soon_threadsafe(self._ended.set)
        except RuntimeError:  # the loop is closed: nobody waits any more
            return

    def _read_lines(self, stream: IO[bytes]) -> None:
        for raw in iter(lambda: stream.readline(_MAX_LINE_BYTES), b""):
            line = raw.decode("utf-8", "replace").rstrip()
            if line:
                self._tail.append(line)
                if self._on_line:
                    self._on_line(line)


def _die_with_parent() -> Callable[[], None]:
    """What the child does before exec: SIGKILL for it when we die, however we die."""
    prctl = ctypes.CDLL(None, use_errno=True).prctl  # looked up here: after the fork only the call itself is safe
    parent = os.getpid()

    def prepare() -> None:
        prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
        if os.getppid() != parent:  # we died between fork and prctl
            os._exit(1)

    return prepare


def describe_end(returncode: int) -> str:
    """``exit code 1`` or ``signal SIGILL``."""
    if returncode >= 0:
        return f"exit code {returncode}"
    try:
        return f"signal {signal.Signals(-returncode).name}"
    except ValueError:
        return f"signal {-returncode}"
