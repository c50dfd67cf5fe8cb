"""Bytes for people."""

from __future__ import annotations


def human(size: int) -> str:
    """``1.5 GiB``, ``120 MiB``, ``3 KiB``: at most three digits before the unit, one after the point above MiB."""
    value = float(size)
    for unit in ("B", "KiB", "MiB"):
        if abs(value) < 1024:
            return f"{value:.0f} {unit}"
        value /= 1024
    return f"{value:.1f} GiB"
