"""How small and how fast a delta is: a new engine in a service of 440 MB.

    .venv/bin/python bench/delta_pack.py FOLDER [--megabytes 440]

FOLDER is a bundle's unpacked, sealed folder. It is copied twice below the system's place for temporary files with
weights that make it as large as asked; the second copy has other engine executables. The delta is packed from the
first one's receipt and made whole again. Seconds are set against sha256sum of the full bundle's files on the same
disk. Exit code 1 where the delta is 15 MB or more, or what it makes is not the full bundle.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from sampan.bundle import delta, delta_pack, layout, receipt, sums
from sampan.bundle.seal import seal
from sampan.edge.progress import SilentProgress
from sampan.flow import carrying
from sampan.spec.artefacts import Rehearsal

T = TypeVar("T")
LIMIT_BYTES = 15_000_000
PROVED = Rehearsal("skipped", None, "", 65536, emulated=False)


def timed(work: Callable[[], T]) -> tuple[T, float]:
    started = time.perf_counter()
    value = work()
    return value, time.perf_counter() - started


def release(source: Path, place: Path, number: int, size: int, *, other_engine: bool) -> Path:
    """A copy as release ``number``; its manifest promises what it now holds."""
    manifest = json.loads((source / layout.MANIFEST).read_bytes())
    facts: dict[str, Any] = manifest["predicate"]
    facts["release"] = number
    folder = Path(shutil.copytree(source, place / f"{facts['name']}-{number}"))
    weights = folder / facts["weights"]["file"]
    rest = size - sum(entry.size for entry in layout.entries(folder) if entry.kind == "file")
    with weights.open("ab") as sink:
        noise = random.Random(1)  # noqa: S311
        for _ in range(max(0, rest) >> 20):
            sink.write(noise.randbytes(1 << 20))
    facts["weights"]["sha256"] = sums.hash_file(weights)
    for variant in facts["engine"]["variants"]:
        for program in (folder / layout.ENGINE / facts["engine"]["name"] / variant["name"]).iterdir():
            if other_engine:
                data = bytearray(program.read_bytes())
                data[len(data) // 2] ^= 0xFF
                program.write_bytes(data)
            variant["sha256"] = hashlib.sha256(program.read_bytes()).hexdigest()
    (folder / layout.MANIFEST).write_text(json.dumps(manifest))
    seal(folder, PROVED)
    return folder


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--megabytes", type=int, default=440)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        place, size = Path(scratch), given.megabytes * 1_000_000
        old = release(given.folder, place, 1, size, other_engine=False)
        new = release(given.folder, place, 2, size, other_engine=True)
        listed = [str(old / path) for path in sums.parse((old / layout.SUMS).read_bytes()) or {}]
        _, base = timed(lambda: subprocess.run(["sha256sum", *listed], stdout=subprocess.DEVNULL, check=True))
        code, asked = timed(lambda: carrying.receipt_of(old, SilentProgress()).text)
        since = delta_pack.since_receipt(receipt.read(code, where="-"))
        made, packed = timed(lambda: delta_pack.make(new, *since, place / "carry"))
        whole, rebuilt = timed(lambda: delta.rebuild(Path(made.path), old, place / "target"))
        same = (whole / layout.SUMS).read_bytes() == (new / layout.SUMS).read_bytes()
        full, small = made.full_bytes / 1e6, made.size_bytes / 1e6
        print(f"bundle {full:.0f} MB, delta {small:.1f} MB, receipt {len(code)} letters")
        print(f"sha256sum {base:.1f} s")
        for name, seconds in (("receipt", asked), ("packing", packed), ("making it whole", rebuilt)):
            print(f"{name} {seconds:.1f} s, {seconds / base:.1f} of sha256sum")
        return 0 if same and made.size_bytes < LIMIT_BYTES else 1


if __name__ == "__main__":
    sys.exit(main())
