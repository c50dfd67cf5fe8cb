"""Speed of parity parts: splitting with and without, and computing lost parts again.

.venv/bin/python bench/parity.py [MIB] [PARTS] [PARITY]
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from sampan.carry.mend import join_mended, mend
from sampan.carry.split import split
from sampan.edge.progress import SilentProgress

T = TypeVar("T")
QUIET = SilentProgress()


def main(mebibytes: int = 1024, count: int = 40, parity: int = 2) -> None:
    """Print seconds and MB/s of each step."""
    with tempfile.TemporaryDirectory() as name:
        folder, size = Path(name), mebibytes << 20
        whole = folder / "x.tar"
        with whole.open("wb") as sink:
            for _ in range(mebibytes):
                sink.write(os.urandom(1 << 20))
        _timed("split", size, lambda: split(whole, folder / "plain", str(count), None, QUIET))
        listed = _timed(
            f"split, {parity} parity",
            size,
            lambda: split(whole, folder / "p", str(count), None, QUIET, parity_parts=parity),
        )
        for number in range(parity):
            (folder / "p" / listed.parts[3 * number].file).unlink()
        _timed(f"mend {parity} parts", size, lambda: mend(folder / "p", listed, QUIET))
        _timed("join", size, lambda: join_mended(folder / "p", listed, folder / "out", QUIET))


def _timed(what: str, size: int, act: Callable[[], T]) -> T:
    started = time.perf_counter()
    result = act()
    seconds = time.perf_counter() - started
    print(f"{what:20} {seconds:6.2f} s  {size / 1e6 / seconds:6.0f} MB/s")
    return result


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
