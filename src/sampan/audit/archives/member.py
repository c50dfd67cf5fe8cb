"""One member of an archive, the same for every format."""

from __future__ import annotations

import posixpath
from collections.abc import Callable
from dataclasses import dataclass

from sampan.audit.archives.limits import MAX_NAME, MAX_PART


class DamagedArchive(Exception):
    """The archive, or one member of it, cannot be read; the text says why, in English."""


@dataclass(frozen=True)
class Member:
    """``kind``: file, folder, link or other (device, pipe, socket, sparse…). ``target``: where a link leads, from the
    archive's top where ``hard``. ``read(n)``: at most n of the next bytes, empty at the end; raises DamagedArchive.
    ``set_id``: it would run with its owner's or group's rights (tar and dpkg keep that, unzip and pip do not).
    """

    name: str
    kind: str
    target: str = ""
    hard: bool = False
    read: Callable[[int], bytes] = lambda _: b""
    set_id: bool = False


def clean(name: str) -> str | None:
    """The path below the archive's top; None where it leads out of it or no file can be called so."""
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if name.startswith("/") or ".." in parts or "\0" in name or not parts:
        return None
    lengths = [len(part.encode("utf-8", "surrogateescape")) for part in parts if _encodable(part)]
    if len(lengths) < len(parts) or max(lengths) > MAX_PART or sum(lengths) + len(lengths) > MAX_NAME:
        return None
    return "/".join(parts)


def _encodable(part: str) -> bool:
    try:
        part.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return False
    return True


def lead(name: str, target: str, *, hard: bool, rooted: bool) -> str | None:
    """Where the link at ``name`` leads, below the archive's top; None where it leads out.

    ``rooted``: the archive is unpacked at ``/``, as a Debian package is.
    """
    if target.startswith("/"):
        return clean(posixpath.normpath(target).lstrip("/")) if rooted else None
    base = "" if hard else posixpath.dirname(name)
    found = posixpath.normpath(posixpath.join(base, target))
    return None if found == ".." or found.startswith("../") else clean(found)
