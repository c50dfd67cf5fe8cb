"""Make a delta: what of a bundle a machine lacks that has an older one."""

from __future__ import annotations

import tarfile
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, ClassVar

from sampan import disk, i18n
from sampan.bundle import layout, sums, units
from sampan.bundle.contents import Contents, opened
from sampan.bundle.delta import CARRIED, FACTS, PACKED, PLAIN, Delta, Sent
from sampan.bundle.pack import header
from sampan.bundle.receipt import Receipt
from sampan.bundle.streams import Quiet, compressed
from sampan.errors import BadInputError, VerificationError
from sampan.spec import codec
from sampan.spec.ports import Progress, Task

_DENSE = (
    ".gguf",
    ".safetensors",
    ".onnx",
)  # numbers without pattern: compressing them costs minutes and saves nothing
_BUFFER_BYTES = 4 << 20

#: the paths of a new bundle that the target has
Known = Callable[[Contents], frozenset[str]]


@dataclass(frozen=True)
class DeltaPackage:
    """``travels``: files in it; ``left_out`` those that the target has. Bytes: of the tar, and of the full bundle."""

    SCHEMA: ClassVar[str] = "sampan/delta-package/1"

    path: str
    name: str
    release: int
    since: str
    size_bytes: int
    full_bytes: int
    travels: int
    left_out: int


def since_receipt(receipt: Receipt) -> tuple[str, Known]:
    """What a receipt says, by its marks."""
    title = f"{receipt.name}-{receipt.release}"
    return title, lambda new: units.known(new.digests, new.sizes, receipt.marks)


def since_bundle(path: Path) -> tuple[str, Known]:
    """What an older bundle has, by its digests. Raises BadInputError, VerificationError."""
    with opened(path) as old:
        title = layout.folder_name(old.manifest.name, old.manifest.release)
        has = frozenset(old.digests.values())
    return title, lambda new: frozenset(name for name, digest in new.digests.items() if digest in has)


def make(new: Path, since: str, known: Known, out: Path, *, progress: Progress | None = None) -> DeltaPackage:
    """Write ``out/<name>-<release>.since-<old>.tar`` and its ``.sha256``; the same inputs give the same bytes.

    Raises BadInputError (not a sealed bundle; it is a delta itself), VerificationError (a file is missing),
    FilesystemError.
    """
    with opened(new) as bundle:
        if FACTS in bundle.sizes:
            raise BadInputError("delta.of-delta", path=str(new))
        top = layout.folder_name(bundle.manifest.name, bundle.manifest.release)
        final = out / f"{top}.since-{since}.tar"
        facts = _facts(bundle, since, known(bundle))
        with disk.filesystem_errors(final):
            out.mkdir(parents=True, exist_ok=True)
            total = sum(one.size for one in (*facts.packed, *facts.plain))
            if progress is None:
                _write(bundle, facts, final, top, Quiet())
            else:
                with progress.task(i18n.text("delta.packing"), total) as task:
                    _write(bundle, facts, final, top, task)
            size = final.stat().st_size
            note = final.with_name(f"{final.name}.sha256")
            disk.write(note, f"{sums.hash_file(final)}  {final.name}\n".encode())
    sent = len(facts.packed) + len(facts.plain)
    left_out = len([name for name in bundle.digests if name not in CARRIED]) - sent
    return DeltaPackage(str(final), facts.name, facts.release, since, size, facts.full_bytes, sent, left_out)


def _facts(bundle: Contents, since: str, known: frozenset[str]) -> Delta:
    absent = sorted(name for name in bundle.digests if name not in bundle.sizes)
    if absent:
        raise VerificationError("bundle.changed", path=str(bundle.path), files=", ".join(absent[:5]))
    wanted = [name for name in sorted(bundle.digests) if name not in known and name not in CARRIED]
    packed: list[Sent] = []
    plain: list[Sent] = []
    for name in sorted(wanted, key=lambda name: (name.rpartition("/")[2], name)):  # alike beside alike
        (plain if name.endswith(_DENSE) else packed).append(Sent(name, bundle.sizes[name]))
    return Delta(
        name=bundle.manifest.name,
        release=bundle.manifest.release,
        since=since,
        full_bytes=sum(bundle.sizes.values()),
        packed=tuple(packed),
        plain=tuple(plain),
    )


def _write(bundle: Contents, facts: Delta, final: Path, top: str, task: Task) -> None:
    """The compressed stream goes through a file first: a tar says each size before the bytes."""
    with tempfile.TemporaryFile(dir=final.parent) as spool, disk.new_file(final) as sink:
        for piece in compressed(_joined(bundle, facts.packed, task), sum(one.size for one in facts.packed)):
            spool.write(piece)
        size = spool.tell()
        spool.seek(0)
        sink.write(header(f"{top}/", tarfile.DIRTYPE, layout.FOLDER_MODE, 0, bundle.mtime))
        _entry(sink, bundle, f"{top}/{FACTS}", [codec.to_json(facts).encode()])
        for name in CARRIED:
            text = bundle.read(name)
            if text is not None:
                _entry(sink, bundle, f"{top}/{name}", [text])
        if facts.packed:
            _stream(sink, bundle, f"{top}/{PACKED}", size, iter(lambda: spool.read(_BUFFER_BYTES), b""))
        if facts.plain:
            total = sum(one.size for one in facts.plain)
            _stream(sink, bundle, f"{top}/{PLAIN}", total, _joined(bundle, facts.plain, task))
        sink.write(bytes(2 * tarfile.BLOCKSIZE + -(sink.tell() + 2 * tarfile.BLOCKSIZE) % tarfile.RECORDSIZE))


def _joined(bundle: Contents, sent: Sequence[Sent], task: Task) -> Iterator[bytes]:
    for one in sent:
        size = 0
        for piece in bundle.pieces(one.path):
            size += len(piece)
            task.advance(len(piece))
            yield piece
        if size != one.size:
            raise VerificationError("bundle.changed", path=str(bundle.path), files=one.path)


def _entry(sink: BinaryIO, bundle: Contents, name: str, pieces: Sequence[bytes]) -> None:
    _stream(sink, bundle, name, sum(map(len, pieces)), iter(pieces))


def _stream(sink: BinaryIO, bundle: Contents, name: str, size: int, pieces: Iterator[bytes]) -> None:
    sink.write(header(name, tarfile.REGTYPE, layout.FILE_MODE, size, bundle.mtime))
    for piece in pieces:
        sink.write(piece)
    sink.write(bytes(-size % tarfile.BLOCKSIZE))
