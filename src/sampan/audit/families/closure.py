"""Libraries that nothing provides."""

from __future__ import annotations

from collections.abc import Iterator

from sampan.audit.closure import Closure, search_folders
from sampan.audit.world import World
from sampan.spec.artefacts import Finding


def judge(path: str, world: World, closure: Closure) -> Iterator[Finding]:
    """``closure.missing``: one finding a file, with every library that is missing and where it was looked for."""
    missing = [name for name in closure.missing(path, world.files[path].needed) if "/" not in name]
    if missing:
        folders = [world.name(folder) for folder in search_folders(world, path)]
        places = [*folders, *([] if world.bundle else [world.profile.name])]
        values = (("libraries", ", ".join(missing)), ("searched", ", ".join(dict.fromkeys(places)) or "-"))
        yield Finding("closure.missing", "error", world.name(path), values)
