"""The file of keys: who is known, by hash. Adding, revoking, reading.

A key is 256 bits from the kernel's random source, so a plain SHA-256 is enough: slow hashes (scrypt and the like)
protect secrets that can be guessed, and would cost each request its milliseconds.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import stat
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from sampan.disk import filesystem_errors, new_file
from sampan.errors import BadInputError, UsageError
from sampan.spec import codec

SCOPES = ("embeddings", "chat", "metrics", "admin")
LANES = ("interactive", "bulk")
_PREFIX = "sk-sampan"
_ID_BYTES = 4
_SECRET_BYTES = 32
_KEY = re.compile(rf"{_PREFIX}-([0-9a-f]{{{2 * _ID_BYTES}}})-[A-Za-z0-9_-]{{43}}")
_NAME = re.compile(r"[\w .@-]{1,64}")


@dataclass(frozen=True)
class Key:
    """One key. Limits of 0 are none. ``created`` and ``revoked`` are Unix seconds, 0 where not."""

    id: str
    name: str
    sha256: str
    scopes: tuple[str, ...] = ("embeddings", "chat")
    lane: str = "interactive"  # bulk: this key's work is never interactive
    requests_per_minute: int = 0
    tokens_per_minute: int = 0
    concurrent: int = 0
    created: int = 0
    revoked: int = 0


@dataclass(frozen=True)
class KeyFile:
    """What the file holds."""

    SCHEMA: ClassVar[str] = "sampan/keys/1"

    keys: tuple[Key, ...] = ()


def id_of(text: str) -> str:
    """The id inside a key; empty where the text is no key."""
    found = _KEY.fullmatch(text)
    return found[1] if found else ""


def load(path: Path) -> tuple[Key, ...]:
    """Raises BadInputError (missing, damaged, readable by others, wrong scope or lane), FilesystemError."""
    with filesystem_errors(path):
        mode = path.stat().st_mode if path.exists() else None
    if mode is not None and mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise BadInputError("keys.mode", path=str(path), mode=f"{stat.S_IMODE(mode):04o}")
    keys = codec.load(KeyFile, path).keys
    for key in keys:
        _check(key.scopes, key.lane)
    if len({key.id for key in keys}) != len(keys):
        raise BadInputError("keys.twice", path=str(path))
    return keys


def save(path: Path, keys: Iterable[Key], owner: tuple[int, int] | None = None) -> None:
    """Whole or not at all, mode 0600. Root gives it to ``owner`` (user, group), else to the owner that it had."""
    with filesystem_errors(path):
        _make_folders(path.parent)
        if owner is None:
            before = (path if path.exists() else path.parent).stat()
            owner = before.st_uid, before.st_gid
        with new_file(path, 0o600) as stream:
            stream.write(codec.to_json(KeyFile(tuple(keys))).encode())
            if os.geteuid() == 0:
                os.fchown(stream.fileno(), *owner)


def _make_folders(folder: Path) -> None:
    """A umask of 077 must not keep the service's user from its keys: the file itself is closed to others."""
    for each in reversed([place for place in (folder, *folder.parents) if not place.exists()]):
        each.mkdir(exist_ok=True)
        each.chmod(0o755)


def make(key: Key) -> tuple[Key, str]:
    """The key with a fresh id and hash, and its text, which is nowhere else. Raises UsageError."""
    _check(key.scopes, key.lane)
    if not _NAME.fullmatch(key.name):
        raise UsageError("keys.name", name=key.name)
    name = secrets.token_hex(_ID_BYTES)
    text = f"{_PREFIX}-{name}-{secrets.token_urlsafe(_SECRET_BYTES)}"
    return replace(key, id=name, sha256=hashlib.sha256(text.encode()).hexdigest()), text


def revoke(keys: Iterable[Key], wanted: str, now: int) -> tuple[Key, ...]:
    """The keys with that one (by id or name) revoked. Raises UsageError where none or several have the name."""
    keys = tuple(keys)
    found = [key for key in keys if wanted in (key.id, key.name) and not key.revoked]
    if len(found) != 1:
        raise UsageError("keys.ambiguous" if found else "keys.unknown", name=wanted, count=len(found))
    return tuple(replace(key, revoked=now) if key is found[0] else key for key in keys)


def _check(scopes: Iterable[str], lane: str) -> None:
    unknown = [scope for scope in scopes if scope not in SCOPES]
    if unknown:
        raise UsageError("keys.scope", scope=unknown[0], known=", ".join(SCOPES))
    if lane not in LANES:
        raise UsageError("keys.lane", lane=lane, known=", ".join(LANES))
