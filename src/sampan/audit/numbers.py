"""Versions as numbers that can be compared."""

from __future__ import annotations

import re

_VERSION = re.compile(r"([A-Za-z_]+?)_?(\d+(?:\.\d+)*)")


def split_version(version: str) -> tuple[str, tuple[int, ...]]:
    """``GLIBC_2.28`` -> ``("GLIBC", (2, 28))``; a version without a number has the number ``()``."""
    match = _VERSION.fullmatch(version)
    if not match:
        return version.partition("_")[0], ()
    return match[1], number(match[2])


def number(text: str) -> tuple[int, ...]:
    """``3.4.24`` -> ``(3, 4, 24)``; digits beyond any real version count as one large number."""
    return tuple(int(part[:9]) for part in text.split(".") if part.isdecimal())
