"""File systems of a chosen size, so that a test can fill one."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small_disk(place: Path, mebibytes: int) -> Iterator[Path]:
    """A tmpfs of that size at ``place``, which is made. Skips where it cannot be mounted."""
    if os.getuid() or shutil.which("mount") is None:
        pytest.skip("mounting a small file system takes root")
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={mebibytes}m", "tmpfs", str(place)]
    mounted = subprocess.run(command, capture_output=True, text=True, check=False)
    if mounted.returncode:
        pytest.skip(f"this machine does not let us mount a small file system: {mounted.stderr.strip()}")
    try:
        yield place
    finally:
        # lazily: what a failed test left running may still stand in it
        subprocess.run(["umount", "-l", str(place)], check=True)
