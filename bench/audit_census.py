"""The census of A64 instructions beside capstone's linear sweep, on the same file in the same run.

.venv/bin/python bench/audit_census.py FILE.so [--sweep-megabytes 2]

*scan* is the census alone (every word looked up, data sorted out, counted by function); *whole* adds what else the
audit does with a file: functions, symbols, calls, guards, what the start reaches. capstone decodes without details,
which is its fastest way, and only a part of the code: it needs minutes for a large file.
"""

from __future__ import annotations

import argparse
import mmap
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path

from capstone import CS_ARCH_AARCH64, CS_MODE_ARM, Cs

from sampan.audit.instructions.binary import Binary
from sampan.audit.instructions.census import census
from sampan.audit.instructions.functions import Functions
from sampan.audit.instructions.words import Scanner

RUNS = 3


def best(work: Callable[[], object]) -> float:
    """Seconds of the fastest of a few runs."""
    found = []
    for _ in range(RUNS):
        started = time.perf_counter()
        work()
        found.append(time.perf_counter() - started)
    return min(found)


def main() -> None:
    """Print a table: MB of code a second on one core, and the ratio to capstone."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--sweep-megabytes", type=float, default=2)
    chosen = parser.parse_args()
    with chosen.file.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
        binary = Binary(data)
        size = sum(span.end - span.start for span in binary.code)
        largest = max(binary.code, key=lambda span: span.end - span.start)
        part = min(largest.end - largest.start, int(chosen.sweep_megabytes * 1e6))
        piece = data[largest.offset : largest.offset + part]
        functions = Functions(binary)
        scanner = Scanner(binary, functions, "aarch64")
        scan = size / best(scanner.scan)
        whole = size / best(lambda: census(chosen.file, "aarch64", program=".so" not in chosen.file.name))
        decoder = Cs(CS_ARCH_AARCH64, CS_MODE_ARM)
        decoder.skipdata = True
        sweep = part / best(lambda: deque(decoder.disasm_lite(piece, largest.start), maxlen=0))
        del scanner, functions
        binary.close()
    print(f"{chosen.file.name}: {size / 1e6:.1f} MB of code, best of {RUNS} runs, one core")
    for what, speed in (("scan", scan), ("whole", whole), ("capstone, linear sweep", sweep)):
        print(f"{what:24s} {speed / 1e6:8.1f} MB/s   x {speed / sweep:.1f}")


if __name__ == "__main__":
    main()
