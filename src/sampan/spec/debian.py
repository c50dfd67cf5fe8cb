"""Where Debian packages may come from: the user's own mirrors, as the edge reads them."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit


@dataclass(frozen=True)
class DebianSource:
    """One suite on one mirror. ``uri`` is the archive's root: ``<uri>/dists/<suite>/InRelease`` is its index.

    ``keyring`` is the file that the user's settings name for it, None where they name none.
    """

    uri: str
    suite: str
    components: tuple[str, ...] = ("main",)
    keyring: str | None = None

    @property
    def shown(self) -> str:
        """The address for people: without user and password."""
        parts = urlsplit(self.uri)
        return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
