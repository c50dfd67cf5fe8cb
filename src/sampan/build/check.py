"""What a finished static executable must be, read from its ELF headers; it is never run."""

from __future__ import annotations

from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile

from sampan.errors import BuildError

MACHINES = {"aarch64": "EM_AARCH64", "x86_64": "EM_X86_64", "loongarch64": "EM_LOONGARCH"}
PAGE = 0x10000  # bytes; the largest page of any supported kernel


def check_static(path: Path, arch: str, *, max_bytes: int) -> None:
    """Raises BuildError ``build.unfit`` that names what is wrong."""
    wrong = faults(path, arch, max_bytes=max_bytes)
    if wrong:
        raise BuildError("build.unfit", file=path.name, detail="; ".join(wrong))


def faults(path: Path, arch: str, *, max_bytes: int) -> list[str]:
    """Everything that would keep the executable from running on a bare kernel of ``arch``."""
    size = path.stat().st_size
    wrong = [f"{size} bytes, more than {max_bytes}"] if size > max_bytes else []
    try:
        with path.open("rb") as stream:
            return wrong + _elf_faults(ELFFile(stream), arch)
    except ELFError as error:
        return [*wrong, f"not a readable ELF file ({error})"]


def _elf_faults(elf: ELFFile, arch: str) -> list[str]:
    wrong = []
    if elf["e_machine"] != MACHINES[arch]:
        wrong.append(f"machine {elf['e_machine']}, not {MACHINES[arch]}")
    for segment in elf.iter_segments():
        kind, align = segment["p_type"], segment["p_align"]
        if kind in ("PT_INTERP", "PT_DYNAMIC"):
            wrong.append(f"not static: it has {kind}")
        if kind == "PT_LOAD" and align % PAGE:
            wrong.append(f"a segment is aligned to {align:#x} bytes, not {PAGE:#x}")
    if elf.has_dwarf_info(strict=True) or elf.get_section_by_name(".symtab"):
        wrong.append("it has symbols or debug information")
    return wrong
