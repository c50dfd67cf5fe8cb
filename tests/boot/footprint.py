"""Everything on a machine's disk that a program could leave behind."""

from __future__ import annotations

from dataclasses import dataclass

from tests.boot.machine import Computer

#: what a running Debian writes by itself, whatever is installed; `/etc/passwd-` and its like are useradd's own copies
_OWN = (
    "/proc",
    "/sys",
    "/dev",
    "/run",
    "/tmp",
    "/var/tmp/systemd-private-*",  # of logind and the like, new with each boot
    "/var/log",
    "/var/lib/systemd",
    "/lost+found",
)
_COPIES = "/etc/(passwd|group|shadow|gshadow|subuid|subgid)-"


@dataclass(frozen=True)
class Footprint:
    """``files``: kind, mode, owner, link target and path of each; ``texts``: the hash of each file below /etc."""

    files: frozenset[str]
    texts: frozenset[str]
    units: frozenset[str]

    @classmethod
    def of(cls, computer: Computer) -> Footprint:
        """As it is now."""
        pruned = " -o ".join(f"-path '{place}'" for place in _OWN)
        form = r"%y %m %U:%G %l %p\n"
        files = computer.run("sh", "-c", f"find / -xdev \\( {pruned} \\) -prune -o -printf '{form}'")
        texts = computer.run("sh", "-c", f"find /etc -type f | grep -v -E '^{_COPIES}$' | xargs -d '\\n' sha256sum")
        units = computer.run("systemctl", "list-unit-files", "--no-legend", "--no-pager")
        return cls(_lines(files), _lines(texts), _lines(units))

    def unlike(self, before: Footprint) -> list[str]:
        """What came (+) and what went (-)."""
        pairs = ((self.files, before.files), (self.texts, before.texts), (self.units, before.units))
        came = [f"+ {line}" for now, then in pairs for line in sorted(now - then)]
        return came + [f"- {line}" for now, then in pairs for line in sorted(then - now)]


def _lines(text: str) -> frozenset[str]:
    return frozenset(line.rstrip() for line in text.splitlines() if line.strip())
