"""A sealed bundle behind one face, whether it lies there as a folder or as a tar. Nothing is unpacked or executed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sampan.bundle import layout, manifest, sums
from sampan.bundle.archive import Archive
from sampan.bundle.manifest import Manifest
from sampan.errors import BadInputError

_BUFFER_BYTES = 4 << 20


@dataclass(frozen=True)
class Contents:
    """``sizes``: bytes by path, of every file. ``digests``: SHA-256 by path, as SHA256SUMS promises them.

    ``read`` gives a small file, None where it is not there; ``pieces`` any file's bytes, a few MiB at a time.
    """

    path: Path
    manifest: Manifest
    sizes: Mapping[str, int]
    digests: Mapping[str, str]
    mtime: int
    read: Callable[[str], bytes | None]
    pieces: Callable[[str], Iterator[bytes]]


@contextmanager
def opened(path: Path) -> Iterator[Contents]:
    """Raises BadInputError (missing, not sealed, damaged), VerificationError (an entry that no bundle has)."""
    if path.is_dir():
        yield _of_folder(path)
        return
    try:
        stream = path.open("rb")
    except FileNotFoundError as error:
        raise BadInputError("file.missing", path=str(path)) from error
    except OSError as error:
        raise BadInputError("file.unreadable", path=str(path), detail=error.strerror) from error
    with stream:
        yield _of_archive(Archive(stream, path))


def _of_folder(folder: Path) -> Contents:
    try:
        entries = [entry for entry in layout.entries(folder) if entry.kind == "file"]
        when = int((folder / layout.SUMS).stat().st_mtime) if (folder / layout.SUMS).is_file() else 0
    except OSError as error:
        raise BadInputError("file.unreadable", path=str(error.filename), detail=error.strerror) from error

    def read(name: str) -> bytes | None:
        return (folder / name).read_bytes() if (folder / name).is_file() else None

    def pieces(name: str) -> Iterator[bytes]:
        with (folder / name).open("rb", buffering=0) as stream:
            while piece := stream.read(_BUFFER_BYTES):
                yield piece

    sizes = {entry.path: entry.size for entry in entries}
    return Contents(folder, manifest.read(folder), sizes, _digests(read, folder), when, read, pieces)


def _of_archive(archive: Archive) -> Contents:
    return Contents(
        path=archive.path,
        manifest=archive.manifest(),
        sizes={name: member.size for name, member in archive.files.items()},
        digests=_digests(archive.read, archive.path),
        mtime=archive.files[layout.SUMS].mtime if layout.SUMS in archive.files else 0,
        read=archive.read,
        pieces=lambda name: archive.pieces(archive.files[name]),
    )


def _digests(read: Callable[[str], bytes | None], path: Path) -> dict[str, str]:
    text = read(layout.SUMS)
    found = sums.parse(text) if text is not None else None
    if found is None:
        raise BadInputError("bundle.unsealed", path=str(path))
    return found
