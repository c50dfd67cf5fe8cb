"""A Debian archive in a folder, with packages of our own making: enough for resolving, fetching and unpacking."""

from __future__ import annotations

import hashlib
import io
import lzma
import tarfile
from dataclasses import dataclass, field
from pathlib import Path

from sampan.spec.debian import DebianSource

Content = bytes | str  # a file's bytes, or the target of a symbolic link


def _tar(entries: dict[str, Content]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:xz") as archive:
        for name, content in entries.items():
            member = tarfile.TarInfo(f"./{name}")
            if isinstance(content, str):
                member.type, member.linkname = tarfile.SYMTYPE, content
                archive.addfile(member)
            else:
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
    return out.getvalue()


def deb(entries: dict[str, Content]) -> bytes:
    """The bytes of a .deb with these files."""
    members = {
        "debian-binary": b"2.0\n",
        "control.tar.xz": _tar({"control": b"Package: x\n"}),
        "data.tar.xz": _tar(entries),
    }
    out = b"!<arch>\n"
    for name, data in members.items():
        out += (
            f"{name:<16}{0:<12}{0:<6}{0:<6}{'100644':<8}{len(data):<10}`\n".encode() + data + b"\n" * (len(data) % 2)
        )
    return out


@dataclass
class Archive:
    """An archive below ``root``; ``publish`` writes its index."""

    root: Path
    suite: str = "bookworm"
    arch: str = "arm64"
    origin: str = "Debian"
    stanzas: list[str] = field(default_factory=list)

    @property
    def source(self) -> DebianSource:
        """How the user's settings would name it."""
        return DebianSource(self.root.as_uri(), self.suite)

    def add(self, name: str, version: str, entries: dict[str, Content]) -> Path:
        """Put a package into the pool and the index."""
        data = deb(entries)
        path = self.root / "pool" / f"{name}_{version.replace(':', '%3a')}_{self.arch}.deb"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        self.stanzas.append(
            f"Package: {name}\nVersion: {version}\nArchitecture: {self.arch}\nFilename: pool/{path.name}\n"
            f"Size: {len(data)}\nSHA256: {hashlib.sha256(data).hexdigest()}\n"
        )
        return path

    def publish(self) -> Path:
        """Write Packages.xz and an InRelease (unsigned: the tests' gpgv is a fake)."""
        index = lzma.compress("\n".join(self.stanzas).encode())
        folder = self.root / "dists" / self.suite
        binary = folder / "main" / f"binary-{self.arch}"
        binary.mkdir(parents=True, exist_ok=True)
        (binary / "Packages.xz").write_bytes(index)
        release = folder / "InRelease"
        release.write_text(
            f"Origin: {self.origin}\nCodename: bookworm\nSHA256:\n"
            f" {hashlib.sha256(index).hexdigest()} {len(index)} main/binary-{self.arch}/Packages.xz\n"
        )
        return release
