"""Where the GNU loader looks for one file's libraries. Sources: ld.so(8), glibc elf/dl-load.c."""

from __future__ import annotations

from collections.abc import Iterator

from sampan.audit import paths
from sampan.audit.world import World


def search_folders(world: World, path: str, loaders: tuple[str, ...] = ()) -> Iterator[str]:
    """The folders that the loader would look into for ``path``'s libraries, in order."""
    facts = world.files[path]
    if not facts.runpath:
        for each in (path, *loaders):
            yield from _expanded(world, each, world.files[each].rpath)
    if world.libraries is not None:
        yield world.libraries
    yield from _expanded(world, path, facts.runpath)


def _expanded(world: World, path: str, entries: tuple[str, ...]) -> Iterator[str]:
    for entry in entries:
        if paths.from_origin(entry):  # any other folder is the target's, whose contents nobody knows
            yield paths.expand(entry, path, world.lib, world.profile.arch)
