"""An ELF file as the loader maps it: segments, sections, code.

The file may be hostile: every array is cut to what the file has, so that the work is at most linear in its size.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from functools import cached_property

import numpy as np

from sampan.audit.instructions import layouts
from sampan.audit.instructions.layouts import Array, Records, Span
from sampan.audit.instructions.spans import Spans

_MAX_SECTIONS = 4096  # of a linked file; object files may have more


class Mapped:
    """An open file as it is mapped. Addresses are its own, before it is loaded."""

    def __init__(self, data: mmap.mmap) -> None:
        self.data = data
        self.view = np.frombuffer(data, dtype=np.uint8)
        self.cut = False  # whether a table was too large to be taken whole
        header = self.records(layouts.HEADER, 0, 1)
        self.entry = int(header[0][4]) if len(header) else 0
        self.names_section = int(header[0][13]) if len(header) else 0
        fields = header[0] if len(header) else None
        segments = self.records(layouts.SEGMENT, int(fields[5]), int(fields[10])) if fields is not None else header
        self.segments = self._rows(segments)
        count = min(int(fields[12]), _MAX_SECTIONS) if fields is not None else 0
        sections = self.records(layouts.SECTION, int(fields[6]), count) if fields is not None else header
        self.sections = self._rows(sections)
        self.loads = [s for s in self.segments if s["kind"] == layouts.PT_LOAD]

    def records(self, layout: np.dtype[np.void], offset: int, count: int) -> Records:
        """As many of ``count`` records at ``offset`` as the file has and memory is meant for."""
        room = (len(self.data) - offset) // layout.itemsize
        count = max(0, min(count, room)) if 0 <= offset <= len(self.data) else 0
        if count > layouts.MAX_ROWS:
            self.cut, count = True, layouts.MAX_ROWS
        return np.frombuffer(self.data, dtype=layout, count=count, offset=offset if count else 0)

    def close(self) -> None:
        """Let go of the file: a map cannot be closed while arrays look at it."""
        self.__dict__.clear()

    @staticmethod
    def _rows(table: Records) -> list[dict[str, int]]:
        """Rows as plain numbers; one with an address that no program has gives only zeros."""
        names = table.dtype.names or ()
        rows = [{name: int(row[name]) for name in names} for row in table]
        nothing = dict.fromkeys(names, 0)
        return [
            row if max(row[name] for name in names if name != "flags") < layouts.MAX_ADDRESS else nothing
            for row in rows
        ]

    @cached_property
    def runs(self) -> Spans:
        """What the loader maps. Where segments overlap, as in no sound file, the lower one counts."""
        found: list[Span] = []
        for load in sorted(self.loads, key=lambda load: load["vaddr"]):
            start = max(load["vaddr"], found[-1].end if found else 0)
            if start < load["vaddr"] + load["size"]:
                found.append(Span(start, load["vaddr"] + load["size"], load["offset"] + start - load["vaddr"]))
        return Spans(found)

    def offset_of(self, address: int) -> int | None:
        """Where in the file ``address`` is loaded from."""
        run = self.runs.at(address)
        offset = address - run.start + run.offset if run else len(self.data)
        return offset if offset < len(self.data) else None

    def room(self, address: int) -> int:
        """Bytes that the file has from ``address`` on."""
        offset = self.offset_of(address)
        return len(self.data) - offset if offset is not None else 0

    def offsets_of(self, addresses: Array) -> Array:
        """The same for many, -1 where there is nothing."""
        found = self.runs.offsets(addresses)
        return np.where(found < len(self.data), found, -1)

    def word(self, address: int, size: int) -> int | None:
        """The little-endian number of ``size`` bytes that the file has at ``address``."""
        offset = self.offset_of(address)
        if offset is None or offset + size > len(self.data):
            return None
        return int.from_bytes(self.data[offset : offset + size], "little")

    @cached_property
    def code(self) -> Spans:
        """What can be executed: the sections that say so, else whole segments."""
        found = [
            Span(s["vaddr"], s["vaddr"] + s["size"], s["offset"])
            for s in self.sections
            if s["kind"] == layouts.PROGBITS
            and s["flags"] & layouts.EXECUTABLE
            and self.offset_of(s["vaddr"]) == s["offset"]
        ]
        if not found:
            found = [Span(s["vaddr"], s["vaddr"] + s["size"], s["offset"]) for s in self.loads if s["flags"] & 1]
        return Spans(self._disjoint(sorted(found, key=lambda span: span.start)))

    def _disjoint(self, spans: list[Span]) -> Iterator[Span]:
        end, left = 0, len(self.data)  # what is mapped many times over is looked at once
        for span in spans:
            last = min(span.end, span.start + min(len(self.data) - span.offset, left), layouts.MAX_ADDRESS)
            if span.start >= end and last > span.start and span.offset >= 0:
                end = last
                left -= last - span.start
                yield Span(span.start, last, span.offset)

    def span_at(self, address: int) -> Span | None:
        """The run of code that ``address`` is in."""
        return self.code.at(address)

    def code_end(self, address: int) -> int:
        """Where the run of code ends that ``address`` is in, or the last one before it."""
        run = self.code.before(address)
        return run.end if run else address

    def section(self, name: str) -> tuple[int, int]:
        """(address, bytes) of the section of that name, (0, 0) where there is none."""
        rows = self.sections
        names = rows[self.names_section]["offset"] if self.names_section < len(rows) else len(self.data)
        wanted = name.encode() + b"\0"
        for row in rows:
            start = names + row["name"]
            if self.data[start : start + len(wanted)] == wanted:
                return row["vaddr"], row["size"]
        return 0, 0
