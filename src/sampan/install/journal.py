"""What is under way in a prefix, on the disk before it is begun: whoever comes after a kill can take it back.

``pending.json`` says how things stood. A change is done for good at one moment: when the record changes. The next
command after a kill therefore reads both and either tidies up or takes back; see ``recover``.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from sampan.install import disk
from sampan.install.model import Installed
from sampan.spec import codec

NAME = "pending.json"
COPYING, SWITCHING = "copying", "switching"  # switching: unit and ``current`` may be changed already


@dataclass(frozen=True)
class Pending:
    """A change under way and all that it takes back. ``verb``: install, upgrade, rollback or uninstall.

    ``unit``: text of the unit file as it was. ``active``: whether the service ran. ``fresh_release``,
    ``fresh_config``, ``fresh_user``: not there before. ``created``: folders that were made to hold the prefix.
    """

    SCHEMA: ClassVar[str] = "sampan/pending/1"

    verb: str
    name: str
    release: int  # the one to be
    service: bool
    scope: str
    before: Installed | None
    current: str | None
    unit: str | None
    active: bool
    fresh_release: bool
    fresh_config: bool
    fresh_user: bool
    created: tuple[str, ...] = ()
    stage: str = COPYING
    pid: int = 0
    keys: str | None = None  # the file of keys that was named
    certificate_key: str | None = None
    main: str | None = None  # who ran before and goes on unless its successor answers (see takeover.mark)
    lifted: bool = False  # the service's memory limit may be for two releases (see room)


def read(prefix: Path) -> Pending | None:
    """What is under way in ``prefix``, None where nothing is. Raises BadInputError where the file is damaged."""
    path = prefix / NAME
    return codec.load(Pending, path) if path.is_file() else None


def write(prefix: Path, pending: Pending) -> None:
    """Put it down for good. Raises OSError."""
    disk.write(prefix / NAME, codec.to_json(pending).encode())


def clear(prefix: Path) -> None:
    """Nothing is under way any longer. Raises OSError."""
    if (prefix / NAME).exists():
        (prefix / NAME).unlink()
        disk.sync_folder(prefix)
