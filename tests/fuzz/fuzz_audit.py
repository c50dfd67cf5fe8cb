"""Feed the audit damaged files until time is up; keep those that it does not survive.

nice -n 10 .venv/bin/python tests/fuzz/fuzz_audit.py --minutes 5 [--seed N]

Each input is a sound one (archives of every form, a wheel, fat binaries, ELF files, what was trouble before) with
bytes changed, moved, cut or repeated. One that raises, takes more than 10 s or more than 3 GiB goes to
tests/data/audit-hostile, which the unit tests read. Exit code 1 where there was one.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path
from types import FrameType

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.unit.audit import gpu_files
from tests.unit.audit.conftest import Elf
from tests.unit.audit.test_audit_archives import COMPRESSED, tar, zipped
from tests.unit.audit.test_audit_wheels import NAME, wheel

from sampan.audit.audit import audit
from sampan.audit.elf import MAGIC
from sampan.spec.target import CpuFacts, GpuFacts, LibcFacts, OsFacts, TargetProfile

KEPT = Path(__file__).parents[1] / "data" / "audit-hostile"
SECONDS, MEMORY = 10, 3 << 30
GPU = (GpuFacts("Tesla P4", "6.1", "535.161.07"),)
LIBC = LibcFacts("2.28", "3.4.24", "1.3.11")
PROFILES = [
    TargetProfile(
        "a64", "aarch64", OsFacts("kylin", "Kylin"), CpuFacts("any", ("fp", "asimd")), 65536, LIBC, gpus=GPU
    ),
    TargetProfile("x64", "x86_64", OsFacts("centos", "CentOS"), CpuFacts("any", ("sse2",)), 4096, LIBC, gpus=GPU),
]
EDGES = (b"\0" * 4, b"\xff" * 4, b"\xff\xff\xff\x7f", b"\0\0\0\x80", b"\1\0\0\0", b"\xff" * 8, b"\0" * 8)


def seeds() -> list[tuple[str, bytes]]:
    """Sound inputs: (name, content)."""
    needs = {"libc.so.6": {"GLIBC_2.17": ["puts"], "GLIBC_2.34": ["dlopen"]}}
    plain = Elf(
        soname="x.so", needed=["libc.so.6"], needs=needs, provides=["X_1"], runpath="$ORIGIN/../x.libs"
    ).build()
    images = [gpu_files.Image(61), gpu_files.Image(75, flags=gpu_files.ZSTD), gpu_files.Image(90, ptx=True)]
    fat = gpu_files.library(gpu_files.container(*images), gpu_files.container(gpu_files.Image(80)))
    members = {"pkg/x.so": plain, "pkg/fat.so": fat, "notes": b"text" * 50}
    found = [("x.so", plain), ("fat.so", fat), ("k.cubin", gpu_files.cubin(75)), (NAME, wheel(members))]
    found += [(f"a{suffix}", pack(tar({**members}))) for suffix, pack in COMPRESSED.items()]
    found += [("a.zip", zipped(members)), ("b.zip", zipped({"in.tar": tar({**members}), "in.whl": wheel(members)}))]
    here = Path(sys.executable).resolve()
    found += [("program", here.read_bytes()[:300_000])] if here.read_bytes()[:4] == MAGIC else []
    return [*found, *((each.name, each.read_bytes()) for each in sorted(KEPT.glob("*")))]


def hurt(data: bytes, dice: random.Random) -> bytes:
    """One to six changes."""
    found = bytearray(data)
    for _ in range(dice.randint(1, 6)):
        if not found:
            return b""
        at = dice.randrange(len(found))
        length = dice.choice((1, 2, 4, 8, 64, 512))
        match dice.randrange(6):
            case 0:
                found[at] ^= 1 << dice.randrange(8)
            case 1:
                edge = dice.choice(EDGES)
                found[at : at + len(edge)] = edge
            case 2:
                found[at : at + length] = dice.randbytes(length)
            case 3:
                del found[at : at + length]
            case 4:
                piece = found[at : at + length]
                found[at:at] = piece * dice.choice((1, 2, 50))
            case _:
                del found[at:]
    return bytes(found)


def _late(_signal: int, _frame: FrameType | None) -> None:
    raise TimeoutError(f"more than {SECONDS} s")


def main() -> int:
    """0 where every input was survived."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    chosen = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    signal.signal(signal.SIGALRM, _late)
    dice, known = random.Random(chosen.seed), seeds()
    end, count, kept, slowest = time.monotonic() + 60 * chosen.minutes, 0, 0, 0.0
    with tempfile.TemporaryDirectory() as name:
        while time.monotonic() < end:
            title, data = dice.choice(known)
            spent, fault = _try(Path(name) / title, hurt(data, dice), dice.choice(PROFILES))
            count, slowest = count + 1, max(slowest, spent)
            kept += fault
    print(f"{count} inputs, {kept} not survived, slowest {slowest:.2f} s, seed {chosen.seed}")
    return 1 if kept else 0


def _try(path: Path, data: bytes, profile: TargetProfile) -> tuple[float, bool]:
    path.write_bytes(data)
    started = time.monotonic()
    signal.alarm(SECONDS)
    try:
        audit([path], profile)
    except Exception:
        signal.alarm(0)
        place = KEPT / f"{hashlib.sha256(data).hexdigest()[:8]}-{path.name}"
        place.write_bytes(data)
        print(f"{place.name} for {profile.name}\n{traceback.format_exc()}", flush=True)
        return time.monotonic() - started, True
    finally:
        signal.alarm(0)
        path.unlink()
    return time.monotonic() - started, False


if __name__ == "__main__":
    sys.exit(main())
