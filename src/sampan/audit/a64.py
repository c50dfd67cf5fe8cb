"""Which number A64 machine code compares with before it uses a text.

``if (system_page > PAGE) print(text)`` compiles to a comparison with an immediate, a conditional branch, and
ADRP + ADD of the text's address, on the way or at the branch's end. Encodings: Arm Architecture Reference Manual
for A-profile, "Add/subtract (immediate)" (SUBS as CMP), "PC-rel. addressing" (ADRP), "Conditional branch".
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from sampan.audit.facts import Load

Words = npt.NDArray[np.int64]
_PAGE = 4096
_CHUNK = 1 << 22  # instructions looked at in one go
_BACK = 24  # instructions between the comparison and what depends on it
_PAIR = 8  # instructions between ADRP and its ADD
_SIZES = frozenset(1 << bits for bits in range(12, 25))


def compared_before(data: mmap.mmap, loads: Sequence[Load], place: int) -> int | None:
    """The page size that is compared with before the text at file offset ``place`` is used; None where unclear."""
    sizes = set()
    for load in loads:
        address = place - load.offset + load.vaddr
        if load.offset <= place < load.offset + load.file_size:
            for code in loads:
                if code.executable:
                    sizes |= set(_sizes(data, code, address))
    return sizes.pop() if len(sizes) == 1 else None


def _sizes(data: mmap.mmap, code: Load, address: int) -> Iterator[int]:
    end = min(code.offset + code.file_size, len(data))
    for start in range(code.offset, end, _CHUNK * 4):
        count = min(_CHUNK, (end - start) // 4)
        words = np.frombuffer(data[start : start + count * 4], "<u4").astype(np.int64)
        first = code.vaddr + start - code.offset
        for index in _uses(words, first, address):
            yield from _compared(words, index)


def _uses(words: Words, first: int, address: int) -> Iterator[int]:
    """Where ADRP and ADD make the address."""
    places = np.nonzero((words & 0x9F000000) == 0x90000000)[0]
    adrp = words[places]
    pages = (((adrp >> 5) & 0x7FFFF) << 2) | ((adrp >> 29) & 3)
    pages = np.where(pages >= 1 << 20, pages - (1 << 21), pages)
    target = ((first + places * 4) & ~(_PAGE - 1)) + pages * _PAGE
    for index in places[target == address & ~(_PAGE - 1)]:
        register = int(words[index]) & 31
        for word in words[index + 1 : index + 1 + _PAIR]:
            add = int(word) & 0xFFC003E0 == 0x91000000 | register << 5
            if add and (int(word) >> 10) & 0xFFF == address & (_PAGE - 1):
                yield int(index)


def _compared(words: Words, index: int) -> Iterator[int]:
    """The comparison on the straight way to ``index``, else those before the branches that lead there."""
    found = _last_comparison(words, index)
    if found is not None:
        yield found
        return
    places = np.nonzero((words & 0xFF000010) == 0x54000000)[0]
    offsets = (words[places] >> 5) & 0x7FFFF
    offsets = np.where(offsets >= 1 << 18, offsets - (1 << 19), offsets)
    ends = places + offsets
    for place in places[(ends <= index) & (ends > index - 4)]:
        found = _last_comparison(words, int(place))
        if found is not None:
            yield found


def _last_comparison(words: Words, index: int) -> int | None:
    """The nearest CMP of a 64-bit register with a page size, not beyond a branch without a condition."""
    for word in map(int, words[max(0, index - _BACK) : index][::-1]):
        if word & 0xFC000000 == 0x14000000 or word & 0xFFFFFC1F == 0xD65F0000:  # B, RET
            return None
        if word & 0xFF80001F == 0xF100001F:
            value = ((word >> 10) & 0xFFF) << (12 if word & 0x400000 else 0)
            if value in _SIZES:
                return value
    return None
