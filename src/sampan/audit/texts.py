"""What the texts inside a file give away: libraries that it may open when it runs, page sizes compiled in.

A reader (see ``families``). Each text is searched for as bytes, wherever in the file it stands; the file's own names
(SONAME, NEEDED) are not counted.
"""

from __future__ import annotations

import mmap
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from sampan.audit import a64, rules
from sampan.audit.facts import ElfFacts, PageTrap
from sampan.audit.windows import find

_SUFFIX = b".so"
_NAME = re.compile(rb"[A-Za-z0-9_][A-Za-z0-9_+.-]{1,60}\.so(?:\.[0-9]{1,4}){0,4}\Z")
_BEFORE, _AFTER = 64, 20  # bytes around ".so" in which the whole name stands
_MAX_PLACES = 1 << 16
_MAX_NAMES = 256


def read(path: Path, facts: ElfFacts) -> ElfFacts:
    """The facts with ``page_traps`` and ``texts``. Raises OSError."""
    if facts.kind not in ("executable", "shared"):
        return facts
    with path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
        return replace(facts, page_traps=tuple(_page_traps(data, facts)), texts=_libraries(data, facts))


def _page_traps(data: mmap.mmap, facts: ElfFacts) -> Iterator[PageTrap]:
    for rule in rules.load().page_sensitive:
        place = find(data, rule.text.encode())
        if place >= 0:
            can_tell = rule.readable and facts.machine == "EM_AARCH64"
            yield PageTrap(rule.name, a64.compared_before(data, facts.loads, place) if can_tell else None)


def _libraries(data: mmap.mmap, facts: ElfFacts) -> frozenset[str]:
    own = {facts.soname, *facts.needed}
    plugins = [prefix for prefix in rules.load().plugins if find(data, prefix.encode() + b"\0") >= 0]
    found: set[str] = set(plugins)
    for name in _names(data):
        if name not in own and len(found) < _MAX_NAMES:
            found.add(name)
    return frozenset(found)


def _names(data: mmap.mmap) -> Iterator[str]:
    place = find(data, _SUFFIX)
    for _ in range(_MAX_PLACES):
        if place < 0:
            return
        before, after = data[max(0, place - _BEFORE) : place], data[place : place + _AFTER]
        tail, end, _ = after.partition(b"\0")
        text = before.rpartition(b"\0")[2] + tail
        match = _NAME.search(text) if end else None
        if match:
            yield match[0].decode()
        place = find(data, _SUFFIX, place + 1)
