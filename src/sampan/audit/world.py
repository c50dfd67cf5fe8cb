"""World: everything that one audit knows, as values. Nothing here reads a file."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass, field

from sampan.audit.facts import Damaged, ElfFacts
from sampan.audit.rules import ArchRules, Rules
from sampan.spec import layout
from sampan.spec.target import TargetProfile


@dataclass(frozen=True)
class World:
    """Paths are absolute, normalised and free of links; ``aliases`` leads from a link's path to its file.

    ``files`` holds the sound ELF files: those to be judged, in ``shown`` under the name to report them by, and those
    that may serve them. ``bundle`` is the bundle's root where there is one.
    """

    profile: TargetProfile
    arch: ArchRules
    rules: Rules
    files: Mapping[str, ElfFacts]
    shown: Mapping[str, str]
    damaged: Mapping[str, Damaged] = field(default_factory=dict)
    aliases: Mapping[str, str] = field(default_factory=dict)
    bundle: str | None = None

    @property
    def libraries(self) -> str | None:
        """The folder that the private loader searches, where there is a bundle."""
        if self.bundle is None:
            return None
        return posixpath.join(self.bundle, self.rules.runtime, layout.LIBRARIES)

    @property
    def loader(self) -> str | None:
        """The private loader, where there is a bundle that has one."""
        if self.bundle is None:
            return None
        return self.find(posixpath.join(self.bundle, self.rules.runtime, layout.LOADER))

    @property
    def on_target(self) -> frozenset[str]:
        """Libraries that the target itself has for sure. A bundle may use none of them."""
        if self.bundle is not None:
            return frozenset()
        libc = self.profile.libc
        return self.rules.glibc_libraries | (self.rules.gcc_libraries if libc.glibcxx else frozenset())

    def find(self, path: str) -> str | None:
        """The file that ``path`` leads to, if it is a sound ELF file that we know."""
        real = self.aliases.get(path, path)
        return real if real in self.files else None

    def name(self, path: str) -> str:
        """The path as people know it."""
        if path in self.shown:
            return self.shown[path]
        if self.bundle is not None and path.startswith(self.bundle + "/"):
            return path[len(self.bundle) + 1 :]
        return path

    def within_bundle(self, path: str) -> str | None:
        """The path relative to the bundle's root, None where it is not inside one."""
        if self.bundle is None or not path.startswith(self.bundle + "/"):
            return None
        return path[len(self.bundle) + 1 :]


def fits(facts: ElfFacts, arch: ArchRules) -> bool:
    """Whether the loader of that architecture would take the file at all."""
    same = facts.machine == arch.machine and facts.bits == arch.bits
    return same and facts.little_endian == arch.little_endian
