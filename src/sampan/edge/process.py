"""The one door to other processes."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

from sampan.errors import MissingToolError
from sampan.spec.ports import Completed

_GRACE_SECONDS = 5.0


class ProcessRunner:
    """Runs processes in a group of their own, so that Ctrl-C and timeouts leave no child behind."""

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
        """See ports.Runner."""
        if shutil.which(argv[0], path=(env or {}).get("PATH")) is None:
            raise MissingToolError("tool.missing", tool=argv[0])
        process = subprocess.Popen(
            list(argv),
            cwd=cwd,
            env={**os.environ, **(env or {})},
            stdin=subprocess.PIPE if stdin is not None else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        timer = threading.Timer(timeout, end_group, (process,)) if timeout else None
        try:
            if timer:
                timer.start()
            output = _pump(process, stdin, log, on_line)
            code = process.wait()
        except BaseException:
            end_group(process)
            raise
        finally:
            if timer:
                timer.cancel()
        return Completed(tuple(argv), code, output)


def _pump(
    process: subprocess.Popen[bytes],
    stdin: bytes | None,
    log: Path | None,
    on_line: Callable[[str], None] | None,
) -> str:
    if stdin is not None and process.stdin is not None:
        with suppress(BrokenPipeError):
            process.stdin.write(stdin)
        process.stdin.close()
    pieces: list[str] = []
    sink: IO[bytes] | None = log.open("ab") if log else None
    try:
        for raw in process.stdout or ():
            line = raw.decode("utf-8", "replace")
            pieces.append(line)
            if sink:
                sink.write(raw)
            if on_line:
                on_line(line.rstrip("\n"))
    finally:
        if sink:
            sink.close()
    return "".join(pieces)


def end_group(process: subprocess.Popen[bytes], grace: float = _GRACE_SECONDS) -> None:
    """End a process and all that it started: first politely, then surely."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGTERM)
    try:
        process.wait(grace)
    except subprocess.TimeoutExpired:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
