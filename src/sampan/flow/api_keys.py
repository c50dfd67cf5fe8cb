"""Where the keys of a service are, and how they change."""

from __future__ import annotations

import os
import pwd
import time
from collections.abc import Mapping
from pathlib import Path

from sampan.errors import UsageError
from sampan.gateway import keys

HOME = Path("/etc/sampan")
ENVIRONMENT = "SAMPAN_KEYS"


def file_of(name: str | None, environ: Mapping[str, str] = os.environ) -> Path:
    """``SAMPAN_KEYS``, else ``/etc/sampan/NAME/keys.json``. Raises UsageError where neither is known."""
    if environ.get(ENVIRONMENT):
        return Path(environ[ENVIRONMENT])
    if name is None:
        raise UsageError("keys.no-file")
    return HOME / name / "keys.json"


def add(path: Path, wish: keys.Key, name: str | None) -> tuple[keys.Key, str]:
    """Make a key of these wishes; the key, and its text. Raises UsageError, BadInputError, FilesystemError."""
    made, text = keys.make(wish)
    old = keys.load(path) if path.exists() else ()
    keys.save(path, (*old, made), owner=_service_user(name))
    return made, text


def revoke(path: Path, wanted: str) -> keys.Key:
    """The key that is now revoked. Raises UsageError, BadInputError, FilesystemError."""
    old = keys.load(path)
    new = keys.revoke(old, wanted, int(time.time()))
    keys.save(path, new)
    return next(key for key, before in zip(new, old, strict=True) if key != before)


def _service_user(name: str | None) -> tuple[int, int] | None:
    """Who must be able to read a file that root makes: the service's own user, where there is one."""
    from sampan.install.model import user_name

    if name is None or os.geteuid() != 0:
        return None
    try:
        found = pwd.getpwnam(user_name(name))
    except KeyError:
        return None
    return found.pw_uid, found.pw_gid
