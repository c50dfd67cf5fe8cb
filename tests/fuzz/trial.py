"""One damaged file after the other: what is tried, and what counts as not survived."""

from __future__ import annotations

import hashlib
import random
import signal
import time
import traceback
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from tests.fuzz.lines import Lines
from tests.fuzz.mutate import change
from tests.fuzz.seeds import KEPT

from sampan.audit import render
from sampan.audit.audit import audit
from sampan.spec import codec
from sampan.spec.target import CpuFacts, GpuFacts, LibcFacts, OsFacts, TargetProfile

SECONDS = 10  # of the processor, for one input: other work on the machine does not count
MEMORY, EACH = 320 << 20, 40  # peak bytes that one input may take, and so many times its size besides
GPU = (GpuFacts("Tesla P4", "6.1", "535.161.07"),)
LIBC = LibcFacts("2.28", "3.4.24", "1.3.11")
PROFILES = [
    TargetProfile(name, arch, OsFacts("kylin", "Kylin"), CpuFacts("any", features), page, LIBC, gpus=GPU)
    for name, arch, features, page in (
        ("a64", "aarch64", ("fp", "asimd"), 65536),
        ("x64", "x86_64", ("sse2",), 4096),
        ("la64", "loongarch64", (), 16384),
    )
]


class TooLate(BaseException):
    """Not an Exception: nothing in the audit may take it for an error of the file."""


@dataclass
class Run:
    """What one process has done."""

    dice: random.Random
    corpus: list[tuple[str, bytes]]
    place: Path
    lines: Lines = field(default_factory=lambda: Lines("/sampan/audit/"))
    count: int = 0
    grown: int = 0
    faults: int = 0
    slowest: float = 0.0
    largest: int = 0

    def step(self) -> None:
        """One input."""
        title, data = self._pick()
        data = change(data, self.dice, [content for _, content in self.corpus[-200:]])
        profile = self.dice.choice(PROFILES)
        started = time.process_time()
        fault, peak = self._try(title, data, profile)
        spent = time.process_time() - started
        fault = fault or (f"{spent:.1f} s" if spent > SECONDS else "")
        fault = fault or (f"{peak >> 20} MiB for {len(data)} bytes" if peak > MEMORY + EACH * len(data) else "")
        self.count, self.slowest, self.largest = self.count + 1, max(self.slowest, spent), max(self.largest, peak)
        if fault:
            self.faults += 1
            keep(title, data, f"for {profile.name}: {fault}")
        elif self.lines.fresh:
            self.grown += 1
            self.corpus.append((title, data))

    def _pick(self) -> tuple[str, bytes]:
        """Sound files and those that did something new, half and half."""
        fresh = self.corpus[-self.grown :] if self.grown else self.corpus
        return self.dice.choice(fresh if self.dice.random() < 0.5 else self.corpus)

    def _try(self, title: str, data: bytes, profile: TargetProfile) -> tuple[str, int]:
        """What went wrong, and the bytes of memory that it took."""
        path = self.place / title
        path.write_bytes(data)
        before = _memory("VmRSS", forget=True)
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        try:
            with self.lines:
                report = audit([path], profile)
            codec.to_json(report).encode()
            for row in render.rows(report):
                f"{row.path}{row.message}{row.fix}".encode()
        except (Exception, TooLate):
            return traceback.format_exc(), 0
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            path.unlink()
        return "", _memory("VmHWM") - before


def keep(title: str, data: bytes, what: str) -> None:
    """Into the corpus of what was trouble."""
    place = KEPT / f"{hashlib.sha256(data).hexdigest()[:8]}-{title.removeprefix('real-')[-40:]}"
    place.write_bytes(data)
    print(f"{place.name} {what}", flush=True)


def _memory(field_name: str, *, forget: bool = False) -> int:
    """Bytes, by /proc/self/status. ``forget``: the peak begins anew (proc(5), clear_refs)."""
    if forget:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    text = Path("/proc/self/status").read_text(encoding="ascii")
    return int(text.partition(f"{field_name}:")[2].split()[0]) << 10


def late(_signal: int, _frame: FrameType | None) -> None:
    """The answer to SIGPROF."""
    raise TooLate(f"more than {SECONDS} s")
