"""Carry a file to a target over ssh."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from sampan.carry.send import Arrival, Trip
from sampan.errors import MissingToolError, UsageError
from sampan.spec.ports import Progress

if TYPE_CHECKING:
    from sampan.edge.ssh import Address

LOOPBACK = "127.0.0.1"


@dataclass(frozen=True)
class Route:
    """How the target is reached. ``loopback``: the port to which a bastion's client maps the session. Rate in bytes
    a second. ``password`` as text.
    """

    jump: str | None = None
    loopback: int | None = None
    identities: tuple[Path, ...] = ()
    accept: str | None = None
    password: str | None = None
    rate: int | None = None
    seconds: float = 15.0
    use_sftp: bool = True


def carry(file: Path, target: str, route: Route, progress: Progress) -> Arrival:
    """Send ``file`` to ``ssh://user@host:port/path``; a path that ends with a slash is a folder.

    Raises UsageError, and as ``carry.send`` and ``edge.ssh`` do.
    """
    from sampan.edge import carrier, ssh

    if find_spec("asyncssh") is None:
        raise MissingToolError("ssh.no-library")
    address, path = split(target)
    if route.loopback is not None:
        address = replace(address, host=LOOPBACK, port=route.loopback)
    settings = ssh.SshSettings(
        jump=ssh.parse(route.jump) if route.jump else None,
        identities=route.identities,
        accept=route.accept,
        connect_seconds=route.seconds,
        password=route.password,
    )
    trip = Trip(file, path, str(address), progress, rate=route.rate)
    arrival = asyncio.run(trip.run(lambda: carrier.opened(address, settings, use_sftp=route.use_sftp)))
    now = datetime.now(timezone.utc).replace(microsecond=0)
    return replace(arrival, arrived=now.isoformat())


def split(target: str) -> tuple[Address, str]:
    """Address and path; ``/~/x`` is below the login's folder. Raises UsageError ``carry.target``."""
    from sampan.edge import ssh

    rest = target.removeprefix(ssh.SCHEME)
    login, slash, path = rest.partition("/")
    if not target.startswith(ssh.SCHEME) or not slash or not path or any(not letter.isprintable() for letter in path):
        raise UsageError("carry.target", target=target)
    return ssh.parse(f"{ssh.SCHEME}{login}"), path.removeprefix("~/") if path.startswith("~/") else f"/{path}"
