"""The survey script as data: its text, with the probe or without, and the list of x86 features that it carries."""

from __future__ import annotations

import base64
import hashlib
import re
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

from sampan.survey import elf, probe

_PLACE = "# --- sockets, cores, NUMA nodes 插槽、核、NUMA 节点 ---\n"  # the probe comes before this line
_PROMISES = {  # what is true without the probe, and with it
    "writes no file, opens no connection": "writes only in its part “the probe”, opens no connection",
    "不写任何文件，不联网": "除“指令探测”一节外不写文件，不联网",
    "and takes about a second": "and takes about two seconds",
    "约一秒完成": "约两秒完成",
}
_COLUMNS = 120


@dataclass(frozen=True)
class Programs:
    """The probe's program for each architecture, and the command that makes it again with that compiler."""

    images: Mapping[str, bytes]
    commands: Mapping[str, str]
    compiler: str


@cache
def text() -> str:
    """``data/survey/survey.sh``, as it is run on the target."""
    return _read("survey.sh")


def with_probe(programs: Programs) -> str:
    """The script with the probe: its source as remarks, the programs as base64."""
    told = text()
    for plain, probing in _PROMISES.items():
        if plain not in told:
            raise LookupError(plain)
        told = told.replace(plain, probing)
    before, place, after = told.partition(_PLACE)
    return before + _part(programs) + place + after


def _part(programs: Programs) -> str:
    remake = [f"with {programs.compiler} 使用该编译器:"]
    for arch, image in programs.images.items():
        remake += [programs.commands[arch], f"    sha256 of probe-{arch}: {hashlib.sha256(image).hexdigest()}"]
    listing = [line for name, source in probe.sources().items() for line in (f"===== {name}", *source.splitlines())]
    cases = [line for arch, image in programs.images.items() for line in _case(arch, image)]
    part = _read("probe/probe.sh")
    for name, lines in {"REMAKE": remake, "SOURCES": listing}.items():
        part = part.replace(f"# @{name}@", "\n".join(f"# {line}".rstrip() for line in lines))
    return part.replace("# @PROGRAMS@", "\n".join(cases))


def _case(arch: str, image: bytes) -> list[str]:
    """The branch of one architecture: what an ELF header says of it, and the program."""
    head = elf.header(arch)
    lines = textwrap.wrap(base64.b64encode(image).decode(), _COLUMNS)
    return [f"    {head}) # {arch}", "        echo '", *lines, "' ;;"]


def _read(name: str) -> str:
    return (resources.files("sampan") / "data/survey" / name).read_text(encoding="utf-8")


@cache
def x86_flags() -> tuple[str, ...]:
    """The place of a name is the number of its bit. The script is the only place where the list is kept."""
    return _list("X86_FLAGS")


@cache
def libraries() -> tuple[str, ...]:
    """The SONAMEs that are looked for, numbered likewise."""
    return _list("LIBRARIES")


def _list(name: str) -> tuple[str, ...]:
    found = re.search(rf"^{name}='([^']+)'", text(), re.MULTILINE)
    return tuple(found[1].split()) if found else ()


def unpack_flags(digits: str) -> frozenset[str]:
    """The names whose bits are set, the first bit being the highest of the first digit. Raises ValueError."""
    return frozenset(name for name, bit in zip(x86_flags(), _bits(digits), strict=False) if bit == "1")


def unpack_libraries(count: str, digits: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Of the first ``count`` names those that are there, and those that are not. Raises ValueError."""
    bits = _bits(digits)
    if not 0 <= int(count) <= len(bits):
        raise ValueError(f"li={count},{digits}")
    looked = tuple(zip(libraries(), bits[: int(count)], strict=False))
    return tuple(name for name, bit in looked if bit == "1"), tuple(name for name, bit in looked if bit == "0")


def _bits(digits: str) -> str:
    return "".join(f"{int(digit, 16):04b}" for digit in digits)
