"""How long a real bundle takes to install, upgrade and roll back, and `sampan verify` against `sha256sum`.

    .venv/bin/python bench/install_time.py BUNDLE            # the unpacked folder of a bundle for this machine

Runs the bundle's own programs. Without root's systemd the files alone are installed (`--no-service`), into a fresh
folder beside the bundle, so reading and writing are on the same disk; the engine's start-up is then not in the times.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def seconds(*words: str | Path, cwd: Path | None = None) -> float:
    """Of one command that must go well."""
    environ = {key: value for key, value in os.environ.items() if key != "SAMPAN_BUNDLE"}
    started = time.perf_counter()
    done = subprocess.run([*map(str, words)], cwd=cwd, env=environ, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, words))}: {done.returncode}\n{done.stdout}{done.stderr}")
    return time.perf_counter() - started


def middle(runs: int, *words: str | Path, cwd: Path | None = None) -> float:
    """The median of some runs."""
    return statistics.median(seconds(*words, cwd=cwd) for _ in range(runs))


def main() -> None:
    """Print one line a measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bundle", type=Path)
    parser.add_argument("--runs", type=int, default=3)
    given = parser.parse_args()
    bundle: Path = given.bundle.resolve()
    size = sum(path.stat().st_size for path in bundle.rglob("*") if path.is_file())
    print(f"{bundle.name}: {size / 1e6:.0f} MB, {os.cpu_count()} CPUs; median of {given.runs}")
    sums = middle(given.runs, "sha256sum", "--quiet", "-c", "SHA256SUMS", cwd=bundle)
    start = middle(given.runs, bundle / "sampan", "--version")
    verify = middle(given.runs, bundle / "sampan", "verify", bundle)
    print(f"sha256sum -c            {sums:6.2f} s   {size / sums / 1e6:6.0f} MB/s")
    rate = size / (verify - start) / 1e6
    print(f"sampan verify           {verify:6.2f} s   {rate:6.0f} MB/s without its start of {start:.2f} s")
    print(f"  in ratio to sha256sum {(verify - start) / sums:6.2f}")
    folder = Path(tempfile.mkdtemp(prefix=".install-time-", dir=bundle.parent))
    try:
        _life(bundle, folder / "prefix")
    finally:
        shutil.rmtree(folder)


def _life(bundle: Path, prefix: Path) -> None:
    words = (bundle / "install.sh", "--no-service", "--prefix", prefix)
    print(f"install.sh              {seconds(*words):6.2f} s   (goal: 10 s)")
    print(f"install.sh again        {seconds(*words):6.2f} s")
    newer = prefix.with_name("newer")
    shutil.copytree(bundle, newer)
    _renumber(newer)
    own = prefix / "current/sampan"
    print(f"upgrade from a folder   {seconds(own, 'upgrade', newer, '--unsigned'):6.2f} s")
    print(f"rollback                {seconds(own, 'rollback'):6.2f} s")
    print(f"uninstall               {seconds(own, 'uninstall'):6.2f} s")


def _renumber(folder: Path) -> None:
    """The same bundle as the next release: what names the release is written anew, and listed."""
    import hashlib

    plan = json.loads((folder / "plan.json").read_text(encoding="utf-8"))
    plan["release"] += 1
    (folder / "plan.json").write_text(json.dumps(plan, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    manifest["predicate"]["release"] += 1
    new = {"plan.json": hashlib.sha256((folder / "plan.json").read_bytes()).hexdigest()}
    for subject in manifest["subject"]:
        subject["digest"]["sha256"] = new.get(subject["name"], subject["digest"]["sha256"])
    (folder / "manifest.json").write_text(json.dumps(manifest, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    new["manifest.json"] = hashlib.sha256((folder / "manifest.json").read_bytes()).hexdigest()
    lines = (folder / "SHA256SUMS").read_text(encoding="utf-8").splitlines()
    fresh = (f"{new.get(line[66:], line[:64])}  {line[66:]}\n" for line in lines)
    (folder / "SHA256SUMS").write_text("".join(fresh), encoding="utf-8")
    (folder / "SHA256SUMS.dsse").unlink(missing_ok=True)


if __name__ == "__main__":
    main()
