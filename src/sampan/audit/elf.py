"""Read one ELF file into ElfFacts, as the loader sees it: through segments, never through sections.

The file may be hostile. Layouts and names come from pyelftools; every count, offset and length is bounded here, so
the work is at most linear in the file's size and never loops. pyelftools' own iterators trust those numbers and are
not used.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile

from sampan.audit import relocs, symbols, traps, versions
from sampan.audit.facts import Damaged, ElfFacts, Load
from sampan.audit.image import MAX_STRING, Broken, Image, Segment

MAGIC = b"\x7fELF"
_MAX_SEGMENTS = 1024  # real files have about ten
_MAX_DYNAMIC = 4096  # entries; a library with a thousand NEEDED would still fit
_KINDS = {"ET_EXEC": "executable", "ET_DYN": "shared", "ET_REL": "relocatable", "ET_CORE": "core"}
_MAPPED = ("PT_LOAD", "PT_DYNAMIC", "PT_INTERP")
_PASSIVE = ("PT_GNU_STACK", "PT_TLS", "PT_NOTE")  # nothing is read there unless the file has it
_PF_X = 0x1
_DF_1_PIE = 0x08000000
_INVALID = (ELFError, OverflowError, ValueError, IndexError, struct.error)


def is_elf(path: Path) -> bool:
    """By its first four bytes. Raises OSError."""
    with path.open("rb", buffering=0) as stream:
        return stream.read(len(MAGIC)) == MAGIC


def read(path: Path, readers: Iterable[Callable[[Path, ElfFacts], ElfFacts]] = ()) -> ElfFacts | Damaged:
    """What the file says of itself, ``readers`` (see ``families``) included.

    Raises OSError only, never for what is in the file.
    """
    try:
        with path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
            facts = _read(data)
        for reader in readers:
            facts = reader(path, facts)
        return facts
    except Broken as error:
        return Damaged(str(error))
    except _INVALID as error:
        return Damaged(f"{type(error).__name__}: {error}" if str(error) else type(error).__name__)


def _read(data: mmap.mmap) -> ElfFacts:
    image = Image(data, ELFFile(data))  # type: ignore[arg-type]  # a map reads and seeks like a stream
    header = image.elf.header
    facts = ElfFacts(
        bits=image.elf.elfclass,
        little_endian=image.elf.little_endian,
        machine=str(header["e_machine"]),
        osabi=str(header["e_ident"]["EI_OSABI"]),
        kind=_KINDS.get(str(header["e_type"]), "other"),
        flags=header["e_flags"],
    )
    _check_sections(image)
    if facts.kind not in ("executable", "shared"):
        return facts
    image.segments = tuple(_segments(image))
    if _split_debug(image):
        return replace(facts, kind="other")
    image.dynamic = _dynamic(image)
    wanted, given, relocations = versions.wants(image), versions.provides(image), relocs.read(image)
    table = symbols.read(image, relocations.highest, {**given, **{want.index: want.version for want in wanted}})
    return replace(
        facts,
        loads=tuple(_loads(image)),
        interpreter=_interpreter(image),
        soname=image.string(image.value("DT_SONAME")) if "DT_SONAME" in image.dynamic else None,
        needed=tuple(image.string(index) for index in image.dynamic.get("DT_NEEDED", ())),
        rpath=_paths(image, "DT_RPATH") if "DT_RUNPATH" not in image.dynamic else (),
        runpath=_paths(image, "DT_RUNPATH"),
        pie=bool(image.value("DT_FLAGS_1") & _DF_1_PIE),
        needs=versions.needs(wanted, table.by_version),
        provides=frozenset(given.values()),
        symbols=table.symbols,
        tls=traps.tls(image, relocations.fixed),
        traps=traps.read(image),
    )


def _split_debug(image: Image) -> bool:
    """A file of debugging information beside its program (``objcopy --only-keep-debug``): all of what a loader would
    map is left out, only the sizes in memory remain."""
    told = [one for one in image.segments if one.kind in ("PT_INTERP", "PT_DYNAMIC")]
    return bool(told) and all(one.file_size == 0 < one.memory_size for one in told)


def _check_sections(image: Image) -> None:
    """The section table stands at a file's end: where it is cut off, so is something else."""
    header = image.elf.header
    if header["e_shoff"]:
        image.table(header["e_shoff"], header["e_shnum"] * header["e_shentsize"], "the section table")


def _segments(image: Image) -> Iterator[Segment]:
    header, layout = image.elf.header, image.elf.structs.Elf_Phdr
    if header["e_phnum"] > _MAX_SEGMENTS:
        raise Broken(f"{header['e_phnum']} segments")
    if header["e_phnum"] and header["e_phentsize"] != layout.sizeof():
        raise Broken(f"segment headers of {header['e_phentsize']} bytes")
    for index in range(header["e_phnum"]):
        raw = image.parse(layout, header["e_phoff"] + index * layout.sizeof(), "a segment header")
        if raw.p_type in _PASSIVE:
            yield Segment(raw.p_type, raw.p_offset, raw.p_vaddr, raw.p_filesz, raw.p_memsz, raw.p_align, raw.p_flags)
        elif raw.p_type in _MAPPED:
            beyond = raw.p_offset + raw.p_filesz - len(image.data)
            if beyond > 0:
                raise Broken(f"a {raw.p_type} segment ends {beyond} bytes after the file's end")
            yield Segment(raw.p_type, raw.p_offset, raw.p_vaddr, raw.p_filesz, raw.p_memsz, raw.p_align, raw.p_flags)


def _loads(image: Image) -> Iterator[Load]:
    for segment in image.segments:
        if segment.kind == "PT_LOAD" and segment.memory_size:
            yield Load(segment.offset, segment.vaddr, segment.align, segment.file_size, bool(segment.flags & _PF_X))


def _interpreter(image: Image) -> str | None:
    for segment in image.segments:
        if segment.kind == "PT_INTERP":
            raw = image.table(segment.offset, min(segment.file_size, MAX_STRING), "the interpreter's path")
            return raw.partition(b"\0")[0].decode("utf-8", "backslashreplace")
    return None


def _dynamic(image: Image) -> dict[str, list[int]]:
    """Values by tag, in their order."""
    found: dict[str, list[int]] = {}
    layout = image.elf.structs.Elf_Dyn
    tables = [segment for segment in image.segments if segment.kind == "PT_DYNAMIC"]
    if len(tables) > 1:
        raise Broken(f"{len(tables)} dynamic tables")
    for segment in tables:
        for index in range(segment.file_size // layout.sizeof()):
            entry = image.parse(layout, segment.offset + index * layout.sizeof(), "the dynamic table")
            if entry.d_tag == "DT_NULL":
                break
            if index >= _MAX_DYNAMIC:
                raise Broken("the dynamic table has no end")
            found.setdefault(str(entry.d_tag), []).append(entry.d_val)
    return found


def _paths(image: Image, tag: str) -> tuple[str, ...]:
    if tag not in image.dynamic:
        return ()
    text = image.string(image.value(tag))
    return tuple(text.split(":")) if text else ()  # the loader takes no path at all for no path, but "a:" for two
