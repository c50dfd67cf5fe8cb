"""A second service takes over from a running one: it inherits the listening socket, and answers before that stops.

The socket is never closed in between and its queue is one, so no connection is refused. The successor is the whole
program, started anew: code, engine, weights, settings and certificate may all be different.
"""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
from collections.abc import MutableMapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from sampan import i18n
from sampan.errors import ServiceError
from sampan.gateway import process_facts

VARIABLE = "SAMPAN_TAKE_OVER"  # the file descriptors of the listener and of the line to the predecessor
_READY = b"ready"
_GRACE_SECONDS = 10.0


class NotTakenOverError(Exception):
    """The successor did not come to answer; its message is for people."""


@dataclass(frozen=True)
class Inherited:
    """What a predecessor left: its listener, and the line by which it learns that it may go."""

    listener: socket.socket
    line: socket.socket

    def take_over(self) -> None:
        """Say that this process answers. A predecessor that is gone meanwhile needs no word."""
        with suppress(OSError):
            self.line.sendall(_READY)
        self.line.close()


def inherited(environ: MutableMapping[str, str]) -> Inherited | None:
    """What a predecessor left, None for a first service. Removes the variable: the engine must not see it.

    Raises ServiceError where the variable names no such descriptors.
    """
    given = environ.pop(VARIABLE, None)
    if given is None:
        return None
    try:
        listener, line = (socket.socket(fileno=int(each)) for each in given.split(","))
        listens = listener.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
    except (ValueError, OSError) as error:
        raise ServiceError("gateway.handover-variable", name=VARIABLE, value=given[:40]) from error
    if not listens:
        raise ServiceError("gateway.handover-variable", name=VARIABLE, value=given[:40])
    for each in (listener, line):
        each.set_inheritable(False)
    listener.setblocking(False)
    return Inherited(listener, line)


def check_room(needed: int | None) -> None:
    """Raises ServiceError where memory is short for a second engine beside the first."""
    free = process_facts.free_bytes()
    if needed is not None and free is not None and free < needed:
        raise ServiceError("gateway.handover-memory", needed=needed >> 20, free=free >> 20)


async def hand_over(command: Sequence[str], listener: socket.socket, seconds: float) -> int:
    """Start the successor and wait until it answers; its process id.

    Raises NotTakenOverError where it ends before, or takes longer; then nothing of it is left. Cancelled, likewise.
    """
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    with ours:
        with theirs:
            process = _start(command, listener, theirs)
        try:
            word = await asyncio.wait_for(asyncio.get_running_loop().sock_recv(ours, len(_READY)), seconds)
        except (asyncio.TimeoutError, TimeoutError) as error:
            await _end(process)
            raise NotTakenOverError(i18n.text("gateway.handover-slow", seconds=f"{seconds:g}")) from error
        except BaseException:
            await _end(process)
            raise
        if word == _READY:
            return process.pid
    code = await _end(process, asked=True)
    raise NotTakenOverError(i18n.text("gateway.handover-ended", code=code))


def _start(command: Sequence[str], listener: socket.socket, line: socket.socket) -> subprocess.Popen[bytes]:
    numbers = (listener.fileno(), line.fileno())
    environ = {**os.environ, VARIABLE: ",".join(map(str, numbers))}
    try:
        return subprocess.Popen(
            list(command), env=environ, cwd=_folder(command), stdin=subprocess.DEVNULL, pass_fds=numbers
        )
    except OSError as error:
        raise NotTakenOverError(f"{command[0]}: {error.strerror}") from error


def _folder(command: Sequence[str]) -> str | None:
    """A unit's service stands in its release, which is removed one day: its successor must not stand there, too."""
    folder = os.path.dirname(command[0])  # noqa: PTH120  (``current`` is to be followed when it starts)
    own = os.environ.get("SAMPAN_BUNDLE")
    return folder if own and os.path.realpath(own) == os.path.realpath(os.curdir) else None


async def _end(process: subprocess.Popen[bytes], *, asked: bool = False) -> int:
    """Ask it to end, where it is not ending already, then make it."""
    if not asked:
        process.terminate()
    try:
        return await asyncio.to_thread(process.wait, _GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()  # the kernel ends its engine with it
        return await asyncio.to_thread(process.wait)
