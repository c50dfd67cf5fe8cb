"""Words of this machine that must not travel: the folders of its user and of its cache.

Compilers write source paths into assertions, Python writes them into compiled files; either tells the far side who
built a bundle, and makes two machines build different bytes.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterable, Sequence
from pathlib import Path

from sampan.errors import VerificationError


def refuse(folder: Path, paths: Iterable[str], words: Sequence[str]) -> None:
    """Raise VerificationError for the first of ``paths`` below ``folder`` that holds one of ``words``."""
    wanted = [word.encode() for word in words if word]
    for path in paths if wanted else ():
        for word in _found(folder / path, wanted):
            raise VerificationError("bundle.leak", path=path, word=word)


def _found(path: Path, words: list[bytes]) -> list[str]:
    if path.stat().st_size == 0:  # an empty file cannot be mapped
        return []
    with path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
        return [word.decode() for word in words if data.find(word) >= 0]
