"""What a model hub offers, and the port through which the stage ``weights`` asks for it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Protocol


@dataclass(frozen=True)
class HubFile:
    """One file of a revision. At least one digest is known for every file of a hub; ``git_sha1`` is Git's blob id."""

    path: str  # relative, as the hub writes it
    size_bytes: int | None
    url: str  # without credentials
    sha256: str | None = None
    git_sha1: str | None = None


@dataclass(frozen=True)
class HubListing:
    """All files of one revision. ``commit`` is what the revision meant when it was asked; None for a bare address."""

    SCHEMA: ClassVar[str] = "sampan/hub-listing/1"

    hub: str  # hf, ms or url
    repository: str
    revision: str
    commit: str | None
    files: tuple[HubFile, ...]


@dataclass(frozen=True)
class Fetched:
    """What ``weights fetch`` brought. ``path`` is the folder, or the one model file, that other verbs take."""

    SCHEMA: ClassVar[str] = "sampan/fetched/1"

    source: str
    repository: str
    revision: str
    commit: str | None
    path: str
    files: tuple[HubFile, ...]  # each with the SHA-256 that it has
    size_bytes: int
    remembered: bool = False  # the hub could not be asked; what an earlier run saw was taken


class Hubs(Protocol):
    """The edge's door to model hubs."""

    def listing(self, hub: str, repository: str, revision: str | None) -> HubListing:
        """What the revision holds; None is the hub's own default.

        Raises NetworkError (``hub.…``: not found, gated, offline…), BadInputError for an answer that makes no sense.
        """
        ...

    def address(self, url: str) -> HubListing:
        """One file by its address, with the digest and size that its host states of it. Raises NetworkError."""
        ...

    def fetch(self, hub: str, files: Sequence[tuple[HubFile, Path]]) -> None:
        """Bring each file to its path, several at a time, each only when its digest is right.

        Goes on where an earlier run stopped. Raises NetworkError, VerificationError, FilesystemError.
        """
        ...


def git_blob_sha1(path: Path) -> str:
    """The id that Git gives the file's content. source: Git's documentation, "Git Internals - Git Objects"."""
    digest = hashlib.sha1(f"blob {path.stat().st_size}\0".encode(), usedforsecurity=False)
    with path.open("rb") as stream:
        while chunk := stream.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()
