"""The features that the CPU under this very process has, in the kernel's names.

On arm64 they come from AT_HWCAP and AT_HWCAP2 of the auxiliary vector: what the kernel (or qemu-user, which does
not emulate /proc/cpuinfo) promises to this process. On x86-64 they come from the flags of /proc/cpuinfo.
No instruction is executed to find out: ``mrs`` faults on kernel 4.4 (Qubic-Solutions/rqiner-builds#22).
"""

from __future__ import annotations

import struct
from pathlib import Path

from sampan.survey import cpuinfo, elf
from sampan.survey.data import table
from sampan.survey.files import read_bytes, read_text

PAGE_SIZES = (4096, 8192, 16384, 32768, 65536)  # bytes; what Linux kernels are built for
AT_PAGESZ, AT_HWCAP, AT_HWCAP2 = 6, 16, 26  # include/uapi/linux/auxvec.h


def current(root: Path = Path("/")) -> frozenset[str]:
    """The real features, as /proc/cpuinfo spells them; empty where they cannot be found out."""
    found = elf.userland(root)
    arch = (found and found.machine) or "unknown"
    if arch == "aarch64":
        vector = auxv(read_bytes(root / "proc/self/auxv"))
        if AT_HWCAP in vector:
            return aarch64(vector[AT_HWCAP], vector.get(AT_HWCAP2, 0))
    return frozenset(cpuinfo.parse(read_text(root / "proc/cpuinfo"), arch).features)


def auxv(data: bytes) -> dict[int, int]:
    """The auxiliary vector of a 64-bit little-endian process: pairs of u64, ended by type 0."""
    vector: dict[int, int] = {}
    for kind, value in struct.iter_unpack("<QQ", data[: len(data) // 16 * 16]):
        if kind == 0:
            break
        vector[kind] = value
    return vector


def aarch64(hwcap: int, hwcap2: int) -> frozenset[str]:
    """Names of the bits that are set; bits that the table does not know yet are left out."""
    names = table("hwcap-aarch64.toml")
    return frozenset(
        name
        for word, key in ((hwcap, "hwcap"), (hwcap2, "hwcap2"))
        for bit, name in enumerate(names[key])
        if word >> bit & 1
    )
