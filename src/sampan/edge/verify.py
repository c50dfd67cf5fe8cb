"""What must come, and whether it is what came."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from sampan.edge.http import host_of
from sampan.errors import VerificationError
from sampan.spec.hub import git_blob_sha1

_CHUNK = 1 << 18


@dataclass(frozen=True)
class Wanted:
    """What must come: ``sha256`` None only where the caller verifies a signature itself."""

    url: str
    name: str
    sha256: str | None
    size: int | None = None
    git_sha1: str | None = None  # Git's id of the content: what hubs know of small files

    @property
    def pinned(self) -> bool:
        """Whether a digest will prove the whole."""
        return self.sha256 is not None or self.git_sha1 is not None


def check(path: Path, wanted: Wanted) -> None:
    """Raises VerificationError where size or digest are not the promised ones."""
    if wanted.size is not None and path.stat().st_size != wanted.size:
        raise VerificationError(
            "net.size", name=wanted.name, host=host_of(wanted.url), expected=wanted.size, found=path.stat().st_size
        )
    expected = wanted.sha256 or wanted.git_sha1
    if expected is None:
        return
    found = sha256_of(path) if wanted.sha256 else git_blob_sha1(path)
    if found != expected:
        raise VerificationError(
            "net.hash", name=wanted.name, host=host_of(wanted.url), expected=expected, found=found
        )


def check_or_remove(path: Path, wanted: Wanted) -> None:
    """As ``check``; what fails it does not stay."""
    try:
        check(path, wanted)
    except VerificationError:
        path.unlink(missing_ok=True)
        raise


def sha256_of(path: Path) -> str:
    """The file's SHA-256 in hexadecimal."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while chunk := stream.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()
