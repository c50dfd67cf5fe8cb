"""The content-addressed cache: a result is kept under the hash of everything that it was made from.

<root>/downloads/<sha256>/<file name>
<root>/made/<stage>/<key>/…          results, complete or absent
<root>/made/<stage>/<key>.files      what each of them holds (see ``inventory``): without it, it is not taken
<root>/scratch/<stage>/<key>/…       work that can be continued
<root>/locks/…

Nobody writes into a result once it is made: one that was cut, changed or added to is made again.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from sampan.disk import filesystem_errors
from sampan.edge import inventory

_KEY_LENGTH = 24  # hexadecimal digits: 96 bits, no accident will meet twice


def default_root() -> Path:
    """SAMPAN_CACHE, else XDG_CACHE_HOME/sampan, else ~/.cache/sampan."""
    if os.environ.get("SAMPAN_CACHE"):
        return Path(os.environ["SAMPAN_CACHE"])
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "sampan"


def digest_of(key: Mapping[str, object]) -> str:
    """The name of a result: SHA-256 of its inputs as canonical JSON, shortened."""
    text = json.dumps(key, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:_KEY_LENGTH]


class DiskStore:
    """See ports.Store."""

    def __init__(self, root: Path | None = None) -> None:
        self.root = root or default_root()

    def get_or_make(self, stage: str, key: Mapping[str, object], make: Callable[[Path], None]) -> Path:
        """See ports.Store. Two processes that want the same result wait for one another."""
        final = self.root / "made" / stage / digest_of(key)
        if _is_whole(final):
            return final
        with filesystem_errors(final), self.locked(f"{stage}-{final.name}"):
            if _is_whole(final):
                return final
            final.parent.mkdir(parents=True, exist_ok=True)
            _remove(final)
            self._sweep(final)
            fresh = Path(tempfile.mkdtemp(prefix=f".{final.name}.", dir=final.parent))
            try:
                fresh.chmod(0o755)
                make(fresh)
                inventory.record(fresh, _inventory_of(final))
                fresh.rename(final)
            except BaseException:
                shutil.rmtree(fresh, ignore_errors=True)
                raise
        return final

    def find(self, stage: str, key: Mapping[str, object]) -> Path | None:
        """See ports.Store."""
        final = self.root / "made" / stage / digest_of(key)
        return final if _is_whole(final) else None

    def _sweep(self, final: Path) -> None:
        """Remove what a killed run of the same work left; the lock says that nobody is at it."""
        for left in final.parent.glob(f".{final.name}.*"):
            shutil.rmtree(left, ignore_errors=True)

    def scratch(self, stage: str, key: Mapping[str, object]) -> Path:
        """See ports.Store."""
        folder = self.root / "scratch" / stage / digest_of(key)
        with filesystem_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
        return folder

    @contextmanager
    def locked(self, name: str) -> Iterator[None]:
        """Hold ``name`` against other processes; the kernel frees it when we die."""
        path = self.root / "locks" / f"{name}.lock"
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w") as handle:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield


def _inventory_of(final: Path) -> Path:
    return final.with_name(f"{final.name}.files")


def _is_whole(final: Path) -> bool:
    return inventory.holds(final, _inventory_of(final))


def _remove(final: Path) -> None:
    """A damaged result. Raises OSError."""
    _inventory_of(final).unlink(missing_ok=True)
    if final.is_dir():
        shutil.rmtree(final)
    else:
        final.unlink(missing_ok=True)
