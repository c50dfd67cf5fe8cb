"""A shell on another machine: runs one script through ``sh -s`` and gives what it prints. Nothing is copied there.

Only keys (the agent's and files) log in. A host key is taken from known_hosts or by the fingerprint that the user
names; nothing is ever written to known_hosts.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from sampan.errors import BadInputError, MissingToolError, NetworkError, SampanError, UsageError, VerificationError

if TYPE_CHECKING:
    from asyncssh import SSHClientConnection, SSHKey

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


def run_script(address: Address, script: str, settings: SshSettings) -> str:
    """What ``sh -s`` prints there when it is fed the script.

    Raises NetworkError (refused, too slow, broken off), VerificationError (host key), MissingToolError (no key is
    accepted, asyncssh is not installed), BadInputError (an identity that cannot be read).
    """
    try:
        import asyncssh  # noqa: F401, PLC0415  (only the workshop has it, and it takes 0.3 s to import)
    except ImportError as error:
        raise MissingToolError("ssh.no-library") from error
    return asyncio.run(_run(address, script, settings))


async def _run(address: Address, script: str, settings: SshSettings) -> str:
    if settings.jump is None:
        async with _connected(address, settings, None) as connection:
            return await _output(connection, address, script, settings)
    async with (
        _connected(settings.jump, settings, None) as tunnel,
        _connected(address, settings, tunnel) as connection,
    ):
        return await _output(connection, address, script, settings)


async def _output(connection: SSHClientConnection, address: Address, script: str, settings: SshSettings) -> str:
    import asyncssh  # noqa: PLC0415

    try:
        done = await asyncio.wait_for(
            connection.run("sh -s", input=script, encoding="utf-8", errors="replace"), settings.run_seconds
        )
    except (TimeoutError, asyncio.TimeoutError) as error:
        raise NetworkError("ssh.slow", host=str(address), seconds=f"{settings.run_seconds:g}") from error
    except (OSError, asyncssh.Error) as error:
        raise NetworkError("ssh.broken", host=str(address), detail=str(error)) from error
    return str(done.stdout or "")


@asynccontextmanager
async def _connected(
    address: Address, settings: SshSettings, tunnel: SSHClientConnection | None
) -> AsyncIterator[SSHClientConnection]:
    connection = await _connect(address, settings, tunnel)
    try:
        yield connection
    finally:
        connection.abort()


async def _connect(
    address: Address, settings: SshSettings, tunnel: SSHClientConnection | None
) -> SSHClientConnection:
    import asyncssh  # noqa: PLC0415

    offered: list[str] = []

    class Client(asyncssh.SSHClient):
        """Asked about a host key that known_hosts does not have."""

        def validate_host_public_key(self, _host: str, _addr: str, _port: int, key: SSHKey) -> bool:
            offered.append(key.get_fingerprint())
            return settings.accept == offered[-1]

    user = {"username": address.user} if address.user else {}
    keys = {"client_keys": [str(path) for path in settings.identities]} if settings.identities else {}
    files = _known_hosts(settings)
    try:
        return await asyncio.wait_for(
            asyncssh.connect(
                address.host,
                address.port,
                tunnel=tunnel or (),
                client_factory=Client,
                known_hosts=files or b"",
                preferred_auth="publickey",
                **user,
                **keys,
            ),
            settings.connect_seconds,
        )
    except (OSError, ValueError, asyncssh.Error, asyncio.TimeoutError) as error:
        raise _explained(error, address, settings, offered, files) from error


def _known_hosts(settings: SshSettings) -> list[str]:
    return [str(path.expanduser()) for path in settings.known_hosts if path.expanduser().is_file()]


def _explained(
    error: Exception, address: Address, settings: SshSettings, offered: Sequence[str], files: list[str]
) -> SampanError:
    """Our error for asyncssh's."""
    import asyncssh  # noqa: PLC0415

    host = str(address)
    if isinstance(error, asyncssh.HostKeyNotVerifiable):
        known = asyncssh.match_known_hosts(files, address.host, address.host, address.port)[0] if files else []
        key = "ssh.host-key-changed" if known else "ssh.host-key-unknown"
        return VerificationError(key, host=host, fingerprint=offered[-1] if offered else "?")
    if isinstance(error, asyncssh.PermissionDenied):
        return MissingToolError("ssh.denied", host=host, user=address.user or "-")
    if isinstance(error, TimeoutError | asyncio.TimeoutError):
        return NetworkError("ssh.slow", host=host, seconds=f"{settings.connect_seconds:g}")
    if isinstance(error, ValueError) or (
        isinstance(error, OSError) and error.filename
    ):  # a key, config or known_hosts
        paths = ", ".join(map(str, settings.identities)) or "~/.ssh"
        return BadInputError("ssh.identity", path=paths, detail=str(error))
    key = "ssh.unreachable" if isinstance(error, OSError | asyncssh.ChannelOpenError) else "ssh.broken"
    return NetworkError(key, host=host, detail=str(error))
