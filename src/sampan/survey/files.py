"""Reading small files of /proc and /sys, where a missing or refused file means: unknown."""

from __future__ import annotations

from pathlib import Path


def read_bytes(path: Path) -> bytes:
    """The file's bytes; empty where it is missing or may not be read."""
    try:
        return path.read_bytes()
    except OSError:
        return b""


def read_text(path: Path) -> str:
    """The file's text, decoded leniently; empty where it is missing or may not be read."""
    return read_bytes(path).decode("utf-8", "replace")
