"""Join parts of which some lack, where parity parts make up for them."""

from __future__ import annotations

from pathlib import Path

from sampan import disk
from sampan.carry import parity
from sampan.carry.join import JOINING_SUFFIX, examine, join, refuse
from sampan.carry.parts import PartList
from sampan.errors import VerificationError
from sampan.spec.ports import Progress


def join_mended(
    folder: Path, listed: PartList, out: Path, progress: Progress, *, consume: bool = False
) -> tuple[Path, tuple[int, ...]]:
    """``join``; what lacks is computed from the parity parts before, where there are enough. Also the numbers of the
    parts that were. Raises as ``join`` does.
    """
    try:
        return join(folder, listed, out, progress, consume=consume), ()
    except VerificationError as error:
        made = mend(folder, listed, progress) if error.key == "carry.need" else ()
        if not made:
            raise
    return join(folder, listed, out, progress, consume=consume), made


def mend(folder: Path, listed: PartList, progress: Progress) -> tuple[int, ...]:
    """Compute what is missing or bad from the parity parts, where there are any; the numbers of those made.

    Parts that a killed run of consuming took cannot be read again: then nothing is mended. Raises VerificationError
    (more is missing than the good parity parts can give: which), FilesystemError.
    """
    if not listed.parity or (folder / f"{listed.name}{JOINING_SUFFIX}").exists():
        return ()
    missing = examine(folder, listed, progress)
    lost = tuple(sorted((*missing.absent, *missing.bad)))
    if not lost:
        return ()
    with disk.filesystem_errors(folder):
        rows = parity.good(folder, listed, progress)
        if len(rows) < len(lost):
            refuse(missing, listed, folder, "carry.need-parity", parity=len(rows), lost=len(lost))
        parity.repair(folder, listed, [number - 1 for number in lost], rows, progress)
    return lost
