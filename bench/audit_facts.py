"""The census of CPU features by two versions of sampan over the same files: a change of the code must not change it.

.venv/bin/python bench/audit_facts.py REVISION PATH…

REVISION is what git calls the other version. Prints every use that only one of them sees, files that only one of them
cannot read, and the seconds that each took; exit code 1 where there was a difference. Files of the same content are
read once.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

_ROOT = Path(__file__).parents[1]
_CHILD = """
import json, sys, time
from pathlib import Path
from sampan.audit import elf
from sampan.audit.facts import ElfFacts
from sampan.audit.families import READERS
started, found = time.process_time(), {}
for path in json.load(sys.stdin):
    facts = elf.read(Path(path), READERS)
    code = facts.code if isinstance(facts, ElfFacts) else None
    found[path] = sorted(map(repr, code.uses)) + [f"{code.code_bytes} bytes"] if code else [repr(facts)[:80]]
json.dump({"seconds": time.process_time() - started, "files": found}, sys.stdout)
"""


def main() -> int:
    """0 where both see the same."""
    revision, *paths = sys.argv[1:]
    files = json.dumps([str(path) for path in _files(map(Path, paths))])
    with tempfile.TemporaryDirectory() as name:
        tar = subprocess.run(["git", "archive", revision, "src"], cwd=_ROOT, capture_output=True, check=True).stdout
        subprocess.run(["tar", "-x", "-C", name], input=tar, check=True)
        versions = [
            subprocess.Popen(
                [sys.executable, "-c", _CHILD],
                env={**os.environ, "PYTHONPATH": str(source / "src")},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for source in (Path(name), _ROOT)
        ]
        before, after = (json.loads(version.communicate(files)[0]) for version in versions)
    lines = [line for path in before["files"] for line in _compared(path, before["files"], after["files"])]
    print(*lines, sep="\n", end="\n" if lines else "")
    print(f"{len(before['files'])} files, {revision}: {before['seconds']:.0f} s, now: {after['seconds']:.0f} s")
    return 1 if lines else 0


def _files(paths: Iterator[Path]) -> Iterator[Path]:
    """Every ELF file, each content once."""
    seen: set[bytes] = set()
    for path in sorted(each for top in paths for each in ([top] if top.is_file() else top.rglob("*"))):
        if path.is_file() and not path.is_symlink():
            with path.open("rb") as stream:
                digest = hashlib.sha256(stream.read()).digest() if stream.read(4) == b"\x7fELF" else None
            if digest and digest not in seen:
                seen.add(digest)
                yield path.resolve()


def _compared(path: str, before: dict[str, list[str]], after: dict[str, list[str]]) -> Iterator[str]:
    for sign, own, other in (("-", before[path], after[path]), ("+", after[path], before[path])):
        yield from (f"{sign} {path}: {line}" for line in own if line not in other)


if __name__ == "__main__":
    sys.exit(main())
