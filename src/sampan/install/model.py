"""What install is told, what it finds and what it leaves behind."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from sampan.errors import BadInputError

DEFAULT_HOME = Path("/opt/sampan")
RECORD = "installed.json"  # in the prefix: says that the prefix is ours
RELEASES, CURRENT, CONFIG = "releases", "current", "config"
SYSTEM, USER, SCRIPT = "system", "user", "script"  # who keeps the service alive: systemd, the user's own, a script

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")
_USER_LENGTH = 31  # useradd's limit is 32 on every target; one less is safe with utmp


@dataclass(frozen=True)
class Health:
    """What ``GET /health`` said: ready, another state of the engine, or unreachable; ``detail`` is for people.

    ``release`` is the one that answered, such as ``minilm-2``; empty where it did not say.
    """

    state: str
    detail: str = ""
    release: str = ""


#: asks the service at (host, port, whether over TLS); must not raise when nothing listens
HealthProbe = Callable[[str, int, bool], Health]
#: puts the golden questions to the service of (release folder, host, port, certificate if any) and gives one line;
#: raises a SampanError where an answer is wrong
SelfTest = Callable[[Path, str, int, str | None], str]
#: shows one line to the person at the keyboard
Echo = Callable[[str], None]


@dataclass(frozen=True)
class OwnLimits:
    """What an administrator gives the service instead of the plan's limits; None leaves them to the plan.

    ``cpu_percent`` 100 is one CPU; ``cpus`` is a list as the kernel writes it, such as ``0-3,8``.
    """

    memory_bytes: int | None = None
    cpu_percent: int | None = None
    cpus: str | None = None


@dataclass(frozen=True)
class InstallOptions:
    """``bundle`` is where the bundle lies. None keeps what is in force, and for what is new means: ``prefix``
    ``/opt/sampan/<name>``, ``port`` the plan's, ``host`` 127.0.0.1, ``keys`` (file of API keys)
    ``/etc/sampan/<name>/keys.json``, if any.

    ``features`` are this CPU's, in the kernel's words; ``guards`` the security modules at work. ``health_seconds``
    bounds the wait for the first answer. ``who`` is the person who overrides a refusal, for the record. ``consume``:
    the bundle's files become the release's own, and its folder goes.
    """

    bundle: Path
    features: frozenset[str]
    prefix: Path | None = None
    port: int | None = None
    host: str | None = None
    service: bool = True
    health_seconds: float = 900.0
    scope: str = SYSTEM
    keys: str | None = None
    certificate: str | None = None
    certificate_key: str | None = None
    limits: OwnLimits = OwnLimits()
    allow_downgrade: bool = False
    unsigned: bool = False
    who: str = "?"
    guards: tuple[str, ...] = ()
    keep: int = 2
    consume: bool = False
    restart: bool = False  # where the running release could hand over, too


@dataclass(frozen=True)
class Override:
    """A refusal that a person overrode. ``what``: downgrade or unsigned; ``instead_of``: the release before."""

    what: str
    by: str
    release: int
    instead_of: int | None
    time: str  # UTC, by the target's clock


@dataclass(frozen=True)
class Installed:
    """The record in the prefix: what is in force. ``state`` is always installed (older ones wrote installing, too).

    ``created`` lists the folders that were made to hold the prefix, outermost first; they go away again with it where
    they are empty. ``previous`` is the release that roll-back returns to. ``overrides``: the latest last.
    """

    SCHEMA: ClassVar[str] = "sampan/installed/1"

    name: str
    release: int
    state: str
    prefix: str
    service: bool
    host: str
    port: int
    unit: str | None = None  # the unit file's path
    user: str | None = None
    user_created: bool = False
    created: tuple[str, ...] = ()
    previous: int | None = None
    scope: str = SYSTEM
    keys: str | None = None
    limits: OwnLimits = OwnLimits()
    overrides: tuple[Override, ...] = ()
    certificate: str | None = None  # with its key: the service speaks TLS
    certificate_key: str | None = None


@dataclass(frozen=True)
class ServiceStatus:
    """``mode``: systemd, user (the user's own systemd), script, foreground (its pid file was found) or files.

    ``state`` is systemd's ActiveState, or active/inactive by the pid. None means unknown.
    """

    SCHEMA: ClassVar[str] = "sampan/service-status/1"

    name: str
    release: int | None
    prefix: str | None
    mode: str
    state: str
    enabled: bool | None
    pid: int | None
    since: str | None
    memory_bytes: int | None
    restarts: int | None
    host: str
    port: int
    health: str
    health_detail: str = ""
    pending: str | None = None  # a change under way, or one that was cut off
    scheme: str = "http"


@dataclass(frozen=True)
class Removed:
    """What uninstall took away, and what it left because it was not ours."""

    SCHEMA: ClassVar[str] = "sampan/removed/1"

    removed: tuple[str, ...]
    kept: tuple[str, ...]


def checked_name(name: str) -> str:
    """``name``, safe in paths, unit files and user names. Raises BadInputError."""
    if not _NAME.fullmatch(name):
        raise BadInputError("install.name", name=name)
    return name


def home() -> Path:
    """The user's home folder; one that cannot be where the user has none (a bare uid in a container)."""
    try:
        return Path.home()
    except RuntimeError:
        return Path("/nonexistent")


def user_home() -> Path:
    """Where services of a user without root are installed."""
    return Path(os.environ.get("XDG_DATA_HOME") or home() / ".local/share") / "sampan"


def unit_name(name: str) -> str:
    """The systemd unit of the service ``name``."""
    return f"sampan-{name}.service"


def user_name(name: str) -> str:
    """The system user of the service ``name``: no dots, at most 31 characters, distinct for distinct names."""
    plain = f"sampan-{name.replace('.', '_')}"
    if len(plain) <= _USER_LENGTH and "." not in name:
        return plain
    mark = hashlib.sha256(name.encode()).hexdigest()[:6]
    return f"{plain[: _USER_LENGTH - 7].rstrip('-_')}-{mark}"


def probe_host(host: str) -> str:
    """Where this machine reaches a service that listens on ``host``."""
    return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104  (looked up, not bound)
