"""Where a release comes from: an unpacked bundle, or whatever else can lay its files down. It is read, never run."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from sampan.errors import BadInputError, UsageError
from sampan.install import links, release, sums
from sampan.install.model import RECORD, RELEASES
from sampan.spec import codec
from sampan.spec.plan import Plan
from sampan.spec.ports import Progress


def _nobody_asks(_copy: Path) -> None:
    """install.sh has checked the signature before."""


def _stays() -> None:
    """What was installed from is the administrator's."""


@dataclass(frozen=True)
class Source:
    """``where`` is for people, ``listed`` the bytes of SHA256SUMS, ``room(disk)`` the bytes that laying it down takes
    on the disk of that folder.

    ``lay(folder, progress)`` makes the new folder with all files, each held against the list or left to ``prove``.
    ``prove(folder)`` judges that copy, which nobody else can change any longer. Both raise VerificationError,
    BadInputError, OSError. ``aside``: how the folder is called while it is being made (see ``release.aside``).
    ``used()`` takes away what was installed from, where a person asked for that.
    """

    where: Path
    plan: Plan
    listed: bytes
    room: Callable[[Path], int]
    lay: Callable[[Path, Progress], None]
    prove: Callable[[Path], None] = _nobody_asks
    aside: str = release.PARTIAL
    used: Callable[[], None] = _stays


def from_folder(bundle: Path, prove: Callable[[Path], None] = _nobody_asks, *, consume: bool = False) -> Source:
    """An unpacked bundle, or an installed release. ``consume``: its files become the release's own, and it goes.

    Raises BadInputError, UsageError (an installed release is not consumed).
    """
    if consume and bundle.resolve().parent.name == RELEASES and (bundle.resolve().parents[1] / RECORD).is_file():
        raise UsageError("install.consume-installed", path=str(bundle))
    plan = plan_of(bundle)
    names = tuple(name for name in sums.read(bundle) if (bundle / name).is_file())
    return Source(
        where=bundle,
        plan=plan,
        listed=(bundle / sums.NAME).read_bytes(),
        room=partial(_room, bundle, names, consume),
        lay=partial(release.lay_folder, bundle, link=consume),
        prove=prove,
        used=partial(_remove, bundle, (*names, sums.NAME, sums.SIGNATURE)) if consume else _stays,
    )


def _room(bundle: Path, names: tuple[str, ...], consume: bool, disk: Path) -> int:
    device = disk.stat().st_dev
    copied = (name for name in names if not (consume and links.may(bundle / name, device)))
    return sum((bundle / name).stat().st_size for name in copied)


def _remove(bundle: Path, names: tuple[str, ...]) -> None:
    """The files of the bundle and its folders; what else lies there stays, and what cannot be removed."""
    folder = bundle.resolve()
    with suppress(OSError):
        for name in names:
            (folder / name).unlink(missing_ok=True)
        for place, _, _ in os.walk(folder, topdown=False):
            with suppress(OSError):  # not empty
                Path(place).rmdir()


def plan_of(bundle: Path) -> Plan:
    """The plan that travels in a bundle or release. Raises BadInputError where the folder is no bundle."""
    path = bundle / "plan.json"
    if not path.is_file():
        raise BadInputError("install.no-bundle", path=str(bundle))
    return codec.load(Plan, path)
