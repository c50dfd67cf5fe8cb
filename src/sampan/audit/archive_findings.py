"""Findings on an archive as a whole."""

from __future__ import annotations

from collections.abc import Iterator

from sampan.audit import not_elf
from sampan.audit.subjects import Archive
from sampan.audit.wheels import judge as wheels
from sampan.audit.wheels import platforms
from sampan.audit.wheels import read as wheel
from sampan.audit.world import World
from sampan.spec.artefacts import Finding

_SHOWN = 4
_WARNINGS = ("kind", "link", "duplicate")


def judge(archive: Archive, world: World) -> Iterator[Finding]:
    """``archive.*``, and ``wheel.*`` where it is one. A broken archive deep in a folder is a warning: test data often
    are such.
    """
    for kind, what in sorted(archive.contents.faults.items()):
        severity = "error" if archive.given and kind not in _WARNINGS else "warning"
        values = (("count", str(len(what))), ("what", _some(what)))
        yield Finding(f"archive.{kind}", severity, archive.shown, values)
    if archive.name.endswith(".whl") and not archive.contents.faults.keys() & {"bomb", "damaged"}:
        files = [path for path in world.files if path.startswith(archive.folder + "/") and path in world.shown]
        said = wheel.read(archive.name, archive.contents)
        yield from wheels.judge(said, archive.shown, files, world)
        foreign = list(platforms.judge(said, archive.shown, files, world, given=archive.given))
        yield from foreign
        if foreign:  # a library of another system is right where the whole wheel is for that system
            return
    # a wheel's libraries are there to be loaded; other archives hold test data and sources too
    grave = archive.given and archive.name.endswith(".whl")
    yield from not_elf.judge_members(archive.contents, archive.shown, grave=grave)


def _some(what: list[str]) -> str:
    text = "; ".join(each.encode("utf-8", "backslashreplace").decode()[:200] for each in what[:_SHOWN])
    return f"{text} +{len(what) - _SHOWN}" if len(what) > _SHOWN else text
