"""Segments against the target's page size.

Sources: glibc elf/dl-load.c ("ELF load command alignment not page-aligned", "… address/offset not properly
aligned") for what the loader maps; Linux fs/binfmt_elf.c for what the kernel maps: it drops the low bits of address
and offset alike, so they must be equal, and two segments in one page overwrite one another.
"""

from __future__ import annotations

from collections.abc import Iterator

from sampan.audit.closure import Closure
from sampan.audit.facts import Load
from sampan.audit.world import World
from sampan.spec.artefacts import Finding

_SMALLEST = 4096  # every Linux page is at least that large, so anything built for it runs there


def judge(path: str, world: World, closure: Closure) -> Iterator[Finding]:  # noqa: ARG001
    """``page.alignment``: every PT_LOAD must be aligned to the page, and congruent; static programs too.

    ``page.allocator``: an allocator or engine with a page size compiled in, an error where that is known and smaller.
    """
    page = world.profile.page_size
    bad = [load for load in world.files[path].loads if not _sound(load, page)]
    if bad:
        values = (
            ("page", str(page)),
            ("align", str(min(load.align for load in bad))),
            ("segments", ", ".join(f"{load.vaddr:#x}" for load in bad[:4])),
        )
        yield Finding("page.alignment", "error", world.name(path), values)
    for trap in world.files[path].page_traps if page > _SMALLEST else ():
        if trap.page is None or trap.page < page:
            severity = "warning" if trap.page is None else "error"
            values = (("name", trap.name), ("built", str(trap.page or "?")), ("page", str(page)))
            yield Finding("page.allocator", severity, world.name(path), values)


def _sound(load: Load, page: int) -> bool:
    if load.align < page or load.align % page:
        return False
    return (load.vaddr - load.offset) % load.align == 0
