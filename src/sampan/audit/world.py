"""World: everything that one audit knows, as values. Nothing here reads a file."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from sampan.audit import base
from sampan.audit.architectures import ArchRules
from sampan.audit.facts import Damaged, ElfFacts
from sampan.audit.numbers import number, split_version
from sampan.audit.rules import Rules
from sampan.spec import layout
from sampan.spec.target import TargetProfile

_LIBC = "libc.so.6"


@dataclass(frozen=True)
class World:
    """Paths are absolute, normalised and free of links; ``aliases`` leads from a link's path to its file.

    ``files`` holds the sound ELF files: those to be judged, in ``shown`` under the name to report them by, and those
    that may serve them. ``bundle`` is the bundle's root where there is one. ``digests``: of the files that share a
    SONAME, by path; ``set_id``: the files that run with their owner's rights. ``runtime``: the private runtime that
    serves files outside of any bundle. ``unpacked``: the folder of an opened archive -> its name. ``wheels``: those
    of them that pip would install into one folder.
    """

    profile: TargetProfile
    arch: ArchRules
    rules: Rules
    files: Mapping[str, ElfFacts]
    shown: Mapping[str, str]
    damaged: Mapping[str, Damaged] = field(default_factory=dict)
    aliases: Mapping[str, str] = field(default_factory=dict)
    bundle: str | None = None
    digests: Mapping[str, str] = field(default_factory=dict)
    set_id: frozenset[str] = frozenset()
    runtime: str | None = None
    unpacked: Mapping[str, str] = field(default_factory=dict)
    wheels: tuple[str, ...] = ()

    @property
    def private(self) -> str | None:
        """The private runtime that serves, the bundle's or the one that was handed in; None where the target does."""
        return posixpath.join(self.bundle, self.rules.runtime) if self.bundle is not None else self.runtime

    @property
    def libraries(self) -> str | None:
        """The folder that the private loader searches, where there is one."""
        return posixpath.join(self.private, layout.LIBRARIES) if self.private is not None else None

    @property
    def loader(self) -> str | None:
        """The private loader, where there is a runtime that has one."""
        return self.find(posixpath.join(self.private, layout.LOADER)) if self.private is not None else None

    @cached_property
    def on_target(self) -> frozenset[str]:
        """Libraries that the target itself has for sure. The private loader uses none of them."""
        return base.certain(self.profile, self.rules) if self.private is None else frozenset()

    @cached_property
    def unstated(self) -> frozenset[str]:
        """Libraries that the target may well have, but nothing says that it does."""
        return base.probable(self.profile) - self.on_target if self.private is None else frozenset()

    @property
    def lib(self) -> str:
        """What ``$LIB`` in a search path becomes."""
        return self.arch.lib[1 if self.private is not None or base.multiarch(self.profile) else 0]

    @property
    def glibc(self) -> tuple[int, ...]:
        """The version of the glibc that serves: the bundle's or the target's; () where that is not known."""
        libc = self.find(posixpath.join(self.libraries, _LIBC)) if self.libraries else None
        if libc is None:
            return number(self.profile.libc.glibc or "") if self.private is None else ()
        given = (split_version(version) for version in self.files[libc].provides)
        return max((found for family, found in given if family == "GLIBC"), default=())

    @property
    def old_world(self) -> bool:
        """Whether the target is of its architecture's old, incompatible world."""
        old, glibc = self.arch.old_world, number(self.profile.libc.glibc or "")
        return bool(old and glibc and glibc < old.below)

    @property
    def hwcaps(self) -> tuple[str, ...]:
        """The subfolders of each searched folder that the loader looks into first on that CPU."""
        features, glibc = frozenset(self.profile.cpu.features), self.glibc
        return tuple(
            each.folder
            for each in self.arch.hwcaps
            if each.features <= features and each.since <= glibc[:2] <= each.until
        )

    def ceiling(self, fact: str) -> str | None:
        """The target's highest version of one family: as the profile says, else as its GCC has it."""
        libc = self.profile.libc
        said: str | None = getattr(libc, fact, None)
        if said or not libc.glibcxx:
            return said
        have = number(libc.glibcxx)
        rows = [row for row in self.rules.gcc if row.glibcxx <= have]
        return max(rows, key=lambda row: row.glibcxx).ceilings.get(fact) if rows else None

    def find(self, path: str) -> str | None:
        """The file that ``path`` leads to, if it is a sound ELF file that we know."""
        real = self.aliases.get(path, path)
        if real in self.files or not self.wheels:
            return real if real in self.files else None
        own = next((folder for folder in self.wheels if path.startswith(folder + "/")), None)
        beside = [] if own is None else [folder + path[len(own) :] for folder in self.wheels if folder != own]
        return next(
            (self.aliases.get(each, each) for each in beside if self.aliases.get(each, each) in self.files), None
        )

    def name(self, path: str) -> str:
        """The path as people know it."""
        if path in self.shown:
            return self.shown[path]
        for folder, name in self.unpacked.items():
            if f"{path}/".startswith(folder + "/"):
                return f"{name}!{path[len(folder) + 1 :]}"
        if self.bundle is not None and path.startswith(self.bundle + "/"):
            return path[len(self.bundle) + 1 :]
        return path

    def within_bundle(self, path: str) -> str | None:
        """The path relative to the bundle's root, None where it is not inside one."""
        if self.bundle is None or not path.startswith(self.bundle + "/"):
            return None
        return path[len(self.bundle) + 1 :]
