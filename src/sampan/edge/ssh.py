"""A shell on another machine: runs one script through ``sh -s`` and gives what it prints. Nothing is copied there.

Keys (the agent's and files) log in, a password only where the user hands one over. A host key is taken from
known_hosts or by the fingerprint that the user names; nothing is ever written to known_hosts.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from sampan.edge import ssh_host_keys
from sampan.edge.ssh_address import SCHEME, Address, SshSettings, parse
from sampan.edge.ssh_errors import explained
from sampan.errors import MissingToolError, NetworkError, VerificationError

__all__ = ["SCHEME", "Address", "SshSettings", "connected", "parse", "run_script"]

if TYPE_CHECKING:
    from asyncssh import SSHClientConnection, SSHKey


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
    async with connected(address, settings) as connection:
        return await _output(connection, address, script, settings)


@asynccontextmanager
async def connected(address: Address, settings: SshSettings) -> AsyncIterator[SSHClientConnection]:
    """A connection, through the jump host where there is one. Raises as ``run_script`` does."""
    if settings.jump is None:
        async with _connected(address, settings, None) as connection:
            yield connection
        return
    async with (
        _connected(settings.jump, settings, None) as tunnel,
        _connected(address, settings, tunnel) as connection,
    ):
        yield connection


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
    """Asks for one family of host keys after the other; of several refusals the first is raised."""
    refused: VerificationError | None = None
    shown: list[str] = []
    for algorithms in ssh_host_keys.orders(address, settings, _known_hosts(settings), shown):
        try:
            return await _attempt(address, settings, tunnel, algorithms, shown)
        except VerificationError as error:
            refused = refused or error
        except NetworkError:
            if refused is None:
                raise
            # the server has no host key of that family
    assert refused is not None  # noqa: S101  (there is a first order, and it ended in one of these ways)
    raise refused


async def _attempt(
    address: Address,
    settings: SshSettings,
    tunnel: SSHClientConnection | None,
    algorithms: list[str],
    shown: list[str],
) -> SSHClientConnection:
    import asyncssh  # noqa: PLC0415

    offered: list[str] = []
    files = _known_hosts(settings)

    class Client(asyncssh.SSHClient):
        """Asked about a host key that known_hosts does not have."""

        def validate_host_public_key(self, _host: str, _addr: str, _port: int, key: SSHKey) -> bool:
            offered.append(key.get_fingerprint())
            shown.append(key.get_algorithm())
            return settings.accept == offered[-1]

    user = {"username": address.user} if address.user else {}
    keys = {"client_keys": [str(path) for path in settings.identities]} if settings.identities else {}
    wanted = {"server_host_key_algs": algorithms} if algorithms else {}
    methods = "publickey,keyboard-interactive,password" if settings.password else "publickey"
    try:
        return await asyncio.wait_for(
            asyncssh.connect(
                address.host,
                address.port,
                tunnel=tunnel or (),
                client_factory=Client,
                known_hosts=files or b"",
                preferred_auth=methods,
                password=settings.password,
                keepalive_interval=settings.keepalive_seconds,
                **user,
                **keys,
                **wanted,
            ),
            settings.connect_seconds,
        )
    except (OSError, ValueError, asyncssh.Error, asyncio.TimeoutError) as error:
        raise explained(error, address, settings, offered, files) from error


def _known_hosts(settings: SshSettings) -> list[str]:
    return [str(path.expanduser()) for path in settings.known_hosts if path.expanduser().is_file()]
