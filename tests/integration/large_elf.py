"""Libraries of hundreds of megabytes, made in a second, and the memory that reading one takes."""

from __future__ import annotations

import re
import struct
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

_BASE, _HEADERS, _TILE = 0x400000, 0x1000, 1 << 20
_NOP, _RET, _SDOT, _CALL = 0xD503201F, 0xD65F03C0, 0x4E829420, 0x94000000
_SYMBOL = np.dtype(
    [("name", "<u4"), ("info", "u1"), ("other", "u1"), ("index", "<u2"), ("value", "<u8"), ("size", "<u8")]
)
_CHILD = """
import resource, sys
from pathlib import Path
if sys.argv[2] != "-":
    resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[2]),) * 2)
from sampan.audit.audit import audit
from sampan.spec.target import CpuFacts, OsFacts, TargetProfile
target = TargetProfile("t", "aarch64", OsFacts("linux", "Linux"), CpuFacts("any", ("fp", "asimd")), 65536)
print(*(one.code for one in audit([Path(sys.argv[1])], target).findings))
"""


def write(path: Path, code: int, symbols: int) -> Path:
    """An A64 program with so many bytes of code and so many function symbols, spread over it evenly."""
    start = _HEADERS + code
    names = start + 24 * (symbols + 1)
    rows = [(0, 0, 0, 0, 0, 0), (1, 6, _BASE + _HEADERS, _HEADERS, code, 0)]
    rows += [(2, 0, 0, start, 24 * (symbols + 1), 3), (3, 0, 0, names, 3, 0)]
    header = b"\x7fELF\x02\x01\x01" + bytes(9)
    header += struct.pack(
        "<HHIQQQIHHHHHH", 2, 183, 1, _BASE + _HEADERS, 64, names + 8, 0, 64, 56, 1, 64, len(rows), 0
    )
    header += struct.pack("<IIQQQQQQ", 1, 5, 0, _BASE, _BASE, start, start, 0x10000)
    with path.open("wb") as stream:
        stream.write(header.ljust(_HEADERS, b"\0"))
        for done in range(0, code, _TILE):
            stream.write(_tile(done)[: code - done])
        stream.write(bytes(24))
        for low in range(0, symbols, _TILE):
            table = np.zeros(min(_TILE, symbols - low), _SYMBOL)
            table["name"], table["info"], table["index"] = 1, 2, 1
            table["value"] = _BASE + _HEADERS + (np.arange(low, low + len(table)) * code // symbols & ~3)
            table.tofile(stream)
        stream.write(b"\0f\0".ljust(8, b"\0"))
        for kind, flags, address, offset, size, link in rows:
            stream.write(struct.pack("<IIQQQQIIQQ", 0, kind, flags, address, offset, size, link, 0, 8, 0))
    return path


def _tile(seed: int) -> bytes:
    """Functions of 64 words: a call to somewhere near, padding, a return; in every 64th a dot product."""
    words = np.full(_TILE // 4, _NOP, "<u4")
    words[::64] = _CALL | np.random.default_rng(seed).integers(0, 1 << 18, len(words) // 64).astype("<u4")
    words[1 :: 64 * 64] = _SDOT
    words[63::64] = _RET
    return words.tobytes()


@dataclass(frozen=True)
class Spent:
    """Peaks of one process in bytes: of its own memory, and of mapped files, which the kernel takes back at will."""

    own: int
    files: int
    seconds: float
    said: str


def audited(path: Path, *, beside: int | None = None) -> Spent:
    """Audit a file in a process of its own and watch that. ``beside``: bytes of addresses that it may take beside the
    file, which it maps (RLIMIT_AS): with one more it dies of MemoryError."""
    limit = "-" if beside is None else str(path.stat().st_size + beside)
    started, own, files = time.monotonic(), 0, 0
    with subprocess.Popen([sys.executable, "-c", _CHILD, path, limit], stdout=subprocess.PIPE, text=True) as child:
        while child.poll() is None:
            text = Path(f"/proc/{child.pid}/status").read_text(encoding="ascii")
            found = {name: int(size) << 10 for name, size in re.findall(r"(Rss\w+):\s+(\d+) kB", text)}
            own, files = max(own, found.get("RssAnon", 0)), max(files, found.get("RssFile", 0))
            time.sleep(0.005)
        said = child.communicate()[0]
    assert child.returncode == 0
    return Spent(own, files, time.monotonic() - started, said.strip())
