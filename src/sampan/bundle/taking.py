"""Take a bundle out of its tar from the tar's end: the one gets shorter as the other grows, so the disk needs room
for one of them and a little.

What a killed run left says itself how far it came: all that lies behind the tar's end stands in the folder.
"""

from __future__ import annotations

import errno
import os
import tarfile
from pathlib import Path

from sampan import disk, i18n
from sampan.bundle import layout, unpack
from sampan.bundle.archive import Archive
from sampan.bundle.unpack import Member
from sampan.errors import BadInputError, FilesystemError
from sampan.spec.ports import Progress, Task

_HEAD = tarfile.BLOCKSIZE  # always stays: it names the bundle whose rest this is
_LEAST_BYTES, _MOST_BYTES, _PIECE_BYTES = 512 << 10, 64 << 20, 4 << 20
_FILE_BLOCK = 4096  # of a file system: what a small file takes at least


def step_bytes(total: int) -> int:
    """How much stands twice at most: a 256th of the tar, between half a MiB and 64."""
    return min(max(total // 256, _LEAST_BYTES), _MOST_BYTES)


def room(path: Path) -> int:
    """Bytes that a disk must have free to take what is left of the tar on the same disk: two steps of it,
    and what its files take more than the tar because a file system gives them whole blocks.
    """
    with path.open("rb") as stream:
        members = unpack.read_members(stream, path, cut=True)
        end = os.fstat(stream.fileno()).st_size
    left = (min(member.size, max(0, end - member.offset)) for member in members)
    blocks = sum(max(1, -(-size // _FILE_BLOCK)) * _FILE_BLOCK for size in left)
    return max(0, blocks - end) + 2 * step_bytes(end)


def top_of(path: Path) -> str | None:
    """The folder that the first header of a tar names, whatever is left behind it; None where it is no tar."""
    try:
        with path.open("rb") as stream:
            head = tarfile.TarInfo.frombuf(stream.read(_HEAD), "utf-8", "surrogateescape")
    except (OSError, tarfile.HeaderError):
        return None
    return head.name.split("/")[0] or None


def is_empty(path: Path) -> bool:
    """Whether all was taken. Raises OSError."""
    return path.stat().st_size <= _HEAD


def is_cut(path: Path) -> bool:
    """Whether the tar's end is missing. Raises VerificationError for what no bundle has, OSError."""
    with path.open("rb") as stream:
        try:
            unpack.read_members(stream, path)
        except BadInputError:
            return True
    return False


def refuse_shared(path: Path) -> None:
    """Raise FilesystemError where the file cannot be made shorter, or has another name that would lose it, too."""
    if path.stat().st_nlink > 1:
        raise FilesystemError("bundle.take-linked", path=str(path))
    try:
        os.close(os.open(path, os.O_RDWR | os.O_NOFOLLOW))
    except OSError as error:
        raise FilesystemError("bundle.take-refused", path=str(path), detail=error.strerror) from error


def prepare(tar: Archive, folder: Path) -> None:
    """Make ``folder`` with what judges the rest: the list, its signature, manifest and plan. Raises OSError."""
    _folders(folder)
    for name in (layout.SUMS, layout.SIGNATURE, layout.MANIFEST, layout.PLAN):
        data = tar.read(name)
        if data is not None:
            disk.write(folder / name, data)


def take(path: Path, folder: Path, progress: Progress) -> None:
    """Move what is left of the tar into ``folder``, which is nobody's but ours. Files get the modes of a release.

    Nothing goes from the tar before it is on the disk. Nothing is hashed here: the folder is to be verified. Raises
    BadInputError, VerificationError (an entry that no bundle has), OSError.
    """
    with path.open("r+b", buffering=0) as stream:
        members = unpack.read_members(stream, path, cut=True)
        top = unpack.judge(members, path)
        end = os.fstat(stream.fileno()).st_size
        with progress.task(i18n.text("bundle.taking"), end) as task:
            taker = _Taker(stream.fileno(), end, task)
            for member in reversed(members):
                taker.move(member, folder / member.path[len(top) :].lstrip("/"))
            taker.flush(_HEAD)


class _Taker:
    def __init__(self, tar: int, end: int, task: Task) -> None:
        self._tar, self._end, self._task = tar, end, task
        self._step, self._moved = step_bytes(end), 0

    def move(self, member: Member, path: Path) -> None:
        _folders(path if member.folder else path.parent)
        if not member.folder:
            self._file(member, path)
        self._done(0, member.start)

    def _file(self, member: Member, path: Path) -> None:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        try:
            os.ftruncate(handle, member.size)
            left = min(member.size, max(0, self._end - member.offset))
            while left:
                first = max(0, left - min(_PIECE_BYTES, self._step))
                self._copy(handle, member.offset + first, first, left - first)
                self._done(left - first, member.offset + first)
                left = first
            os.fchmod(handle, layout.PROGRAM_MODE if member.mode & 0o111 else layout.FILE_MODE)
            if os.geteuid() == 0:
                os.fchown(handle, 0, 0)
        finally:
            os.close(handle)

    def _copy(self, handle: int, source: int, sink: int, size: int) -> None:
        while size:
            piece = os.pread(self._tar, size, source)
            if not piece:
                raise OSError(errno.EIO, os.strerror(errno.EIO))  # it got shorter under our hands
            written = os.pwrite(handle, piece, sink)
            source, sink, size = source + written, sink + written, size - written

    def _done(self, size: int, rest: int) -> None:
        """``size`` bytes more were moved, so that the tar may end at ``rest``."""
        self._moved += size
        self._task.advance(size)
        if self._moved >= self._step:
            self.flush(rest)

    def flush(self, rest: int) -> None:
        """What was moved is on the disk before it goes from the tar."""
        os.sync()
        os.ftruncate(self._tar, max(rest, _HEAD))
        self._moved = 0


def _folders(folder: Path) -> None:
    for place in reversed([place for place in (folder, *folder.parents) if not place.is_dir()]):
        place.mkdir()
        place.chmod(layout.FOLDER_MODE)
        if os.geteuid() == 0:
            os.chown(place, 0, 0)
