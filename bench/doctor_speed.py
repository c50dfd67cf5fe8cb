"""How fast the doctor reads: megabytes a second on one core, and its largest memory, for several kinds of log.

.venv/bin/python bench/doctor_speed.py [MEGABYTES]
"""

from __future__ import annotations

import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from sampan.doctor import knowledge, literals
from sampan.doctor.scan import Scanner

FAILURES = tuple(text for case in knowledge.cases().values() for text in case.yes)


def server(chance: random.Random) -> Iterator[str]:
    """A gateway's requests and an engine's slots: every line another."""
    while True:
        clock = f"12:{chance.randrange(60):02d}:{chance.randrange(60):02d}.{chance.randrange(1000):03d}"
        yield (
            f"2026-11-30T{clock}Z INFO request id={chance.getrandbits(64):016x} path=/v1/embeddings code=200 "
            f"tokens={chance.randrange(500)} ms={chance.random() * 50:.2f} client=10.0.0.{chance.randrange(255)}"
        )
        yield (
            f"Nov 30 {clock[:8]} kylin-01 llama-server[{chance.randrange(99999)}]: slot launch_slot_: "
            f"id {chance.randrange(8)} | task {chance.randrange(99999)} | run, n_tokens = {chance.randrange(900)}"
        )


def prose(chance: random.Random) -> Iterator[str]:
    """Words of failure in any order: many lines must be looked at, none means anything."""
    words = sorted({word for text in FAILURES for word in text.split() if word.isalpha()})
    while True:
        yield " ".join(chance.choices(words, k=16))


def failing(chance: random.Random) -> Iterator[str]:
    """Every tenth line is a failure."""
    lines = server(chance)
    while True:
        for _ in range(9):
            yield next(lines)
        yield chance.choice(FAILURES).splitlines()[0]


def chinese(chance: random.Random) -> Iterator[str]:
    """A Chinese application's log."""
    words = ("请求", "处理完成", "用户", "问题", "匹配", "结果", "耗时", "毫秒", "服务", "缓存", "没有", "权限")
    while True:
        yield f"2026-11-30 12:00:00 信息 {''.join(chance.choices(words, k=14))}：{chance.randrange(10**6)}"


def words(chance: random.Random) -> Iterator[str]:
    """Made to slow us down: nothing but the words that the scanner looks for."""
    while True:
        yield " ".join(chance.choices(NEEDED, k=20)) + f" {chance.random()}"


def alike(chance: random.Random) -> Iterator[str]:
    """Short lines that differ in their digits only, and digits decide."""
    while True:
        yield f"exited with code {chance.randrange(10_000)}"


def painted(chance: random.Random) -> Iterator[str]:
    """A terminal's recording: colours around every word."""
    lines = server(chance)
    while True:
        yield "\x1b[32m \x1b[0m".join(next(lines).split(" "))


def oneline(chance: random.Random) -> Iterator[str]:
    """All on one line: ``made`` takes its line ends away."""
    yield from server(chance)


NEEDED = sorted({word for case in knowledge.cases().values() for each in case.match for word in literals.words(each)})
KINDS: dict[str, Callable[[random.Random], Iterator[str]]] = {
    "server": server,
    "failing": failing,
    "chinese": chinese,
    "painted": painted,
    "oneline": oneline,
    "alike": alike,
    "prose": prose,
    "words": words,
    "rubbish": server,
}


def made(kind: str, size: int) -> bytes:
    """So many bytes of one kind of log, the same in every run."""
    if kind == "rubbish":
        return random.Random(7).randbytes(size)  # noqa: S311
    lines = KINDS[kind](random.Random(7))  # noqa: S311
    end = b" " if kind == "oneline" else b"\n"
    parts: list[bytes] = []
    length = 0
    while length < size:
        parts.append(next(lines).encode() + end)
        length += len(parts[-1])
    return b"".join(parts)


def measure(path: Path) -> None:
    """Print one row; run in a process of its own, so that its memory is that of reading alone."""
    knowledge.index()
    scanner = Scanner()
    started = time.process_time()
    with path.open("rb") as stream:
        scanner.read(stream, path.name)
    rate = scanner.found.size / (time.process_time() - started) / 1e6
    peak = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text(encoding="ascii"))
    memory = f"{int(peak[1]) >> 10} MiB" if peak else "?"
    hits = sum(scanner.found.times.values())
    lines = scanner.found.lines
    left = f", {scanner.found.left_out} left out" if scanner.found.left_out else ""
    print(f"{path.name:8} {rate:6.0f} MB/s {100 / rate:6.2f} s/100 MB {memory:>9}  {hits} hits, {lines} lines{left}")


def main() -> None:
    """Each kind is made here and read in a process of its own."""
    if len(sys.argv) > 2:
        measure(Path(sys.argv[2]))
        return
    size = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    with tempfile.TemporaryDirectory() as folder:
        for kind in KINDS:
            path = Path(folder) / kind
            path.write_bytes(made(kind, size * 1_000_000))
            subprocess.run([sys.executable, str(Path(__file__)), "-", str(path)], check=True)
            path.unlink()


if __name__ == "__main__":
    main()
