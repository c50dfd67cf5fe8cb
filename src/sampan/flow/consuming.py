"""An upgrade that consumes its tar: verified as a whole first, then the tar gets shorter as the release grows.

The release stands aside under ``.<number>.taking`` until it is whole and proved; it survives a kill, a full disk and
a failed start, and the same command goes on from there.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from sampan.bundle import taking
from sampan.bundle.archive import Archive
from sampan.errors import BadInputError, VerificationError
from sampan.install import release, sums
from sampan.install.model import RELEASES, Installed
from sampan.install.source import Source, plan_of
from sampan.spec import codec
from sampan.spec.plan import Plan
from sampan.spec.ports import Progress

Prove = Callable[[Path], None]


def rest_of(path: Path, record: Installed) -> Path | None:
    """The folder into which an earlier run took what is missing at the end of ``path``, or the release that it became
    before the tar was removed; None where nothing is missing, or nobody took it. Raises VerificationError, OSError.
    """
    name, _, number = (taking.top_of(path) or "").rpartition("-") if path.is_file() else ("", "", "")
    if name != record.name or not number.isdecimal():
        return None
    target = Path(record.prefix) / RELEASES / number
    places = (release.aside(target, release.TAKING), *((target,) if taking.is_empty(path) else ()))
    folder = next((place for place in places if (place / sums.NAME).is_file()), None)
    return folder if folder is not None and taking.is_cut(path) else None


def of_rest(path: Path, rest: Path, prove: Prove) -> Source:
    """What is left of a tar, and what was taken out of it. Raises BadInputError."""
    listed = (rest / sums.NAME).read_bytes()

    def lay(folder: Path, progress: Progress) -> None:
        taking.take(path, folder, progress)

    return _source(path, plan_of(rest), listed, prove, lay)


def of_tar(tar: Archive, prove: Prove) -> Source:
    """A whole tar, which is verified first. Raises VerificationError, BadInputError, FilesystemError (this file
    cannot be consumed).
    """
    taking.refuse_shared(tar.path)
    prove(tar.path)
    text, listed = tar.read("plan.json"), tar.read(sums.NAME)
    if text is None or listed is None:
        raise BadInputError("bundle.unsealed", path=str(tar.path))
    plan = codec.from_json(Plan, text.decode("utf-8", "replace"), where=f"{tar.path}: plan.json")

    def lay(folder: Path, progress: Progress) -> None:
        shutil.rmtree(folder, ignore_errors=True)  # of another tar, or of this one before it was carried again
        taking.prepare(tar, folder)
        release.only_copy(folder.with_name(str(plan.release)))
        taking.take(tar.path, folder, progress)

    return _source(tar.path, plan, listed, prove, lay)


def _source(path: Path, plan: Plan, listed: bytes, prove: Prove, lay: Callable[[Path, Progress], None]) -> Source:
    def prove_taken(folder: Path) -> None:
        """It was right while it was in the tar: whoever changed it since, there is no other copy."""
        try:
            prove(folder)
        except VerificationError as error:
            release.give_up(folder.with_name(str(plan.release)))
            raise VerificationError("install.taken-damaged", path=str(path), why=error.message) from error

    def room(disk: Path) -> int:
        same = path.stat().st_dev == disk.stat().st_dev
        return taking.room(path) if same else path.stat().st_size

    return Source(path, plan, listed, room, lay, prove_taken, release.TAKING, lambda: path.unlink(missing_ok=True))
