"""Deltas on both sides: what a target has, what travels, and the whole made of both."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from sampan import disk, i18n
from sampan.bundle import delta, delta_pack, receipt, sums, units
from sampan.bundle.contents import opened
from sampan.bundle.delta_pack import DeltaPackage
from sampan.bundle.receipt import Receipt
from sampan.errors import BadInputError, VerificationError
from sampan.flow import trusting
from sampan.spec.ports import Progress
from sampan.trust.keys import PublicKey

_MOST_TEXT_BYTES = 1 << 20  # of a receipt with all that surrounds it
_OVERRULED = ("unsigned", "unknown-signer")  # what --unsigned overrules; forgery is never overlooked


@dataclass(frozen=True)
class ReceiptText:
    """``text``: the lines to copy. ``damaged``: files that are not as they were sealed; they count as not there."""

    SCHEMA: ClassVar[str] = "sampan/receipt/1"

    name: str
    release: int
    text: str
    files: int
    damaged: tuple[str, ...]


def receipt_of(folder: Path, progress: Progress) -> ReceiptText:
    """Hash what the release holds, and say it in few words. Raises BadInputError, FilesystemError."""
    with disk.filesystem_errors(folder), opened(folder) as here:
        promised, there = here.digests, [path for path in here.digests if path in here.sizes]
        with progress.task(i18n.text("delta.hashing"), len(there)) as task:
            found = sums.hash_files(folder, there, task.advance)
        damaged = frozenset(path for path in promised if found.get(path) != promised[path])
        cut = units.units(promised, here.sizes)
        marks = frozenset(mark for mark, paths in cut.items() if damaged.isdisjoint(paths))
        name, release = here.manifest.name, here.manifest.release
        text = receipt.write(Receipt(name, release, marks))
    return ReceiptText(name, release, text, len(promised) - len(damaged), tuple(sorted(damaged)))


def make_delta(new: Path, since: str, out: Path, progress: Progress) -> DeltaPackage:
    """``since``: an older bundle's tar or folder, a file that holds a receipt, the receipt itself, ``-`` for stdin.

    Raises BadInputError, VerificationError, FilesystemError.
    """
    title, known = _since(since)
    return delta_pack.make(new, title, known, out, progress=progress)


def _since(given: str) -> tuple[str, delta_pack.Known]:
    path = Path(given)
    if given == "-":
        return delta_pack.since_receipt(receipt.read(sys.stdin.read(_MOST_TEXT_BYTES), where="-"))
    if "@" in given and "#" in given and not _exists(path):
        return delta_pack.since_receipt(receipt.read(given, where="--since"))
    if path.is_file() and path.stat().st_size <= _MOST_TEXT_BYTES and (text := _receipt_text(path)) is not None:
        return delta_pack.since_receipt(receipt.read(text, where=given))
    return delta_pack.since_bundle(path)


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # the receipt itself is too long to be a name
        return False


def _receipt_text(path: Path) -> str | None:
    """The text of a file that can be a receipt: a bundle's tar begins with its folder's name and has zeros."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise BadInputError("file.unreadable", path=str(path), detail=error.strerror) from error
    if data[:2] in {b"\xff\xfe", b"\xfe\xff"}:  # as editors on Windows save it
        return data.decode("utf-16", "replace")
    return None if b"\0" in data else data.decode("utf-8", "replace")


def apply(
    path: Path, installed: Path, out: Path, keys: Sequence[PublicKey], progress: Progress, *, unsigned: bool = False
) -> Path:
    """The full bundle's folder below ``out``. Where keys are trusted, one of them must have signed it.

    Raises VerificationError, BadInputError, FilesystemError; nothing is left then.
    """
    if not path.is_file():
        raise BadInputError("file.missing", path=str(path))
    if not delta.is_delta(path):
        raise BadInputError("delta.not-one", path=str(path))
    status = trusting.judge(path, keys, progress).status
    if status != "trusted" and not (status in _OVERRULED and (unsigned or not keys)):
        raise VerificationError("delta.untrusted", path=str(path), why=i18n.text(f"cli.verify.{status}"))
    return delta.rebuild(path, installed, out, progress=progress)
