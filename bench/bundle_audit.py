"""Sealing, packing, verifying and auditing a bundle, beside cp and tar on the same files in the same run.

.venv/bin/python bench/bundle_audit.py out/NAME-1.work/bundle/NAME-1 --target kylin-v10-sp3-kunpeng920
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from sampan.audit.audit import audit
from sampan.bundle.pack import pack
from sampan.bundle.seal import seal
from sampan.bundle.unpack import unpack
from sampan.bundle.verify import verify
from sampan.survey import known

RUNS = 3


def best(work: Callable[[], object], clear: Callable[[], object] = lambda: None) -> float:
    """Seconds of the fastest of a few runs; ``clear`` is not counted."""
    found = []
    for _ in range(RUNS):
        clear()
        started = time.perf_counter()
        work()
        found.append(time.perf_counter() - started)
    return min(found)


def main() -> None:
    """Print a table: seconds, MB/s, and the ratio to the plain tool."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bundle", type=Path)
    parser.add_argument("--target", default="kylin-v10-sp3-kunpeng920")
    chosen = parser.parse_args()
    profile = known.load(chosen.target)
    with tempfile.TemporaryDirectory(dir=chosen.bundle.parent) as name:
        place = Path(name)
        folder = place / "copy"
        plain_copy = best(
            lambda: subprocess.run(["cp", "-r", chosen.bundle, folder], check=True),
            lambda: shutil.rmtree(folder, ignore_errors=True),
        )
        plain_tar = best(lambda: subprocess.run(["tar", "cf", place / "plain.tar", "-C", folder, "."], check=True))
        plain_sync = best(
            lambda: subprocess.run(["dd", f"if={place}/plain.tar", f"of={place}/again", *DD], check=True)
        )
        size = (place / "plain.tar").stat().st_size
        tar = Path(pack(folder, place).path)
        there = place / "there"
        report = audit([folder], profile)
        table = {
            "cp -r": (plain_copy, 1.0),
            "tar": (plain_tar, 1.0),
            "dd conv=fsync of the tar": (plain_sync, 1.0),
            "seal": ((spent := best(lambda: seal(folder, None))), spent / plain_copy),
            "pack (hash and sync)": ((spent := best(lambda: pack(folder, place))), spent / plain_sync),
            "verify": ((spent := best(lambda: verify(folder))), spent / plain_copy),
            "unpack": (
                (spent := best(lambda: unpack(tar, there), lambda: shutil.rmtree(there, ignore_errors=True))),
                spent / plain_copy,
            ),
            f"audit of {report.elf_files} ELF in {report.files} files": (
                (spent := best(lambda: audit([folder], profile))),
                spent / plain_copy,
            ),
        }
        print(f"{size / 1e6:.0f} MB, best of {RUNS} runs")
        for what, (seconds, ratio) in table.items():
            print(f"{what:44s} {seconds:7.2f} s {size / 1e6 / seconds:8.0f} MB/s   x {ratio:.2f}")


DD = ("bs=4M", "conv=fsync", "status=none")

if __name__ == "__main__":
    main()
