"""What of a bundle another machine may have already, in few words: large files one by one, small ones by folder.

Workshop and target must cut alike, whatever their versions; so the rules belong to the receipt's version and never
change within it.
"""

from __future__ import annotations

import hashlib
import os
from collections import defaultdict
from collections.abc import Collection, Mapping

LARGE_BYTES = 256 << 10
MARK_BYTES = 6  # of a SHA-256; 48 bits. Two of some hundred units are alike by chance once in 10^9 receipts
_DEPTH = {"app": 2, "runtime": 3}  # a Python package; a folder such as runtime/lib/sys


def units(digests: Mapping[str, str], sizes: Mapping[str, int]) -> dict[str, tuple[str, ...]]:
    """Paths by mark (hexadecimal). ``digests``: SHA-256 by path; small files of no group belong to no unit."""
    found: dict[str, tuple[str, ...]] = {}
    groups: dict[str, list[str]] = defaultdict(list)
    for path, digest in digests.items():
        if sizes.get(path, 0) >= LARGE_BYTES:
            mark = digest[: 2 * MARK_BYTES]
            found[mark] = (*found.get(mark, ()), path)
        elif group := _group(path):
            groups[group].append(path)
    for paths in groups.values():
        ordered = sorted(paths, key=os.fsencode)
        listing = "".join(f"{digests[path]}  {path}\n" for path in ordered).encode()
        found[hashlib.sha256(listing).hexdigest()[: 2 * MARK_BYTES]] = tuple(ordered)
    return found


def _group(path: str) -> str | None:
    folders = path.split("/")[:-1]
    depth = _DEPTH.get(folders[0]) if folders else None
    return "/".join(folders[:depth]) if depth else None


def known(digests: Mapping[str, str], sizes: Mapping[str, int], marks: Collection[str]) -> frozenset[str]:
    """The paths that a machine with these marks has."""
    return frozenset(path for mark, paths in units(digests, sizes).items() if mark in marks for path in paths)
