"""Stack flags, text relocations, thread-local storage and the lowest kernel of one file.

Sources: glibc elf/dl-load.c (PT_GNU_STACK, DT_TEXTREL, the ABI note), the generic ELF specification, and the Linux
Standard Base for ``.note.ABI-tag`` (owner GNU, type 1, four words: system, major, minor, sub-level).
"""

from __future__ import annotations

import struct

from sampan.audit.facts import Tls, Traps
from sampan.audit.image import Image

_DF_TEXTREL, _DF_STATIC_TLS = 0x4, 0x10
_MAX_NOTES = 64
_MAX_NOTE_BYTES = 1 << 16
_ABI_TAG = (4, 16, 1)  # bytes of the owner and of the content, type: glibc compares all three
_LINUX = 0


def read(image: Image) -> Traps:
    """Raises nothing: what cannot be read is not there for the loader either."""
    stacks = [segment.flags for segment in image.segments if segment.kind == "PT_GNU_STACK"]
    return Traps(
        stack=stacks[-1] if stacks else None,
        text_relocations="DT_TEXTREL" in image.dynamic or bool(image.value("DT_FLAGS") & _DF_TEXTREL),
        kernel=_kernel(image),
    )


def tls(image: Image, fixed: int) -> Tls:
    """``fixed``: as in Tls."""
    size = max((segment.memory_size for segment in image.segments if segment.kind == "PT_TLS"), default=0)
    return Tls(size, bool(image.value("DT_FLAGS") & _DF_STATIC_TLS), fixed)


def _kernel(image: Image) -> tuple[int, ...]:
    order = "<" if image.elf.little_endian else ">"
    for segment in image.segments:
        if segment.kind == "PT_NOTE":
            found = _abi_tag(
                image.data[segment.offset : segment.offset + min(segment.file_size, _MAX_NOTE_BYTES)], order
            )
            if found:
                return found
    return ()


def _abi_tag(notes: bytes, order: str) -> tuple[int, ...]:
    position = 0
    for _ in range(_MAX_NOTES):
        if position + 12 > len(notes):
            break
        owner, size, kind = struct.unpack_from(order + "III", notes, position)
        content = position + 12 + _padded(owner)
        expected = (owner, size, kind) == _ABI_TAG and notes[position + 12 : position + 16] == b"GNU\0"
        if expected and content + 16 <= len(notes):
            system, *version = struct.unpack_from(order + "IIII", notes, content)
            return tuple(version) if system == _LINUX else ()
        position = content + _padded(size)
    return ()


def _padded(size: int) -> int:
    return size + 3 & ~3
