"""Links of a model folder: those of a hub's cache are its way of storing; any other that leads out is refused."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from sampan.errors import BadInputError

_MOST_ENTRIES = 20_000
_SKIPPED = (".git", ".cache", "__pycache__")


def refuse_links_out(root: Path) -> None:
    """Raise BadInputError where a link below ``root`` leads out of it, except into the hub cache's own blobs."""
    real = root.resolve()
    allowed = [real]
    if real.parent.name == "snapshots":  # models--ORG--NAME/snapshots/<commit>/… -> ../../blobs/<digest>
        allowed.append(real.parent.parent / "blobs")
    for path in files_below(root, with_links=True):
        if path.is_symlink():
            target = path.resolve()
            if not any(target.is_relative_to(place) for place in allowed):
                raise BadInputError("weights.link_outside", path=str(path), target=str(target))
            if not target.exists():
                raise BadInputError("weights.link_broken", path=str(path), target=str(target))


def files_below(root: Path, *, with_links: bool = False) -> Iterator[Path]:
    """Every file of the folder in a stable order; folders are not entered through links. Raises BadInputError."""
    seen = 0
    for folder, folders, names in os.walk(root, followlinks=False):
        linked = [name for name in folders if Path(folder, name).is_symlink()]
        folders[:] = sorted(name for name in folders if name not in _SKIPPED and name not in linked)
        for name in sorted(names) + (linked if with_links else []):
            seen += 1
            if seen > _MOST_ENTRIES:
                raise BadInputError("weights.too_many_files", path=str(root), most=_MOST_ENTRIES)
            yield Path(folder, name)
