"""BundleParts: all that a bundle is made of, and whether the parts belong together."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sampan.errors import BadInputError, IncompatibleError
from sampan.spec.artefacts import EngineBuild, RuntimeTree, Wheelhouse
from sampan.spec.plan import Plan
from sampan.spec.target import TargetProfile
from sampan.spec.weights import WeightsInfo


@dataclass(frozen=True)
class BundleParts:
    """``launcher``: the static launcher's file; ``scripts``: the folder of install.sh, start.sh and README.txt."""

    plan: Plan
    profile: TargetProfile
    weights: WeightsInfo
    engine: EngineBuild
    runtime: RuntimeTree
    wheelhouse: Wheelhouse
    launcher: Path
    scripts: Path


def check(parts: BundleParts) -> None:
    """Raise IncompatibleError or BadInputError where the parts do not belong together. Reads no file."""
    arch = parts.plan.arch
    for part, found in (
        ("profile", parts.profile.arch),
        ("engine", parts.engine.arch),
        ("runtime", parts.runtime.arch),
        ("wheelhouse", parts.wheelhouse.arch),
    ):
        if found != arch:
            raise IncompatibleError("bundle.arch", part=part, found=found, expected=arch)
    if _minor(parts.wheelhouse.python) != _minor(parts.runtime.python):
        raise IncompatibleError("bundle.python", wheels=parts.wheelhouse.python, runtime=parts.runtime.python)
    missing = {variant.name for variant in parts.plan.variants} - {built.name for built in parts.engine.variants}
    if missing:
        raise BadInputError("bundle.variant", missing=", ".join(sorted(missing)))


def _minor(version: str) -> tuple[str, ...]:
    return tuple(version.split(".")[:2])
