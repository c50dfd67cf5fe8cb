"""Sizes as people write and read them."""

from __future__ import annotations

import math
import re

from sampan.errors import UsageError

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_FORM = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?", re.IGNORECASE)


def parse_size(text: str) -> int:
    """Bytes of ``14G``, ``512M``, ``1.5GiB``; units are powers of 1024, as systemd's. Raises UsageError."""
    match = _FORM.fullmatch(text.strip())
    if not match or not 0 < float(match[1]) < math.inf:
        raise UsageError("cli.size", text=text)
    return int(float(match[1]) * _UNITS[match[2].upper()])


def show_size(count: int) -> str:
    """``158 MB``, in powers of 1000 as disks and file managers count."""
    value = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000 or unit == "GB":
            return f"{value:.0f} {unit}" if value >= 100 or unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    raise AssertionError
