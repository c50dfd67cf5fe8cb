"""Check a sealed folder against its sums and its manifest. Standard library only: it runs on the target."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from sampan import i18n
from sampan.bundle import layout, manifest, sums
from sampan.bundle.layout import Entry
from sampan.errors import BadInputError

_OTHERS_WRITE, _SET_ID = 0o022, 0o7000


@dataclass(frozen=True)
class Problem:
    """One thing that is not as it was sealed.

    ``kind``: missing, extra, changed, kind (link, device…), mode, name, sums (SHA256SUMS is absent or damaged),
    manifest (it does not say what SHA256SUMS says), unreadable.
    """

    kind: str
    path: str
    detail: str = ""

    @property
    def message(self) -> str:
        """For people, in the language in force."""
        return i18n.text(f"bundle.problem.{self.kind}", path=self.path, detail=self.detail)


def verify(folder: Path) -> tuple[Problem, ...]:
    """Everything that is wrong with the folder, sorted by path; empty means that it is as it was sealed.

    Modes: an unprivileged `tar` takes the umask's bits away, so less is allowed, never more. Raises BadInputError
    where there is no such folder, or one in it cannot be listed.
    """
    if not folder.is_dir():
        raise BadInputError("file.missing", path=str(folder))
    try:
        found = {entry.path: entry for entry in layout.entries(folder)}
    except OSError as error:
        raise BadInputError("file.unreadable", path=str(error.filename), detail=error.strerror) from error
    digests = _read_sums(folder)
    if digests is None:
        return (Problem("sums", layout.SUMS),)
    problems = [*_inventory(found, digests), *_contents(folder, found, digests)]
    problems += _manifest(folder, found, digests)
    return tuple(sorted(problems, key=lambda problem: (problem.path, problem.kind)))


def _read_sums(folder: Path) -> dict[str, str] | None:
    path = folder / layout.SUMS
    try:
        return None if path.is_symlink() else sums.parse(path.read_bytes())
    except OSError:
        return None


def _inventory(found: Mapping[str, Entry], digests: Mapping[str, str]) -> Iterator[Problem]:
    """What is there against what should be, without reading any file."""
    folders = {parent.as_posix() for path in digests for parent in Path(path).parents}
    for path in digests:
        if path not in found:
            yield Problem("missing", path)
    for path, entry in found.items():
        if entry.kind == "folder":
            if path not in folders:
                yield Problem("extra", f"{path}/")
        elif path not in digests and path not in layout.UNLISTED:
            yield Problem("extra", path)
        if (entry.kind not in ("file", "folder")) or (entry.kind == "folder" and path in digests):
            yield Problem("kind", path, entry.kind)
        elif entry.mode & (_OTHERS_WRITE | _SET_ID):
            yield Problem("mode", path, f"{entry.mode:04o}")


def _contents(folder: Path, found: Mapping[str, Entry], digests: Mapping[str, str]) -> Iterator[Problem]:
    present = [path for path in digests if path in found and found[path].kind == "file"]
    readable = []
    for path in present:
        try:
            (folder / path).open("rb").close()
            readable.append(path)
        except OSError as error:
            yield Problem("unreadable", path, error.strerror or "")
    for path, digest in sums.hash_files(folder, readable).items():
        if digest != digests[path]:
            yield Problem("changed", path)


def _manifest(folder: Path, found: Mapping[str, Entry], digests: Mapping[str, str]) -> Iterator[Problem]:
    """The manifest is what will be signed: it must promise the same bytes, and which files are programs."""
    if layout.MANIFEST not in found:
        if layout.MANIFEST not in digests:
            yield Problem("missing", layout.MANIFEST)
        return
    try:
        sealed = manifest.read(folder)
    except BadInputError as error:
        yield Problem("manifest", layout.MANIFEST, error.message)
        return
    listed = {path: digest for path, digest in digests.items() if path != layout.MANIFEST}
    if sealed.digests != listed:
        differing = {path for path, _ in sealed.digests.items() ^ listed.items()}
        yield Problem("manifest", layout.MANIFEST, ", ".join(sorted(differing)[:5]))
    for path in sealed.programs:
        if path in found and found[path].kind == "file" and not found[path].mode & 0o100:
            yield Problem("mode", path, f"{found[path].mode:04o}")
