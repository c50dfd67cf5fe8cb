"""A bundle's tar as it lies there: verified in one reading, and given its signature, without being unpacked."""

from __future__ import annotations

import hashlib
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from sampan import disk, i18n
from sampan.bundle import layout, manifest, sums, unpack
from sampan.bundle.manifest import Manifest
from sampan.bundle.pack import header
from sampan.bundle.unpack import Member
from sampan.bundle.verify import Problem
from sampan.errors import BadInputError, VerificationError
from sampan.spec.ports import Progress

_BUFFER_BYTES = 4 << 20
_SMALL_BYTES = 64 << 20  # of SHA256SUMS and manifest.json: 200,000 files have 40 MB


class Archive:
    """An opened tar whose list of entries has been judged. Its files are read in place."""

    def __init__(self, stream: BinaryIO, path: Path) -> None:
        """Raises BadInputError (cut short, not a tar), VerificationError (an entry that no bundle has)."""
        self._stream, self.path = stream, path
        self.members = unpack.read_members(stream, path)
        self.top = unpack.judge(self.members, path)
        self.files = {self._inner(one): one for one in self.members if not one.folder}

    def _inner(self, member: Member) -> str:
        return member.path.removeprefix(f"{self.top}/")

    def read(self, name: str) -> bytes | None:
        """A small file's bytes, None where it is not there. Raises VerificationError for one that is not small."""
        member = self.files.get(name)
        if member is None:
            return None
        if member.size > _SMALL_BYTES:
            raise VerificationError("bundle.tar-entry", path=str(self.path), entry=member.path, fault="length")
        return b"".join(self.pieces(member))

    def pieces(self, member: Member) -> Iterator[bytes]:
        """A file's bytes, a few MiB at a time."""
        self._stream.seek(member.offset)
        left = member.size
        while left:
            piece = self._stream.read(min(left, _BUFFER_BYTES))
            if not piece:
                raise BadInputError("bundle.tar-cut", path=str(self.path))
            left -= len(piece)
            yield piece

    def manifest(self) -> Manifest:
        """Raises BadInputError where there is none or it is damaged."""
        text = self.read(layout.MANIFEST)
        if text is None:
            raise BadInputError("bundle.unsealed", path=str(self.path))
        return manifest.parse(text, where=f"{self.path}:{layout.MANIFEST}")


def verify(archive: Archive, progress: Progress) -> tuple[Problem, ...]:
    """As ``verify.verify`` does for a folder: everything that is wrong, by path; empty means as it was sealed."""
    text = archive.read(layout.SUMS)
    digests = sums.parse(text) if text is not None else None
    if digests is None:
        return (Problem("sums", layout.SUMS),)
    listed = set(digests)
    problems = [Problem("missing", path) for path in listed - set(archive.files)]
    problems += [Problem("extra", path) for path in set(archive.files) - listed - layout.UNLISTED]
    present = [archive.files[path] for path in archive.files if path in listed]
    with progress.task(i18n.text("bundle.verifying"), sum(member.size for member in present)) as task:
        for member in sorted(present, key=lambda one: one.offset):
            digest = hashlib.sha256()
            for piece in archive.pieces(member):
                digest.update(piece)
                task.advance(len(piece))
            path = member.path.removeprefix(f"{archive.top}/")
            if digest.hexdigest() != digests[path]:
                problems.append(Problem("changed", path))
    problems += _manifest(archive, digests)
    return tuple(sorted(problems, key=lambda problem: (problem.path, problem.kind)))


def _manifest(archive: Archive, digests: dict[str, str]) -> Iterator[Problem]:
    try:
        sealed = archive.manifest()
    except BadInputError as error:
        yield Problem("manifest", layout.MANIFEST, error.message)
        return
    listed = {path: digest for path, digest in digests.items() if path != layout.MANIFEST}
    if sealed.digests != listed:
        differing = {path for path, _ in sealed.digests.items() ^ listed.items()}
        yield Problem("manifest", layout.MANIFEST, ", ".join(sorted(differing)[:5]))
    if archive.top != layout.folder_name(sealed.name, sealed.release):
        yield Problem("name", archive.top, f"{sealed.name}-{sealed.release}")


def with_signature(archive: Archive, signature: bytes, progress: Progress) -> str:
    """Replace the tar by one that holds this signature after SHA256SUMS; the new tar's SHA-256.

    The bytes are those that packing the signed folder would give. Raises FilesystemError; the old tar stays until
    the new one is whole.
    """
    total = sum(member.size for member in archive.members)
    digest = hashlib.sha256()
    note = archive.path.with_name(f"{archive.path.name}.sha256")
    with disk.filesystem_errors(archive.path), progress.task(i18n.text("bundle.signing"), total) as task:
        with disk.new_file(archive.path) as sink:
            for piece in _signed_pieces(archive, signature):
                sink.write(piece)
                digest.update(piece)
                task.advance(len(piece))
            note.unlink(missing_ok=True)  # no moment at which a sum stands beside another tar
        disk.write(note, f"{digest.hexdigest()}  {archive.path.name}\n".encode())
    return digest.hexdigest()


def _signed_pieces(archive: Archive, signature: bytes) -> Iterator[bytes]:
    size = 0
    for member in archive.members:
        inner = member.path.removeprefix(f"{archive.top}/")
        if inner == layout.SIGNATURE:
            continue
        for piece in _entry(archive, member):
            size += len(piece)
            yield piece
        if inner == layout.SUMS:
            head = header(f"{archive.top}/{layout.SIGNATURE}", tarfile.REGTYPE, 0o644, len(signature), member.mtime)
            piece = head + signature + bytes(-len(signature) % tarfile.BLOCKSIZE)
            size += len(piece)
            yield piece
    yield bytes(2 * tarfile.BLOCKSIZE + -(size + 2 * tarfile.BLOCKSIZE) % tarfile.RECORDSIZE)


def _entry(archive: Archive, member: Member) -> Iterator[bytes]:
    if member.folder:
        yield header(f"{member.path}/", tarfile.DIRTYPE, layout.FOLDER_MODE, 0, member.mtime)
        return
    yield header(member.path, tarfile.REGTYPE, member.mode, member.size, member.mtime)
    yield from archive.pieces(member)
    yield bytes(-member.size % tarfile.BLOCKSIZE)
