"""Our errors for asyncssh's."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from sampan.edge.ssh_address import Address, SshSettings
from sampan.errors import BadInputError, MissingToolError, NetworkError, SampanError, VerificationError


def explained(
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
        key = "ssh.denied-password" if settings.password else "ssh.denied"
        return MissingToolError(key, host=host, user=address.user or "-")
    if isinstance(error, TimeoutError | asyncio.TimeoutError):
        return NetworkError("ssh.slow", host=host, seconds=f"{settings.connect_seconds:g}")
    if isinstance(error, ValueError) or (
        isinstance(error, OSError) and error.filename
    ):  # a key, config or known_hosts
        paths = ", ".join(map(str, settings.identities)) or "~/.ssh"
        return BadInputError("ssh.identity", path=paths, detail=str(error))
    key = "ssh.unreachable" if isinstance(error, OSError | asyncssh.ChannelOpenError) else "ssh.broken"
    return NetworkError(key, host=host, detail=str(error))
