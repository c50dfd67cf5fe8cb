"""The list of a file's parts: what was cut, and what must be there before it is whole again.

Two files say the same: NAME.parts.json for sampan, NAME.parts.sha256 for people with coreutils alone.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from sampan.errors import BadInputError, UsageError
from sampan.spec.ports import Task

MOST_PARTS, MOST_WITH_PARITY = 9999, 256
LIST_SUFFIX, SUMS_SUFFIX = ".parts.json", ".parts.sha256"
_MIB, _BUFFER_BYTES = 1 << 20, 4 << 20
#: bytes that fit one medium. FAT32's largest file is 4 GiB - 1. A DVD-R has 4,700,372,992 bytes, a CD-R of 80 minutes
#: 737,280,000 (sectors of 2048 bytes); what is left of each is for the disc's own file system.
MEDIA = {"fat32": 4095 * _MIB, "dvd": 4480 * _MIB, "cd": 700 * _MIB}
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Part:
    """``size`` in bytes, ``sha256`` in hexadecimal."""

    file: str
    size: int
    sha256: str


@dataclass(frozen=True)
class PartList:
    """``name``: of the whole file. ``parts`` in their order; all of one size but the last. ``parity``: as long as the
    first of them (see ``parity``).
    """

    SCHEMA: ClassVar[str] = "sampan/parts/1"

    name: str
    size: int
    sha256: str
    parts: tuple[Part, ...]
    parity: tuple[Part, ...] = ()


@dataclass(frozen=True)
class Missing:
    """Numbers of parts, counted from 1. ``absent`` are not there; ``bad`` are, and are not what was cut."""

    absent: tuple[int, ...]
    bad: tuple[int, ...]

    @property
    def numbers(self) -> str:
        """All of them, as ``split --only`` takes them."""
        return join_numbers((*self.absent, *self.bad))


def part_name(name: str, number: int, count: int) -> str:
    """``NAME.007``: as many digits as the last part needs, at least three, so that ``cat NAME.*`` is in order."""
    return f"{name}.{number:0{max(3, len(str(count)))}d}"


def parity_name(name: str, number: int) -> str:
    """``NAME.parity.001``: not among ``NAME.[0-9]*``, which coreutils join."""
    return f"{name}.parity.{number:03d}"


def check_parity(count: int, parity: int) -> None:
    """Raises UsageError where ``parity`` parts beside ``count`` are more than the arithmetic has numbers for."""
    if parity and count + parity > MOST_WITH_PARITY:
        raise UsageError("carry.parity-many", count=count, parity=parity, most=MOST_WITH_PARITY)


def part_size(total: int, wanted: str, size: int | None = None) -> int:
    """Bytes of a part. ``wanted``: a medium's name or a number of parts; ``size``: bytes that were read from it.

    Raises UsageError: unknown, or too many parts.
    """
    if wanted in MEDIA:
        size = MEDIA[wanted]
    elif wanted.isdecimal() and int(wanted):
        size = math.ceil(total / int(wanted))
    elif not size:
        raise UsageError("carry.size", size=wanted, media=", ".join(MEDIA))
    if size < 1 or math.ceil(total / size) > MOST_PARTS:
        raise UsageError("carry.too-many", size=wanted, most=MOST_PARTS)
    return size


def checked(listed: PartList, *, where: str) -> PartList:
    """The list, where it makes sense: safe names, sizes that add up. Raises BadInputError."""
    count = len(listed.parts)
    right = (
        0 < count <= MOST_PARTS
        and _is_plain(listed.name)
        and sum(part.size for part in listed.parts) == listed.size
        and all(part.size > 0 or count == 1 for part in listed.parts)
        and all(part.file == part_name(listed.name, place, count) for place, part in enumerate(listed.parts, 1))
        and all(_SHA256.fullmatch(digest) for digest in (listed.sha256, *(part.sha256 for part in listed.parts)))
        and _is_parity(listed)
    )
    if not right:
        raise BadInputError("carry.list", path=where)
    return listed


def _is_parity(listed: PartList) -> bool:
    whole = listed.parts[0].size
    return (not listed.parity or len(listed.parts) + len(listed.parity) <= MOST_WITH_PARITY) and all(
        part.file == parity_name(listed.name, number) and part.size == whole and _SHA256.fullmatch(part.sha256)
        for number, part in enumerate(listed.parity, 1)
    )


def _is_plain(name: str) -> bool:
    return bool(name) and name not in (".", "..") and not re.search(r"[/\\\x00-\x1f\x7f]", name)


def sums(listed: PartList) -> str:
    """What ``sha256sum -c`` reads: the parts alone, since the whole is not there yet."""
    return "".join(f"{part.sha256}  {part.file}\n" for part in listed.parts)


def numbers(text: str, count: int) -> tuple[int, ...]:
    """``7,19`` or ``1-3,8`` as numbers of parts. Raises UsageError for what is none of the ``count`` parts."""
    found: set[int] = set()
    for piece in text.split(","):
        first, dash, last = (word.strip() for word in piece.partition("-"))
        last = last if dash else first
        if not (first.isdecimal() and last.isdecimal() and 1 <= int(first) <= int(last) <= count):
            raise UsageError("carry.numbers", text=text, count=count)
        found.update(range(int(first), int(last) + 1))
    return tuple(sorted(found))


def join_numbers(wanted: Collection[int]) -> str:
    """The shortest text that ``numbers`` reads back."""
    runs: list[tuple[int, int]] = []
    for number in sorted(wanted):
        if runs and runs[-1][1] == number - 1:
            runs[-1] = (runs[-1][0], number)
        else:
            runs.append((number, number))
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


def is_right(path: Path, part: Part, task: Task) -> bool:
    """Whether the file at ``path`` is that part. Raises OSError."""
    if path.is_symlink() or not path.is_file() or path.stat().st_size != part.size:
        return False
    return digest_of(path, task) == part.sha256


def digest_of(path: Path, task: Task) -> str:
    """SHA-256 of a file. Raises OSError."""
    digest = hashlib.sha256()
    with path.open("rb", buffering=0) as stream:
        while piece := stream.read(_BUFFER_BYTES):
            digest.update(piece)
            task.advance(len(piece))
    return digest.hexdigest()


def boundaries(parts: Sequence[Part]) -> tuple[int, ...]:
    """Where each part begins in the whole, in bytes, and at last where the whole ends."""
    places = [0]
    for part in parts:
        places.append(places[-1] + part.size)
    return tuple(places)
