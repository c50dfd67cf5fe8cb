"""Where a release comes from: an unpacked bundle, or whatever else can lay its files down. It is read, never run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sampan.errors import BadInputError
from sampan.install import release, sums
from sampan.spec import codec
from sampan.spec.plan import Plan
from sampan.spec.ports import Progress


def _nobody_asks(_copy: Path) -> None:
    """install.sh has checked the signature before."""


@dataclass(frozen=True)
class Source:
    """``where`` is for people, ``listed`` the bytes of SHA256SUMS, ``size`` that of all files in bytes.

    ``lay(folder, progress)`` makes the new folder with all files, each held against the list. ``prove(folder)``
    judges that copy, which nobody else can change any longer. Both raise VerificationError, BadInputError, OSError.
    """

    where: Path
    plan: Plan
    listed: bytes
    size: int
    lay: Callable[[Path, Progress], None]
    prove: Callable[[Path], None] = _nobody_asks


def from_folder(bundle: Path, prove: Callable[[Path], None] = _nobody_asks) -> Source:
    """An unpacked bundle, or an installed release. Raises BadInputError."""
    plan = plan_of(bundle)
    names = sums.read(bundle)
    return Source(
        where=bundle,
        plan=plan,
        listed=(bundle / sums.NAME).read_bytes(),
        size=sum((bundle / name).stat().st_size for name in names if (bundle / name).is_file()),
        lay=lambda folder, progress: release.lay_folder(bundle, folder, progress),
        prove=prove,
    )


def plan_of(bundle: Path) -> Plan:
    """The plan that travels in a bundle or release. Raises BadInputError where the folder is no bundle."""
    path = bundle / "plan.json"
    if not path.is_file():
        raise BadInputError("install.no-bundle", path=str(bundle))
    return codec.load(Plan, path)
