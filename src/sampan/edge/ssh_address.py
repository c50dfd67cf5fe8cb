"""Where and how to log in by ssh: what the user typed, checked."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from sampan.errors import UsageError

SCHEME = "ssh://"


@dataclass(frozen=True)
class Address:
    """Where to log in. ``user`` None: as ssh itself would choose."""

    host: str
    port: int
    user: str | None = None

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.user}@{host}:{self.port}" if self.user else f"{host}:{self.port}"


@dataclass(frozen=True)
class SshSettings:
    """How to log in. ``accept``: a fingerprint ``SHA256:…`` that is trusted beside ``known_hosts``. Seconds."""

    jump: Address | None = None
    identities: tuple[Path, ...] = ()
    accept: str | None = None
    known_hosts: tuple[Path, ...] = (Path("~/.ssh/known_hosts"), Path("/etc/ssh/ssh_known_hosts"))
    connect_seconds: float = 15.0
    run_seconds: float = 120.0
    keepalive_seconds: float = 15.0  # three unanswered ones end a connection that went dead without a word
    password: str | None = field(default=None, repr=False)


def parse(text: str) -> Address:
    """``ssh://user@host:port/`` or the same without the scheme. Raises UsageError ``ssh.address``."""
    try:
        parts = urlsplit(text if text.startswith(SCHEME) else SCHEME + text)
        port = parts.port or 22
    except ValueError as error:
        raise UsageError("ssh.address", address=text) from error
    odd = parts.password or parts.query or parts.fragment or parts.path not in {"", "/"}
    if odd or not parts.hostname or parts.hostname.startswith("-"):
        raise UsageError("ssh.address", address=text)
    return Address(parts.hostname, port, parts.username)
