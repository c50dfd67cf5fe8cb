"""carry's Remote over ssh: bytes by sftp or through ``cat``, hashes by sha256sum on the target or read back."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any

from sampan.edge import ssh
from sampan.edge.carrier_shell import Shell
from sampan.edge.ssh import Address, SshSettings
from sampan.errors import FilesystemError, MissingToolError, NetworkError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from asyncssh import SFTPClient, SSHClientConnection

    from sampan.carry.remote import Remote

_READ_BYTES = 1 << 20
_OPEN_SECONDS = 20.0
_AHEAD = 3  # pieces


@asynccontextmanager
async def opened(address: Address, settings: SshSettings, *, use_sftp: bool = True) -> AsyncIterator[Remote]:
    """A Remote. Raises NetworkError, VerificationError (host key), MissingToolError (login refused; neither a shell
    nor sftp there).
    """
    async with AsyncExitStack() as stack:
        _hush(asyncio.get_running_loop())
        connection = await stack.enter_async_context(ssh.connected(address, settings))
        shell = Shell(connection, str(address))
        has_shell = await shell.answers()
        sftp = await _sftp(connection, str(address)) if use_sftp else None
        if sftp is not None:
            yield Sftp(sftp, shell if has_shell else None, str(address))
        elif has_shell:
            yield shell
        else:
            raise MissingToolError("carry.no-way", host=str(address))


def _hush(loop: asyncio.AbstractEventLoop) -> None:
    """Of asyncssh's tasks that a broken line ends, one tells us, the others would tell the terminal; so would asyncio
    of each byte that its closed socket does not take.
    """
    import asyncssh  # noqa: PLC0415

    logging.getLogger("asyncio").setLevel(logging.ERROR)

    def handle(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        if not isinstance(context.get("exception"), asyncssh.Error | OSError):
            loop.default_exception_handler(context)

    loop.set_exception_handler(handle)


async def _sftp(connection: SSHClientConnection, host: str) -> SFTPClient | None:
    """None where the server has no sftp subsystem."""
    import asyncssh  # noqa: PLC0415

    try:
        return await asyncio.wait_for(connection.start_sftp_client(), _OPEN_SECONDS)
    except (asyncssh.ConnectionLost, asyncssh.DisconnectError) as error:
        raise NetworkError("ssh.broken", host=host, detail=str(error)) from error
    except (OSError, asyncssh.Error, asyncio.TimeoutError):
        return None


class Sftp:
    """Bytes by sftp. A shell that sees the same files hashes them; without one they are read back."""

    way = "sftp"

    def __init__(self, sftp: SFTPClient, shell: Shell | None, host: str) -> None:
        self._sftp, self._shell, self._host = sftp, shell, host
        self._same: bool | None = None if shell else False

    @property
    def proof(self) -> str:
        """See ports: ``target`` or ``read-back``."""
        return "target" if self._same else "read-back"

    @contextmanager
    def _errors(self, path: str) -> Iterator[None]:
        import asyncssh  # noqa: PLC0415

        try:
            yield
        except (asyncssh.SFTPConnectionLost, asyncssh.SFTPNoConnection) as error:
            raise NetworkError("ssh.broken", host=self._host, detail=str(error)) from error
        except asyncssh.SFTPError as error:
            raise FilesystemError("carry.refused", path=path, host=self._host, detail=error.reason) from error
        except (OSError, asyncssh.Error) as error:
            raise NetworkError("ssh.broken", host=self._host, detail=str(error)) from error

    async def size(self, path: str) -> int | None:
        """See carry.remote."""
        import asyncssh  # noqa: PLC0415

        with self._errors(path):
            try:
                found = await self._sftp.stat(path)
            except (asyncssh.SFTPNoSuchFile, asyncssh.SFTPNoSuchPath):
                return None
        return found.size if found.type == asyncssh.FILEXFER_TYPE_REGULAR else None

    async def is_folder(self, path: str) -> bool:
        """See carry.remote."""
        with self._errors(path):
            return await self._sftp.isdir(path)

    async def free(self, folder: str) -> int | None:
        """See carry.remote. An extension of OpenSSH's; others do not tell."""
        import asyncssh  # noqa: PLC0415

        with self._errors(folder):
            try:
                found = await self._sftp.statvfs(folder)
            except (asyncssh.SFTPOpUnsupported, asyncssh.SFTPFailure, asyncssh.SFTPNoSuchFile):
                return None
        return int(found.bavail * found.frsize)

    async def blocks(self, path: str, unit: int, first: int, count: int) -> Sequence[str]:
        """See carry.remote."""
        if self._shell and await self._sees_the_same(path):
            return await self._shell.blocks(path, unit, first, count)
        found = []
        with self._errors(path):
            async with self._sftp.open(path, "rb") as stream:
                for number in range(first, first + count):
                    found.append(hashlib.sha256(_bytes(await stream.read(unit, number * unit))).hexdigest())
        return found

    async def digest(self, path: str) -> str:
        """See carry.remote."""
        if self._shell and await self._sees_the_same(path):
            return await self._shell.digest(path)
        digest, place = hashlib.sha256(), 0
        with self._errors(path):
            async with self._sftp.open(path, "rb") as stream:
                while piece := _bytes(await stream.read(_READ_BYTES, place)):
                    digest.update(piece)
                    place += len(piece)
        return digest.hexdigest()

    async def _sees_the_same(self, path: str) -> bool:
        """Bastions show other folders by sftp than their shell has."""
        if self._same is None and self._shell:
            self._same = await self._shell.size(path) == await self.size(path)
        return bool(self._same)

    async def truncate(self, path: str, size: int) -> None:
        """See carry.remote."""
        with self._errors(path):
            async with self._sftp.open(path, "ab"):
                pass
            await self._sftp.truncate(path, size)

    async def write(self, path: str, offset: int, pieces: AsyncIterator[bytes]) -> None:
        """See carry.remote."""
        place = offset
        with self._errors(path):
            async with self._sftp.open(path, "r+b") as stream, _Ahead() as ahead:
                async for piece in pieces:
                    await ahead.add(stream.write(piece, place))
                    place += len(piece)

    async def rename(self, old: str, new: str) -> None:
        """See carry.remote."""
        with self._errors(new):
            await self._sftp.rename(old, new)


class _Ahead:
    """A few pieces on their way at once: a line with a long echo must not stand idle between two of them."""

    def __init__(self) -> None:
        self._pending: list[asyncio.Future[int]] = []

    async def __aenter__(self) -> _Ahead:
        return self

    async def add(self, write: Coroutine[Any, Any, int]) -> None:
        """Start one; wait for the oldest where there are enough."""
        self._pending.append(asyncio.ensure_future(write))
        if len(self._pending) > _AHEAD:
            await self._pending.pop(0)

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            await asyncio.gather(*self._pending)
            return
        for each in self._pending:
            each.cancel()
        await asyncio.gather(*self._pending, return_exceptions=True)


def _bytes(read: bytes | str) -> bytes:
    """asyncssh reads text from what was opened as text; ours is opened as bytes."""
    return read if isinstance(read, bytes) else read.encode()
