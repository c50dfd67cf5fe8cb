"""What a failed installation puts back: the switch and the unit as they were."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sampan.install import disk
from sampan.install.model import CURRENT


@dataclass(frozen=True)
class Snapshot:
    """``current`` is the link's target, ``unit`` the unit file's bytes; None where there was none."""

    link: Path
    current: str | None
    unit_path: Path | None
    unit: bytes | None

    @classmethod
    def take(cls, prefix: Path, unit_path: Path | None) -> Snapshot:
        """Look at ``prefix`` and the unit file. Raises OSError."""
        link = prefix / CURRENT
        return cls(
            link=link,
            current=str(link.readlink()) if link.is_symlink() else None,
            unit_path=unit_path,
            unit=unit_path.read_bytes() if unit_path and unit_path.is_file() else None,
        )

    def restore(self) -> None:
        """Put both back; what was not there goes. Raises OSError."""
        if self.current is None:
            self.link.unlink(missing_ok=True)
        else:
            disk.point(self.link, self.current)
        if self.unit_path is None:
            return
        if self.unit is None:
            self.unit_path.unlink(missing_ok=True)
        else:
            disk.write(self.unit_path, self.unit)
