"""What an engine really computes on: the device files that its process holds open.

An engine that finds no usable card often goes on with the CPU and says so in one line of its log; the answers are
right, only many times slower. Which files a driver's library opens is the kernel's and the vendors' naming: the
devices of Linux (Documentation/admin-guide/devices.txt: nvidia 195, dri 226), amdkfd's ``/dev/kfd``, Ascend's
``/dev/davinci0``.
"""

from __future__ import annotations

import re
from pathlib import Path

CPU = "cpu"
_CARDS = (
    (re.compile(r"/dev/nvidia\d+"), "cuda"),
    (re.compile(r"/dev/kfd"), "rocm"),
    (re.compile(r"/dev/davinci\d+"), "ascend"),
    (re.compile(r"/dev/dri/(?:renderD|card)\d+"), "gpu"),
)


def in_use(process: Path) -> str | None:
    """``cpu``, ``cuda``, ``rocm``, ``ascend`` or ``gpu`` (another) for ``/proc/PID``; None where nobody may look."""
    try:
        links = list((process / "fd").iterdir())
    except OSError:
        return None
    opened = [_target(link) for link in links]
    return next((name for pattern, name in _CARDS if any(map(pattern.fullmatch, opened))), CPU)


def _target(link: Path) -> str:
    try:
        return str(link.readlink())
    except OSError:  # closed meanwhile
        return ""
