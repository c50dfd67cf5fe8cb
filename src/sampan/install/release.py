"""The release folder: the bundle's files, copied and hashed in one pass."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from sampan import i18n
from sampan.errors import VerificationError
from sampan.install import disk, links, sums
from sampan.install.disk import FILE_MODE, FOLDER_MODE, PROGRAM_MODE, sync_folder
from sampan.spec.ports import Progress

_BLOCK = 1 << 20
REBUILT = ".rebuilt-"  # in the prefix, with the process that is at it
PARTIAL, GONE, DAMAGED = "partial", "gone", "damaged"
#: what was taken out of a bundle that gets shorter meanwhile, and the note that there is no other copy of it
TAKING, ONLY = "taking", "only"


@dataclass(frozen=True)
class Piece:
    """One file on its way into a release: its path in the bundle, whether it is a program, its bytes.

    ``file``: the one that may become the release's own instead of being copied.
    """

    name: str
    program: bool
    blocks: Iterable[bytes]
    file: Path | None = None


def aside(target: Path, why: str) -> Path:
    """Where a release waits that is not (or no longer) whole: a hidden neighbour."""
    return target.with_name(f".{target.name}.{why}")


def lay_folder(bundle: Path, folder: Path, progress: Progress, *, link: bool = False) -> None:
    """Copy what SHA256SUMS of ``bundle`` lists, and the list; with ``link`` give it second names where that is sound.

    Raises VerificationError, BadInputError, OSError.
    """
    listed = sums.read(bundle)
    sums.check_names(bundle, listed)
    total = sum((bundle / name).stat().st_size for name in listed if (bundle / name).is_file())
    extras = tuple(name for name in (sums.NAME, sums.SIGNATURE) if (bundle / name).is_file())
    lay(_pieces(bundle, (*listed, *extras), link), listed, folder, progress, total)


def _pieces(bundle: Path, names: Iterable[str], link: bool) -> Iterator[Piece]:
    for name in names:
        source = bundle / name
        if not source.is_file():
            raise VerificationError("install.missing-file", path=name)
        with source.open("rb") as reader:
            program = bool(os.fstat(reader.fileno()).st_mode & 0o100)
            blocks = iter(lambda reader=reader: reader.read(_BLOCK), b"")  # type: ignore[misc]
            yield Piece(name, program, blocks, source if link else None)


def lay(pieces: Iterable[Piece], listed: Mapping[str, str], folder: Path, progress: Progress, total: int) -> None:
    """Write ``pieces`` into the new ``folder`` (``total`` bytes), each that is ``listed`` held against its digest.

    Programs become 0755, all else 0644; as root all belong to root. Raises VerificationError, OSError.
    """
    _folder(folder)
    with progress.task(i18n.text("install.copying"), total) as task:
        for piece in pieces:
            size = _write(folder, piece, listed.get(piece.name))
            task.advance(size)


def _write(folder: Path, piece: Piece, digest: str | None) -> int:
    copy = folder / piece.name
    for parent in reversed(copy.relative_to(folder).parents[:-1]):
        if not (folder / parent).is_dir():
            _folder(folder / parent)
    if piece.file is not None and (linked := links.link(piece.file, copy, digest)) is not None:
        return linked
    seen, size = hashlib.sha256(), 0
    with copy.open("xb") as writer:
        for block in piece.blocks:
            seen.update(block)
            size += writer.write(block)
        os.fchmod(writer.fileno(), PROGRAM_MODE if piece.program else FILE_MODE)
        if os.geteuid() == 0:
            os.fchown(writer.fileno(), 0, 0)
    if digest is not None and seen.hexdigest() != digest:
        raise VerificationError("install.changed-file", path=piece.name)
    return size


def _folder(path: Path) -> None:
    path.mkdir()
    path.chmod(FOLDER_MODE)
    if os.geteuid() == 0:
        os.chown(path, 0, 0)


def settle(partial: Path, target: Path) -> None:
    """Give a whole copy its final name; a damaged one under that name makes room. Raises OSError."""
    os.sync()
    if target.exists():
        target.rename(aside(target, DAMAGED))
    partial.rename(target)
    sync_folder(target.parent)


def only_copy(target: Path) -> None:
    """Note that ``target`` is being taken out of its bundle: ``retire`` then keeps it aside. Raises OSError."""
    disk.write(aside(target, ONLY), b"")


def taken(releases: Path) -> tuple[Path, ...]:
    """The releases that were begun by taking them out of their bundles, and did not come to be."""
    found = releases.glob(f".*.{TAKING}") if releases.is_dir() else ()
    return tuple(sorted(releases / left.name.split(".")[1] for left in found))


def give_up(target: Path) -> None:
    """Remove what was taken for a release that did not come to be. Raises OSError."""
    shutil.rmtree(aside(target, TAKING), ignore_errors=True)
    aside(target, ONLY).unlink(missing_ok=True)


def retire(target: Path) -> None:
    """Remove a release so that a half-removed one never stands under its name. Raises OSError."""
    if aside(target, ONLY).exists() and target.exists():
        target.rename(aside(target, TAKING))
        sync_folder(target.parent)
        return
    gone = aside(target, GONE)
    shutil.rmtree(gone, ignore_errors=True)
    with suppress(FileNotFoundError):
        target.rename(gone)
        sync_folder(target.parent)
        shutil.rmtree(gone)


def runs_from(target: Path) -> bool:
    """Whether this very program lies in there: the release stays then, whole and unused, until the next ``gc``."""
    own = os.environ.get("SAMPAN_BUNDLE")
    return bool(own) and target.exists() and Path(str(own)).resolve() == target.resolve()


def sweep(releases: Path) -> None:
    """Remove what killed runs left beside the releases; a damaged one returns where nothing took its place, and what
    was taken out of its bundle stays until it is the release, or given up.
    """
    for left in sorted(releases.glob(".*")) if releases.is_dir() else ():
        number, _, why = left.name[1:].partition(".")
        if why == DAMAGED and not (releases / number).exists():
            left.rename(releases / number)
        elif why in (TAKING, ONLY) and not (releases / number).exists():
            continue
        elif why == ONLY:
            left.unlink(missing_ok=True)
        elif number.isdecimal():
            shutil.rmtree(left, ignore_errors=True)


def sweep_rebuilt(prefix: Path) -> None:
    """Remove what killed upgrades by delta left beside the releases. Raises OSError."""
    for left in prefix.glob(f"{REBUILT}*"):
        pid = left.name.removeprefix(REBUILT)
        if not Path(f"/proc/{pid}").exists():
            shutil.rmtree(left, ignore_errors=True)


def same_bundle(listed: bytes, release: Path) -> bool:
    """Whether ``release`` was installed from a bundle with this list of files and hashes. Raises OSError."""
    installed = release / sums.NAME
    return installed.is_file() and installed.read_bytes() == listed


def intact(release: Path) -> bool:
    """Whether every listed file of ``release`` is there, unchanged. Raises BadInputError, OSError."""
    return all(_digest(release / name) == digest for name, digest in sums.read(release).items())


def size(release: Path) -> int:
    """Bytes of all its files."""
    return sum(path.stat().st_size for path in release.rglob("*") if path.is_file() and not path.is_symlink())


def _digest(path: Path) -> str | None:
    if path.is_symlink() or not path.is_file():
        return None
    seen = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(_BLOCK):
            seen.update(block)
    return seen.hexdigest()
