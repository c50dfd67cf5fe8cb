"""Relocations of one file: which symbols they reach, and which of them fix thread-local storage.

Numbers of the types: psABI supplements of AArch64 (R_AARCH64_TLS_TPREL), x86-64 (R_X86_64_TPOFF64), i386
(R_386_TLS_TPOFF, R_386_TLS_TPOFF32), Arm (R_ARM_TLS_TPOFF32), RISC-V (R_RISCV_TLS_TPREL32/64) and LoongArch
(R_LARCH_TLS_TPREL32/64).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sampan.audit import symbols
from sampan.audit.image import Image

_FIXED = {
    "EM_AARCH64": (1030,),
    "EM_X86_64": (18,),
    "EM_386": (14, 37),
    "EM_ARM": (19,),
    "EM_RISCV": (10, 11),
    "EM_LOONGARCH": (10, 11),
}
_MAX_BYTES = 1 << 28  # of one table: eleven million entries
_TABLES = (("DT_RELA", "DT_RELASZ", 3), ("DT_REL", "DT_RELSZ", 2), ("DT_JMPREL", "DT_PLTRELSZ", 0))
_DT_RELA = 7


@dataclass(frozen=True)
class Relocations:
    """``highest``: the highest symbol index; ``fixed``: initial-exec relocations against the file's own variables."""

    highest: int = 0
    fixed: int = 0


def read(image: Image) -> Relocations:
    """Both numbers, over all tables that the loader works through. Raises Broken."""
    highest, fixed = 0, 0
    types = _FIXED.get(str(image.elf.header["e_machine"]), ())
    for address, size, words in _TABLES:
        info = _infos(image, address, size, words or _plt_words(image))
        if not len(info):
            continue
        wide = image.elf.elfclass == 64
        indices, kinds = (info >> 32, info & 0xFFFFFFFF) if wide else (info >> 8, info & 0xFF)
        highest = max(highest, int(indices.max()))
        wanted = indices[np.isin(kinds, types)]
        fixed += int(np.count_nonzero(wanted == 0))
        fixed += sum(symbols.is_defined(image, int(index)) for index in wanted[wanted != 0][:64])
    return Relocations(highest, fixed)


def _plt_words(image: Image) -> int:
    return 3 if image.value("DT_PLTREL") == _DT_RELA else 2


def _infos(image: Image, address: str, size: str, words: int) -> npt.NDArray[np.uint64]:
    """The ``r_info`` fields of one table."""
    order = "<" if image.elf.little_endian else ">"
    kind = np.dtype(f"{order}u{image.elf.elfclass // 8}")
    count = image.value(size) // (words * kind.itemsize)
    if not image.value(address) or not count:
        return np.zeros(0, np.uint64)
    start = image.offset_of(image.value(address), "the relocation table")
    image.check(start, count * words * kind.itemsize, "the relocation table")
    count = min(count, _MAX_BYTES // (words * kind.itemsize))
    table = np.frombuffer(image.table(start, count * words * kind.itemsize, "the relocation table"), kind)
    return table.reshape(-1, words)[:, 1].astype(np.uint64)
