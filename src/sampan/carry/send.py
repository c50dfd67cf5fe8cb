"""Send one file to a machine behind a bad line: taken up where it broke, proved there before it gets its name."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, ExitStack
from pathlib import Path

from sampan import i18n
from sampan.carry.arrival import Arrival
from sampan.carry.compare import Comparison
from sampan.carry.here import Here, opened
from sampan.carry.pace import Pace
from sampan.carry.remote import Remote
from sampan.errors import FilesystemError, NetworkError, VerificationError
from sampan.spec.ports import Progress, Task

__all__ = ["Arrival", "Connect", "Trip"]

CARRYING_SUFFIX = ".carrying"
_PATIENCE = 8  # attempts in a row that bring nothing further
_LONGEST_WAIT = 15.0  # seconds between attempts

#: opens a fresh connection
Connect = Callable[[], AbstractAsyncContextManager[Remote]]


class Trip:
    """One file on its way. ``rate``: bytes a second at most, None for as fast as it goes."""

    def __init__(
        self, local: Path, path: str, host: str, progress: Progress, *, rate: int | None = None, wait: float = 1.0
    ) -> None:
        self._local, self._path, self._host, self._progress = local, path, host, progress
        self._rate, self._wait = rate, wait
        self._part, self._named = "", False
        self._known = 0  # bytes that were compared and are right there
        self._resumed: int | None = None
        self._sent = self._breaks = 0
        self._connected = False  # whether we were there once

    async def run(self, connect: Connect) -> Arrival:
        """Raises BadInputError, NetworkError (nothing moved for long), FilesystemError (no space there, refused,
        another file has the name), VerificationError (host key; what arrived is not what was sent).
        """
        started = time.monotonic()
        with ExitStack() as stack:
            here = stack.enter_context(opened(self._local, self._progress))
            label = i18n.text("carry.sending", file=self._local.name)
            task = stack.enter_context(self._progress.task(label, here.size))
            way, proof = await self._insist(connect, here, task)
        return Arrival(
            file=self._local.name,
            host=self._host,
            path=self._path,
            size_bytes=here.size,
            sha256=here.sha256,
            way=way,
            proof=proof,
            resumed_bytes=self._resumed or 0,
            sent_bytes=self._sent,
            breaks=self._breaks,
            seconds=round(time.monotonic() - started, 3),
        )

    async def _insist(self, connect: Connect, here: Here, task: Task) -> tuple[str, str]:
        """Connect again as long as that brings the file further. What fails before anything went is told at once."""
        idle = 0
        while True:
            before = (self._sent, self._known)
            try:
                async with connect() as remote:
                    self._connected = True
                    await self._attempt(remote, here, task)
                    return remote.way, remote.proof
            except NetworkError as error:
                if not self._connected:
                    raise
                idle = 0 if (self._sent, self._known) > before else idle + 1
                if idle >= _PATIENCE:
                    raise NetworkError("carry.gave-up", host=self._host, detail=error.message) from error
                self._breaks += 1
                task.update(note=i18n.text("carry.again", count=self._breaks))
                await asyncio.sleep(min(self._wait * 2**idle, _LONGEST_WAIT) if idle else self._wait / 4)

    async def _attempt(self, remote: Remote, here: Here, task: Task) -> None:
        await self._name(remote)
        if await remote.size(self._path) is not None:
            await self._refuse_other(remote, here)
            return
        right = await self._begin(remote, here)
        task.update(completed=right)
        if right < here.size:
            await self._write(remote, here, right, here.size, task)
        await self._prove(remote, here, task)
        await remote.rename(self._part, self._path)

    async def _begin(self, remote: Remote, here: Here) -> int:
        """Make the file there, or cut it to what is right of it; how many bytes are."""
        there = await remote.size(self._part)
        fresh = there is None
        if there is None or there > here.size:
            there = min(there or 0, here.size)
            if fresh:
                await self._need_space(remote, here.size)
            await remote.truncate(self._part, there)
        right = self._known = await Comparison(here, remote, self._part).agreed(there, self._known)
        if self._resumed is None:
            self._resumed = right
        if right < there:
            await remote.truncate(self._part, right)
        if not fresh:
            await self._need_space(remote, here.size - right)
        return right

    async def _name(self, remote: Remote) -> None:
        """A folder is where the file goes, under its own name."""
        if self._named:
            return
        if self._path.endswith("/") or await remote.is_folder(self._path):
            self._path = f"{self._path.rstrip('/')}/{self._local.name}"
        self._part, self._named = f"{self._path}{CARRYING_SUFFIX}", True

    async def _refuse_other(self, remote: Remote, here: Here) -> None:
        """The name is taken: by this very file, or by another that is not ours to replace."""
        if await remote.size(self._path) != here.size or await remote.digest(self._path) != here.sha256:
            raise FilesystemError("carry.taken", path=self._path, host=self._host)
        if self._resumed is None:
            self._resumed = here.size

    async def _need_space(self, remote: Remote, need: int) -> None:
        folder = self._path.rpartition("/")[0] or ("/" if self._path.startswith("/") else ".")
        free = await remote.free(folder)
        if free is not None and free < need:
            raise FilesystemError(
                "carry.remote-space", path=folder, host=self._host, need_mib=-(-need >> 20), free_mib=free >> 20
            )

    async def _write(self, remote: Remote, here: Here, start: int, end: int, task: Task) -> None:
        """A disk that fills up meanwhile is called by its name: sftp says no more than that it failed."""
        try:
            await remote.write(self._part, start, self._pieces(here, start, end, task))
        except FilesystemError:
            await self._need_space(remote, here.size - (await remote.size(self._part) or 0))
            raise

    async def _pieces(self, here: Here, start: int, end: int, task: Task) -> AsyncIterator[bytes]:
        pace = Pace(self._rate, end - start)
        place = start
        while place < end:
            piece = here.piece(place, min(pace.piece_bytes, end - place))
            await pace.wait(len(piece))
            yield piece
            place += len(piece)
            self._sent += len(piece)
            task.update(completed=min(place, here.size), note=pace.note())

    async def _prove(self, remote: Remote, here: Here, task: Task) -> None:
        """The whole there must have the hash of the whole here; blocks that differ are sent once more."""
        task.update(note=i18n.text("carry.proving"))
        if await remote.digest(self._part) == here.sha256:
            return
        for start, end in await Comparison(here, remote, self._part).differing():
            await self._write(remote, here, start, end, task)
        await remote.truncate(self._part, here.size)
        arrived = await remote.digest(self._part)
        if arrived != here.sha256:
            self._known = 0
            raise VerificationError(
                "carry.arrived-wrong", path=self._part, host=self._host, expected=here.sha256, found=arrived
            )
