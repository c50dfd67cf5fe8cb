"""carry's Remote by a POSIX shell alone: cat, dd, df, sha256sum. For servers without an sftp subsystem."""

from __future__ import annotations

import asyncio
import re
import shlex
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING

from sampan.errors import FilesystemError, MissingToolError, NetworkError

if TYPE_CHECKING:
    from asyncssh import SSHClientConnection

_WORD = "sampan-shell-answers"
_SUB = 256 << 10  # as carry.compare's: blocks that are written again begin at a multiple of it
_ANSWER_SECONDS = 20.0
_SHA256 = re.compile(r"[0-9a-f]{64}")
_HASH = """h() {
    if command -v sha256sum >/dev/null 2>&1; then sha256sum; else openssl dgst -sha256 -r; fi | cut -c1-64
}
"""


class Shell:
    """A shell on the target: ``sh -s`` is fed small scripts, ``cat`` the bytes."""

    way, proof = "cat", "target"

    def __init__(self, connection: SSHClientConnection, host: str) -> None:
        self._connection, self._host = connection, host
        self._ends: dict[str, int | None] = {}  # sizes that nothing has changed since

    async def answers(self) -> bool:
        """Whether there is a shell at all; an account may be for sftp alone."""
        import asyncssh  # noqa: PLC0415

        try:
            done = await asyncio.wait_for(
                self._connection.run("sh -s", input=f"echo {_WORD}\n", encoding="utf-8", errors="replace"),
                _ANSWER_SECONDS,
            )
        except (asyncssh.ConnectionLost, asyncssh.DisconnectError) as error:
            raise NetworkError("ssh.broken", host=self._host, detail=str(error)) from error
        except (OSError, asyncssh.Error, asyncio.TimeoutError):
            return False
        return _WORD in str(done.stdout)

    async def _run(self, script: str, path: str) -> str:
        """What the script prints. Raises NetworkError, FilesystemError where it fails."""
        import asyncssh  # noqa: PLC0415

        try:
            done = await self._connection.run("sh -s", input=script, encoding="utf-8", errors="replace")
        except (OSError, asyncssh.Error) as error:
            raise NetworkError("ssh.broken", host=self._host, detail=str(error)) from error
        self._judge(done.exit_status, str(done.stderr), path)
        return str(done.stdout)

    def _judge(self, status: int | None, complaint: str, path: str) -> None:
        if status is None or status < 0:
            raise NetworkError("ssh.broken", host=self._host, detail="the shell ended without a status")
        if status:
            told = complaint.strip().splitlines()[-1:] or [f"exit status {status}"]
            raise FilesystemError("carry.refused", path=path, host=self._host, detail=told[0])

    async def size(self, path: str) -> int | None:
        """See carry.remote."""
        file = quoted(path)
        said = await self._run(f"if [ -f {file} ]; then wc -c <{file}; else echo none; fi\n", path)
        self._ends[path] = None if said.strip() == "none" else int(said)
        return self._ends[path]

    async def is_folder(self, path: str) -> bool:
        """See carry.remote."""
        return (await self._run(f"[ -d {quoted(path)} ] && echo yes || echo no\n", path)).strip() == "yes"

    async def free(self, folder: str) -> int | None:
        """See carry.remote."""
        said = await self._run(f"df -Pk {quoted(folder)} | tail -n 1 | tr -s ' ' | cut -d' ' -f4\n", folder)
        return int(said) << 10 if said.strip().isdecimal() else None

    async def blocks(self, path: str, unit: int, first: int, count: int) -> Sequence[str]:
        """See carry.remote."""
        script = (
            f"{_HASH}i={first}\nwhile [ $i -lt {first + count} ]; do\n"
            f"dd if={quoted(path)} bs={unit} skip=$i count=1 2>/dev/null | h\ni=$((i+1))\ndone\n"
        )
        return self._hashes(await self._run(script, path), count)

    async def digest(self, path: str) -> str:
        """See carry.remote."""
        return self._hashes(await self._run(f"{_HASH}h <{quoted(path)}\n", path), 1)[0]

    def _hashes(self, said: str, count: int) -> list[str]:
        lines = said.split()
        if len(lines) != count or not all(_SHA256.fullmatch(line) for line in lines):
            raise MissingToolError("carry.no-hash", host=self._host)
        return lines

    async def truncate(self, path: str, size: int) -> None:
        """See carry.remote. POSIX's dd cuts the file where it would begin to write."""
        await self._run(f"dd if=/dev/null of={quoted(path)} bs=1 seek={size} count=0 2>/dev/null\n", path)
        self._ends[path] = size

    async def write(self, path: str, offset: int, pieces: AsyncIterator[bytes]) -> None:
        """See carry.remote."""
        import asyncssh  # noqa: PLC0415

        file = quoted(path)
        at_end = (self._ends.pop(path) if path in self._ends else await self.size(path)) == offset
        self._ends.pop(path, None)
        words = f"cat >>{file}" if at_end else f"dd of={file} obs={_SUB} seek={offset // _SUB} conv=notrunc"
        try:
            async with self._connection.create_process(f"sh -c {shlex.quote(words)}", encoding=None) as process:
                try:
                    async for piece in pieces:
                        process.stdin.write(piece)
                        await process.stdin.drain()
                    process.stdin.write_eof()
                except BrokenPipeError:
                    pass  # it ended before its input did: its own words say why
                done = await process.wait()
        except (OSError, asyncssh.Error) as error:
            raise NetworkError("ssh.broken", host=self._host, detail=str(error)) from error
        complaint = done.stderr or b""
        self._judge(done.exit_status, complaint.decode("utf-8", "replace"), path)  # type: ignore[union-attr]

    async def rename(self, old: str, new: str) -> None:
        """See carry.remote. On the disk first: the name is a promise."""
        await self._run(f"sync {quoted(old)} 2>/dev/null || sync; mv {quoted(old)} {quoted(new)}\n", new)


def quoted(path: str) -> str:
    """For a POSIX shell, also where it begins with a hyphen."""
    return shlex.quote(path if path.startswith(("/", "./")) else f"./{path}")
