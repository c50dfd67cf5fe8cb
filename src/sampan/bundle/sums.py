"""SHA256SUMS: what `sha256sum -c` of coreutils and BusyBox read, every file but itself, sorted by bytes."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from sampan.bundle import layout

_LINE = re.compile(r"([0-9a-f]{64}) [ *](.+)")
_BUFFER_BYTES = 1 << 20
_MAX_THREADS = 4  # hashing runs outside the interpreter's lock, and a disk serves no more at once


def hash_file(path: Path) -> str:
    """SHA-256 in hexadecimal. Raises OSError."""
    digest = hashlib.sha256()
    buffer = memoryview(bytearray(_BUFFER_BYTES))
    with path.open("rb", buffering=0) as stream:
        while count := stream.readinto(buffer):
            digest.update(buffer[:count])
    return digest.hexdigest()


def hash_files(folder: Path, paths: Iterable[str], done: Callable[[], None] = lambda: None) -> dict[str, str]:
    """SHA-256 by path. Raises OSError."""
    wanted = tuple(paths)
    found = {}
    with ThreadPoolExecutor(min(_MAX_THREADS, os.cpu_count() or 1)) as pool:
        for path, digest in zip(wanted, pool.map(lambda path: hash_file(folder / path), wanted), strict=True):
            found[path] = digest
            done()
    return found


def render(digests: Mapping[str, str]) -> bytes:
    """The file's text. Names that coreutils would escape never get here: ``layout.fault_of_name`` refuses them."""
    ordered = sorted(digests, key=os.fsencode)
    return "".join(f"{digests[path]}  {path}\n" for path in ordered).encode()


def parse(text: bytes) -> dict[str, str] | None:
    """SHA-256 by path, or None where the text is empty or damaged, names a path twice or one that is not safe."""
    found: dict[str, str] = {}
    try:
        lines = text.decode().split("\n")
    except UnicodeDecodeError:
        return None
    if lines.pop() != "":  # the last line must be ended: a cut file must not pass
        return None
    for line in lines:
        match = _LINE.fullmatch(line)
        if not match or match[2] in found or match[2] in layout.UNLISTED or layout.fault_of_name(match[2]):
            return None
        found[match[2]] = match[1]
    return found or None


def content_digest(folder: Path) -> str:
    """What a sealed bundle contains, as one SHA-256: SHA256SUMS without the lines of what sealing itself writes.

    It stays the same when the bundle is sealed again with its audit and rehearsal. Raises OSError.
    """
    own = {f"  {name}" for name in (layout.MANIFEST, layout.REHEARSAL, layout.APPROVAL)}
    lines = (folder / layout.SUMS).read_text(encoding="utf-8").splitlines()
    return hashlib.sha256("\n".join(line for line in lines if line[64:] not in own).encode()).hexdigest()
