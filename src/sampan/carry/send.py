"""Send one file to a machine behind a bad line: taken up where it broke, proved there before it gets its name."""

from __future__ import annotations

import asyncio
import hashlib
import math
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, ClassVar

from sampan import i18n
from sampan.carry.pace import Pace
from sampan.carry.remote import Remote
from sampan.errors import BadInputError, FilesystemError, NetworkError, VerificationError
from sampan.spec.ports import Progress, Task

UNIT, SUB = 4 << 20, 256 << 10  # bytes: of a block that is compared, and of the finer ones where it differs
CARRYING_SUFFIX = ".carrying"
_PATIENCE = 8  # attempts in a row that bring nothing further
_LONGEST_WAIT = 15.0  # seconds between attempts

#: opens a fresh connection
Connect = Callable[[], AbstractAsyncContextManager[Remote]]


@dataclass(frozen=True)
class Arrival:
    """Proof that a file arrived. ``sha256`` was computed of what lies there: on the target, or read back (``proof``).

    ``resumed_bytes`` were there from an earlier run; ``sent_bytes`` went over the line, what went twice counted
    twice; ``breaks`` of the connection; ``seconds`` of wall time.
    """

    SCHEMA: ClassVar[str] = "sampan/arrival/1"

    file: str
    host: str
    path: str
    size_bytes: int
    sha256: str
    way: str
    proof: str
    resumed_bytes: int
    sent_bytes: int
    breaks: int
    seconds: float
    arrived: str = ""


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
        self._size, self._sha256 = 0, ""

    async def run(self, connect: Connect) -> Arrival:
        """Raises BadInputError, NetworkError (nothing moved for long), FilesystemError (no space there, refused,
        another file has the name), VerificationError (host key; what arrived is not what was sent).
        """
        started = time.monotonic()
        with _opened(self._local) as stream:
            self._size = stream.seek(0, 2)
            self._sha256 = self._digest(stream)
            with self._progress.task(i18n.text("carry.sending", file=self._local.name), self._size) as task:
                way, proof = await self._insist(connect, stream, task)
        return Arrival(
            file=self._local.name,
            host=self._host,
            path=self._path,
            size_bytes=self._size,
            sha256=self._sha256,
            way=way,
            proof=proof,
            resumed_bytes=self._resumed or 0,
            sent_bytes=self._sent,
            breaks=self._breaks,
            seconds=round(time.monotonic() - started, 3),
        )

    def _digest(self, stream: BinaryIO) -> str:
        digest = hashlib.sha256()
        stream.seek(0)
        with self._progress.task(i18n.text("carry.hashing"), self._size) as task:
            while piece := stream.read(UNIT):
                digest.update(piece)
                task.advance(len(piece))
        return digest.hexdigest()

    async def _insist(self, connect: Connect, stream: BinaryIO, task: Task) -> tuple[str, str]:
        """Connect again as long as that brings the file further. What fails before anything went is told at once."""
        idle = 0
        while True:
            before = (self._sent, self._known)
            try:
                async with connect() as remote:
                    self._connected = True
                    await self._attempt(remote, stream, task)
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

    async def _attempt(self, remote: Remote, stream: BinaryIO, task: Task) -> None:
        await self._name(remote)
        if await remote.size(self._path) is not None:
            await self._refuse_other(remote)
            return
        there = await remote.size(self._part)
        fresh = there is None
        if there is None or there > self._size:
            there = min(there or 0, self._size)
            if fresh:
                await self._need_space(remote, 0)
            await remote.truncate(self._part, there)
        right = await self._agreed(remote, stream, there)
        if self._resumed is None:
            self._resumed = right
        if right < there:
            await remote.truncate(self._part, right)
        if not fresh:
            await self._need_space(remote, right)
        task.update(completed=right)
        if right < self._size:
            await self._write(remote, right, self._size, stream, task)
        await self._prove(remote, stream, task)
        await remote.rename(self._part, self._path)

    async def _name(self, remote: Remote) -> None:
        """A folder is where the file goes, under its own name."""
        if self._named:
            return
        if self._path.endswith("/") or await remote.is_folder(self._path):
            self._path = f"{self._path.rstrip('/')}/{self._local.name}"
        self._part, self._named = f"{self._path}{CARRYING_SUFFIX}", True

    async def _refuse_other(self, remote: Remote) -> None:
        """The name is taken: by this very file, or by another that is not ours to replace."""
        if await remote.size(self._path) != self._size or await remote.digest(self._path) != self._sha256:
            raise FilesystemError("carry.taken", path=self._path, host=self._host)
        if self._resumed is None:
            self._resumed = self._size

    async def _need_space(self, remote: Remote, there: int) -> None:
        folder = self._path.rpartition("/")[0] or ("/" if self._path.startswith("/") else ".")
        free, need = await remote.free(folder), self._size - there
        if free is not None and free < need:
            raise FilesystemError(
                "carry.remote-space", path=folder, host=self._host, need_mib=-(-need >> 20), free_mib=free >> 20
            )

    async def _write(self, remote: Remote, start: int, end: int, stream: BinaryIO, task: Task) -> None:
        """A disk that fills up meanwhile is called by its name: sftp says no more than that it failed."""
        try:
            await remote.write(self._part, start, self._pieces(stream, start, end, task))
        except FilesystemError:
            await self._need_space(remote, await remote.size(self._part) or 0)
            raise

    async def _agreed(self, remote: Remote, stream: BinaryIO, there: int) -> int:
        """How many of the ``there`` bytes are right, to the nearest SUB below the first difference."""
        first = min(self._known, there) // UNIT
        bad = await self._first_bad(remote, stream, there, UNIT, range(first, math.ceil(there / UNIT)))
        if bad is None:
            self._known = there
            return there
        inner = await self._first_bad(remote, stream, there, SUB, range(bad * UNIT // SUB, (bad + 1) * UNIT // SUB))
        self._known = bad * UNIT if inner is None else inner * SUB
        return self._known

    async def _first_bad(self, remote: Remote, stream: BinaryIO, there: int, unit: int, blocks: range) -> int | None:
        first, count = blocks.start, min(len(blocks), math.ceil(there / unit) - blocks.start)
        if count <= 0:
            return None
        found = await remote.blocks(self._part, unit, first, count)
        wanted = _blocks(stream, unit, first, count, there)
        differing = (first + place for place, digest in enumerate(wanted) if found[place : place + 1] != [digest])
        return next(differing, None)

    async def _pieces(self, stream: BinaryIO, start: int, end: int, task: Task) -> AsyncIterator[bytes]:
        pace = Pace(self._rate, end - start)
        place = start
        while place < end:
            piece = self._piece(stream, place, min(pace.piece_bytes, end - place))
            await pace.wait(len(piece))
            yield piece
            place += len(piece)
            self._sent += len(piece)
            task.update(completed=min(place, self._size), note=pace.note())

    def _piece(self, stream: BinaryIO, place: int, size: int) -> bytes:
        """Here, not there: a fault of this disk must not look like one of the line."""
        try:
            stream.seek(place)
            piece = stream.read(size)
        except OSError as error:
            raise BadInputError("file.unreadable", path=str(self._local), detail=error.strerror) from error
        if not piece:
            raise BadInputError("carry.shrunk", path=str(self._local))
        return piece

    async def _prove(self, remote: Remote, stream: BinaryIO, task: Task) -> None:
        """The whole there must have the hash of the whole here; blocks that differ are sent once more."""
        task.update(note=i18n.text("carry.proving"))
        if await remote.digest(self._part) == self._sha256:
            return
        count = math.ceil(self._size / UNIT)
        found = await remote.blocks(self._part, UNIT, 0, count)
        for number, digest in enumerate(_blocks(stream, UNIT, 0, count, self._size)):
            if found[number : number + 1] != [digest]:
                end = min((number + 1) * UNIT, self._size)
                await self._write(remote, number * UNIT, end, stream, task)
        await remote.truncate(self._part, self._size)
        arrived = await remote.digest(self._part)
        if arrived != self._sha256:
            self._known = 0
            raise VerificationError(
                "carry.arrived-wrong", path=self._part, host=self._host, expected=self._sha256, found=arrived
            )


def _opened(path: Path) -> BinaryIO:
    try:
        if not path.is_file():
            raise BadInputError("file.missing", path=str(path))
        return path.open("rb")
    except OSError as error:
        raise BadInputError("file.unreadable", path=str(path), detail=error.strerror) from error


def _blocks(stream: BinaryIO, unit: int, first: int, count: int, end: int) -> Sequence[str]:
    """SHA-256 of blocks of the file here, as far as ``end``."""
    found = []
    for number in range(first, first + count):
        stream.seek(number * unit)
        found.append(hashlib.sha256(stream.read(max(0, min(unit, end - number * unit)))).hexdigest())
    return found
