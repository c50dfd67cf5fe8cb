"""What one archive holds, as far as the audit wants to know."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from sampan.audit.archives.member import lead


@dataclass
class Contents:
    """What one archive holds. Names are below its top.

    ``files``: written into ``folder`` (ELF files, archives, metadata); ``names``: of all. ``links``: name -> where it
    leads. ``digests``: of a wheel's members, as RECORD writes them, with their size. ``heads``: the first bytes of a
    wheel's scripts; ``no_elf``: of what is called a library and is no ELF file. ``set_id``: of those that run with
    their owner's rights where the archive is unpacked, not here.
    ``faults``: by finding code, what is said of it and of which members.
    """

    folder: Path
    files: list[str] = field(default_factory=list)
    names: set[str] = field(default_factory=set)
    links: dict[str, str] = field(default_factory=dict)
    digests: dict[str, tuple[str, int]] = field(default_factory=dict)
    heads: dict[str, bytes] = field(default_factory=dict)
    no_elf: dict[str, bytes] = field(default_factory=dict)
    set_id: set[str] = field(default_factory=set)
    faults: dict[str, list[str]] = field(default_factory=dict)
    members: int = 0

    def fault(self, code: str, what: str) -> None:
        """One more fault; finding codes come without their ``archive.``."""
        self.faults.setdefault(code, []).append(what)

    def settle_links(self, *, rooted: bool) -> None:
        """Replace each link's target by a name below the top; those that lead out are faults."""
        for name, target in list(self.links.items()):
            place = lead(name, target[1:], hard=target.startswith("="), rooted=rooted)
            if place is None:
                self.fault("link", f"{name} -> {target[1:]}")
                del self.links[name]
            else:
                self.links[name] = place


class Nowhere:
    """A sink for what is only hashed."""

    def __enter__(self) -> Nowhere:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing to close."""

    def write(self, piece: bytes) -> None:
        """Drop it."""
