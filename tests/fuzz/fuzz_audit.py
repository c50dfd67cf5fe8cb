"""Feed the audit damaged files until time is up; keep those that it does not survive. See README.md.

nice -n 10 .venv/bin/python tests/fuzz/fuzz_audit.py --minutes 5 [--seed N] [--real FOLDER]

Exit code 1 where there was an input that raised, took more than 10 s or took memory out of proportion: it is in
tests/data/audit-hostile then, which the unit tests read.
"""

from __future__ import annotations

import argparse
import faulthandler
import os
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.fuzz.seeds import add_to_corpus, seeds
from tests.fuzz.trial import Run, keep, late

HARD_SECONDS = 120  # of one input, then its process is stuck in C and is ended
ADDRESSES = 3 << 30  # bytes of the whole process


def work(place: Path, seed: int, end: float, known: list[tuple[str, bytes]], corpus: Path | None) -> int:
    """One process until time is up. The exit code."""
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, ADDRESSES))
    signal.signal(signal.SIGPROF, late)
    faulthandler.enable()
    tempfile.tempdir = str(place)
    run = Run(random.Random(seed), list(known), place)
    started = shown = time.monotonic()
    while time.monotonic() < end:
        run.step()
        if time.monotonic() > shown + 60 or time.monotonic() >= end:
            shown = time.monotonic()
            print(
                f"{(shown - started) / 60:.1f} min: {run.count} inputs, {run.lines.seen} lines, {run.grown} kept for"
                f" new lines, {run.faults} not survived, slowest {run.slowest:.2f} s, most {run.largest >> 20} MiB,"
                f" seed {seed}",
                flush=True,
            )
    if corpus and run.grown:
        add_to_corpus(run.corpus[-run.grown :], corpus)
    left = [one.name for one in place.iterdir()]
    print(*(f"left behind: {name}" for name in left), sep="\n", end="\n" if left else "")
    return 1 if run.faults or left else 0


def main() -> int:
    """0 where every input was survived."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--real", type=Path, help="a folder with real libraries, small ones of which are used too")
    parser.add_argument("--corpus", type=Path, help="a zip to write: the kept corpus and what led to new lines")
    chosen = parser.parse_args()
    known = seeds(sorted(chosen.real.rglob("*")) if chosen.real else [])
    print(f"{len(known)} files to begin with", flush=True)
    end, seed, worst = time.monotonic() + 60 * chosen.minutes, chosen.seed, 0
    while time.monotonic() < end:
        with tempfile.TemporaryDirectory(prefix="fuzz-audit-") as name:
            worst = max(worst, _watched(Path(name), seed, end, known, chosen.corpus))
        seed += 1
    return worst


def _watched(place: Path, seed: int, end: float, known: list[tuple[str, bytes]], corpus: Path | None) -> int:
    """One process; where it dies or hangs, its input is kept."""
    child = os.fork()
    if not child:
        os._exit(_guarded(place, seed, end, known, corpus))
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done and os.WIFEXITED(status):
            return os.WEXITSTATUS(status)
        inputs = [one for one in place.iterdir() if one.is_file()]
        stuck = [one for one in inputs if _age(one) > HARD_SECONDS]
        if done or stuck:
            for one in inputs:
                keep(one.name, one.read_bytes(), f"ended the process: {status:#x}" if done else "hangs")
            if not done:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
            return 1
        time.sleep(0.5)


def _age(path: Path) -> float:
    try:
        return time.time() - path.stat().st_mtime
    except FileNotFoundError:  # done meanwhile
        return 0


def _guarded(place: Path, seed: int, end: float, known: list[tuple[str, bytes]], corpus: Path | None) -> int:
    try:
        return work(place, seed, end, known, corpus)
    except BaseException:
        traceback.print_exc()
        return 2


if __name__ == "__main__":
    sys.exit(main())
