"""Pack a sealed folder into one uncompressed tar: the same folder gives the same bytes, on any machine.

Plain ustar headers, which every tar reads; GNU's long-name entry and base-256 size only where ustar has no room
(GNU tar and BusyBox read both). No pax headers: BusyBox 1.35 does not heed a size that stands in one.
"""

from __future__ import annotations

import hashlib
import tarfile
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO

from sampan import disk, i18n
from sampan.bundle import layout, manifest, sums
from sampan.bundle.layout import Entry
from sampan.errors import FilesystemError, VerificationError
from sampan.spec.artefacts import Package
from sampan.spec.ports import Progress

_BLOCK, _RECORD = tarfile.BLOCKSIZE, tarfile.RECORDSIZE
_BUFFER_BYTES = 4 << 20


def pack(folder: Path, out: Path, *, progress: Progress | None = None) -> Package:
    """Write ``out/<name>-<release>.tar`` and its ``.sha256``; both appear whole or not at all.

    Raises BadInputError (not sealed), VerificationError (files were added, removed or cut since the sealing),
    FilesystemError (a file of that name is not a bundle, no space).
    """
    sealed = manifest.read(folder)
    prefix = layout.folder_name(sealed.name, sealed.release)
    final = out / f"{prefix}.tar"
    with disk.filesystem_errors(final), ExitStack() as stack:
        listing = _listing(folder)
        out.mkdir(parents=True, exist_ok=True)
        _refuse_foreign(final, prefix)
        total = sum(entry.size for entry in listing if entry.kind == "file")
        task = stack.enter_context(progress.task(i18n.text("bundle.packing"), total)) if progress else None
        note = final.with_name(f"{final.name}.sha256")
        with disk.new_file(final) as stream, _HashingWriter(stream) as sink:
            for piece in _pieces(folder, prefix, listing):
                sink.write(piece)
                if task:
                    task.advance(len(piece))
            digest, size = sink.finish()
            note.unlink(missing_ok=True)  # no moment at which a sum stands beside another tar
        disk.write(note, f"{digest}  {final.name}\n".encode())
    return Package(str(final), digest, size, sealed.name, sealed.release, sealed.rehearsed)


def _listing(folder: Path) -> tuple[Entry, ...]:
    """The folder's entries, if they are exactly the sealed ones. Contents were hashed when sealing."""
    listing = layout.entries(folder)
    path = folder / layout.SUMS
    digests = sums.parse(path.read_bytes()) if path.is_file() else None
    files = {entry.path for entry in listing if entry.kind != "folder"} - layout.UNLISTED
    if digests is None or files != {*digests} or any(e.kind not in ("file", "folder") for e in listing):
        changed = sorted(files ^ {*(digests or ())})
        raise VerificationError("bundle.changed", path=str(folder), files=", ".join(changed[:5]) or layout.SUMS)
    return listing


def _refuse_foreign(final: Path, prefix: str) -> None:
    if final.is_symlink() or (final.exists() and not _starts_with(final, prefix)):
        raise FilesystemError("bundle.foreign", path=str(final))


def _starts_with(path: Path, prefix: str) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as stream:
        return stream.read(_BLOCK).startswith(f"{prefix}/\0".encode())


def _pieces(folder: Path, prefix: str, listing: tuple[Entry, ...]) -> Iterator[bytes]:
    """The tar's bytes, in pieces of at most a few MiB."""
    epoch = int((folder / layout.SUMS).stat().st_mtime)
    yield header(f"{prefix}/", tarfile.DIRTYPE, layout.FOLDER_MODE, 0, epoch)
    for entry in listing:
        name = f"{prefix}/{entry.path}"
        if entry.kind == "folder":
            yield header(f"{name}/", tarfile.DIRTYPE, layout.FOLDER_MODE, 0, epoch)
            continue
        mode = layout.PROGRAM_MODE if entry.mode & 0o111 else layout.FILE_MODE
        yield header(name, tarfile.REGTYPE, mode, entry.size, epoch)
        yield from _content(folder / entry.path, entry.size)


def header(name: str, kind: bytes, mode: int, size: int, epoch: int) -> bytes:
    """One entry's header: plain ustar, GNU's forms only where that has no room."""
    info = tarfile.TarInfo(name)
    info.type, info.mode, info.size, info.mtime = kind, mode, size, epoch  # owner stays 0:0, without names
    try:
        return info.tobuf(tarfile.USTAR_FORMAT, "utf-8", "strict")
    except ValueError:
        return info.tobuf(tarfile.GNU_FORMAT, "utf-8", "strict")


def _content(path: Path, size: int) -> Iterator[bytes]:
    left = size
    with path.open("rb", buffering=0) as stream:
        while left:
            piece = stream.read(min(left, _BUFFER_BYTES))
            if not piece:
                raise VerificationError("bundle.changed", path=str(path.parent), files=path.name)
            left -= len(piece)
            yield piece
    yield bytes(-size % _BLOCK)


class _HashingWriter:
    """Writes and hashes side by side: hashing needs a core, writing waits for the disk."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream, self._digest, self._size = stream, hashlib.sha256(), 0
        self._pool = ThreadPoolExecutor(1)
        self._hashing: Future[None] | None = None

    def __enter__(self) -> _HashingWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown()

    def write(self, piece: bytes) -> None:
        """One piece is hashed while it is written and the next is read; never more than two in memory."""
        if self._hashing:
            self._hashing.result()
        self._hashing = self._pool.submit(self._digest.update, piece)
        self._stream.write(piece)
        self._size += len(piece)

    def finish(self) -> tuple[str, int]:
        """End the archive as tar does, two zero blocks and a full record; its SHA-256 and size in bytes."""
        self.write(bytes(2 * _BLOCK + -(self._size + 2 * _BLOCK) % _RECORD))
        self._pool.shutdown()
        return self._digest.hexdigest(), self._size
