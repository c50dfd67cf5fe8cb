"""The bundle that a command on the target runs from: where it lies, and what it says of itself."""

from __future__ import annotations

import os
from pathlib import Path

from sampan.errors import UsageError
from sampan.spec import codec
from sampan.spec.plan import Plan
from sampan.spec.weights import GoldenSet, WeightsInfo


def bundle_root() -> Path:
    """The bundle that this command runs from: the launcher says so. Raises UsageError elsewhere."""
    root = os.environ.get("SAMPAN_BUNDLE")
    if not root or not (Path(root) / "plan.json").is_file():
        raise UsageError("target.no-bundle")
    return Path(root)


def read_plan(bundle: Path) -> Plan:
    """The bundle's plan. Raises BadInputError."""
    return codec.load(Plan, bundle / "plan.json")


def read_golden(bundle: Path) -> GoldenSet | None:
    """What the bundle's service is asked; None where its model has no reference, or none of it is short enough.

    Raises BadInputError.
    """
    from sampan.flow.golden_fit import fitting

    path, about = bundle / "weights" / "golden.json", bundle / "weights" / "weights.json"
    if not path.is_file():
        return None
    golden = codec.load(GoldenSet, path)
    if about.is_file():
        golden = fitting(golden, read_plan(bundle), codec.load(WeightsInfo, about))
    return golden if golden.embeddings or golden.chats or golden.pairs else None


def run_folder(name: str) -> Path:
    """Where a server of this user keeps its pid file and its engine's socket; short, as a socket's path must be."""
    from sampan.gateway.run_folder import choose_base
    from sampan.install.model import user_name

    base = choose_base(os.environ)
    if str(base) == os.environ.get("RUNTIME_DIRECTORY"):  # of this one service already
        return base
    return base / f"{user_name(name)}-{os.getuid()}"
