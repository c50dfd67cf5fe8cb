"""``hf:ORG/NAME[@REVISION][:GLOB]``, ``ms:…``, ``https://…[#sha256=…]``: what the user means. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from sampan.errors import UsageError

HUBS = ("hf", "ms")
_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}"
_SOURCE = re.compile(
    rf"(?P<hub>hf|ms):(?P<name>(?:{_NAME}/)?{_NAME})(?:@(?P<revision>[^:@\s]+))?(?::(?P<glob>\S.*))?"
)
_PINNED = re.compile(r"sha256[=:]([0-9a-fA-F]{64})")
_LOCAL = ("localhost", "127.0.0.1", "[::1]", "::1")


@dataclass(frozen=True)
class Source:
    """``hub``: hf, ms or url. ``name``: ORG/NAME, or the address; ``revision`` and ``glob`` None where not given."""

    text: str
    hub: str
    name: str
    revision: str | None = None
    glob: str | None = None
    sha256: str | None = None

    @property
    def shown(self) -> str:
        """Safe to print and to keep: an address without its query, which may be a password."""
        return self.name.partition("?")[0] if self.hub == "url" else self.text


def is_remote(text: str) -> bool:
    """Whether the words name something to fetch, and not a path."""
    return text.partition(":")[0] in HUBS or text.startswith(("https://", "http://"))


def parse(text: str) -> Source:
    """Raises UsageError where the words make no source."""
    if text.startswith(("https://", "http://")):
        return _address(text)
    match = _SOURCE.fullmatch(text)
    if match is None or ".." in match["name"] or (match["hub"] == "ms" and "/" not in match["name"]):
        raise UsageError("hub.source", source=text)
    if ".." in (match["revision"] or "") or (match["revision"] or "").startswith(("/", "-")):
        raise UsageError("hub.source", source=text)
    return Source(text, match["hub"], match["name"], match["revision"], match["glob"])


def _address(text: str) -> Source:
    parts = urlsplit(text)
    pinned = _PINNED.fullmatch(parts.fragment)
    if not parts.hostname or not parts.path.rpartition("/")[2] or (parts.fragment and not pinned):
        raise UsageError("hub.source", source=text)
    if parts.username or parts.password:
        raise UsageError("hub.secret", host=parts.hostname)
    if parts.scheme == "http" and not pinned and parts.hostname not in _LOCAL:
        raise UsageError("hub.plain_http", source=text)
    return Source(text, "url", text.partition("#")[0], sha256=pinned[1].lower() if pinned else None)
