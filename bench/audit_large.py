"""The audit of one library of 1 GiB of code, and of a thousand ELF files: seconds, and memory beside the file's size.

.venv/bin/python bench/audit_large.py [--tree FOLDER] [--place FOLDER]

The library is made for it (tests/integration/large_elf.py). *own* is the peak of the process's own memory (RssAnon),
which nothing gives back; *mapped* are pages of the file itself, which the kernel takes back when it needs them. The
process is limited to the file's size and 640 MiB of addresses: with one more it dies. The thousand files are copies
of those of ``--tree`` (unpacked wheels or packages), each of its own content; the cache is empty. The goal is 20 s on
two cores.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.integration import large_elf

from sampan.audit import elf

_FILES, _LIBRARY, _BESIDE = 1000, 1 << 30, 640 << 20


def main() -> None:
    """Print both."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tree", type=Path, help="a folder with aarch64 files")
    parser.add_argument("--place", type=Path, help="a folder with room for 1.2 GB")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=chosen.place) as name:
        library = large_elf.write(Path(name, "libx.so"), _LIBRARY, _LIBRARY // 256)
        size, spent = library.stat().st_size, large_elf.audited(library, beside=_BESIDE)
        print(
            f"one library of {size >> 20} MiB, limited to {_BESIDE >> 20} MiB beside it: {spent.seconds:.1f} s,"
            f" own memory {spent.own / size:.2f} of its size"
            f" ({spent.own >> 20} MiB), mapped {spent.files / size:.2f}"
        )
        library.unlink()
        if chosen.tree:
            _many(chosen.tree, Path(name))


def _many(tree: Path, place: Path) -> None:
    """Every file is a content of its own: a copy with a number at its end, so that no cache and no link helps."""
    sources = [path for path in sorted(tree.rglob("*")) if path.is_file() and not path.is_symlink()]
    sources = [path for path in sources if elf.is_elf(path)]
    size = 0
    for number in range(_FILES):
        data = sources[number % len(sources)].read_bytes() + number.to_bytes(4, "little")
        folder = place / "tree" / str(number // len(sources))
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{number}.so").write_bytes(data)
        size += len(data)
    words = [
        sys.executable,
        "-m",
        "sampan",
        "audit",
        str(place / "tree"),
        "--target",
        "kylin-v10-phytium-d2000",
        "--json",
    ]
    started, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(words, env={**os.environ, "SAMPAN_CACHE": str(place / "cache")}, capture_output=True, check=False)
    spent = time.perf_counter() - started
    after, cores = resource.getrusage(resource.RUSAGE_CHILDREN), len(os.sched_getaffinity(0))
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(f"{_FILES} ELF files, {size / 1e6:.0f} MB: {spent:.1f} s on {cores} cores, {cpu:.1f} s of the processor")


if __name__ == "__main__":
    main()
