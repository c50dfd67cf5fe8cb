"""The door: a source on a hub becomes files in the store, or in a folder of the user's.

``<store>/hubs/<hub>/<ORG>--<NAME>/<commit>/…`` holds what was fetched; ``…/listings/`` what a revision meant when the
hub was last asked, so that a filled store needs no network.
"""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from sampan.disk import filesystem_errors, write
from sampan.errors import FilesystemError, NetworkError, VerificationError
from sampan.spec import codec
from sampan.spec.hub import Fetched, HubFile, HubListing, Hubs, git_blob_sha1
from sampan.spec.ports import Progress, Store
from sampan.weights.digest import sha256_of
from sampan.weights.fetch.choose import choose
from sampan.weights.fetch.source import Source, parse

_COMMIT = re.compile(r"[0-9a-f]{40}")
_SPARE = 64 << 20  # bytes that stay free


@dataclass(frozen=True)
class _Asked:
    listing: HubListing
    remembered: bool


def fetch(source: str, *, out: Path | None = None, hubs: Hubs, store: Store, progress: Progress) -> Fetched:
    """Bring the model; ``out`` None keeps it in the store. What is there already and sound is not fetched again.

    Raises UsageError, BadInputError, NetworkError, VerificationError, FilesystemError.
    """
    wanted = parse(source)
    asked = _ask(wanted, hubs, store)
    listing = _pinned(asked.listing, wanted)
    files = choose(listing, wanted.glob) if wanted.hub != "url" else listing.files
    if wanted.hub != "url":
        _require_digests(files, listing)
    folder = out or _place(listing, store)
    with filesystem_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    lacking = [(file, folder / file.path) for file in files if not _is_there(file, folder, store, progress)]
    if lacking:
        _require_space(lacking, folder)
        hubs.fetch(wanted.hub, [(_askable(file, wanted), path) for file, path in lacking])
    known = tuple(replace(file, sha256=sha256_of(folder / file.path, store, progress)) for file in files)
    _require_pinned(known, wanted)
    return Fetched(
        source=wanted.shown,
        repository=listing.repository,
        revision=listing.revision,
        commit=listing.commit,
        path=str(_model_path(folder, known)),
        files=known,
        size_bytes=sum((folder / file.path).stat().st_size for file in known),
        remembered=asked.remembered,
    )


def _ask(wanted: Source, hubs: Hubs, store: Store) -> _Asked:
    """The hub's listing; a commit's is kept for good, any other's serves where the hub cannot be reached."""
    key = f"{wanted.hub}:{wanted.name}@{wanted.revision or ''}"
    note = store.root / "hubs" / "listings" / f"{hashlib.sha256(key.encode()).hexdigest()[:24]}.json"
    fixed = wanted.sha256 is not None or bool(_COMMIT.fullmatch(wanted.revision or ""))
    if fixed and note.is_file():
        return _Asked(codec.load(HubListing, note), remembered=False)
    try:
        if wanted.hub == "url":
            listing = _without_query(hubs.address(wanted.name), wanted)
        else:
            listing = hubs.listing(wanted.hub, wanted.name, wanted.revision)
    except NetworkError as error:
        if error.key not in ("hub.offline", "hub.busy") or not note.is_file():
            raise
        return _Asked(codec.load(HubListing, note), remembered=True)
    with filesystem_errors(note):
        note.parent.mkdir(parents=True, exist_ok=True)
        write(note, codec.to_json(listing).encode())
    return _Asked(listing, remembered=False)


def _without_query(listing: HubListing, wanted: Source) -> HubListing:
    """What is kept and printed holds no password."""
    files = tuple(replace(file, url=wanted.shown) for file in listing.files)
    return replace(listing, repository=wanted.shown, files=files)


def _require_digests(files: Sequence[HubFile], listing: HubListing) -> None:
    """Without one nothing could be proved. Raises VerificationError."""
    unknown = [file.path for file in files if file.sha256 is None and file.git_sha1 is None]
    if unknown:
        raise VerificationError("hub.no_digest", repository=listing.repository, files=", ".join(unknown[:8]))


def _askable(file: HubFile, wanted: Source) -> HubFile:
    return replace(file, url=wanted.name) if wanted.hub == "url" else file


def _pinned(listing: HubListing, wanted: Source) -> HubListing:
    """The user's own digest counts more than the host's; where both are known they must be equal."""
    if wanted.sha256 is None:
        return listing
    (file,) = listing.files
    if file.sha256 not in (None, wanted.sha256):
        raise VerificationError("hub.other", url=file.url, expected=wanted.sha256, found=file.sha256)
    return replace(listing, files=(replace(file, sha256=wanted.sha256),))


def _require_pinned(files: Sequence[HubFile], wanted: Source) -> None:
    if wanted.sha256 is not None and files[0].sha256 != wanted.sha256:
        raise VerificationError("hub.other", url=files[0].url, expected=wanted.sha256, found=files[0].sha256)


def _place(listing: HubListing, store: Store) -> Path:
    content = "\n".join(f"{file.path} {file.sha256 or file.git_sha1 or file.size_bytes}" for file in listing.files)
    version = listing.commit or hashlib.sha256(content.encode()).hexdigest()[:24]
    if listing.hub == "url":
        named = hashlib.sha256(listing.repository.encode()).hexdigest()[:24]
    else:
        named = listing.repository.replace("/", "--")
    return store.root / "hubs" / listing.hub / named / re.sub(r"[^A-Za-z0-9._-]", "_", version)


def _is_there(file: HubFile, folder: Path, store: Store, progress: Progress) -> bool:
    """Whether the file is there with the right content; digests of unchanged files are remembered."""
    path = folder / file.path
    if not path.is_file() or file.size_bytes not in (None, path.stat().st_size):
        return False
    if file.sha256 is not None:
        return sha256_of(path, store, progress) == file.sha256
    return file.git_sha1 is not None and git_blob_sha1(path) == file.git_sha1


def _require_space(lacking: Sequence[tuple[HubFile, Path]], folder: Path) -> None:
    """Better at the start than after an hour. Raises FilesystemError."""
    needed = sum(file.size_bytes or 0 for file, _ in lacking)
    needed -= sum(part.stat().st_size for part in folder.rglob(".*.part"))
    free = shutil.disk_usage(folder).free
    if needed + _SPARE > free and needed > 0:
        raise FilesystemError("hub.space", path=str(folder), needed_mib=needed >> 20, free_mib=free >> 20)


def _model_path(folder: Path, files: Sequence[HubFile]) -> Path:
    """The one model file where there is just one model in GGUF and no folder's description; else the folder."""
    names = sorted(file.path for file in files)
    models = [name for name in names if name.endswith(".gguf")]
    if "config.json" not in names and models:
        first = PurePosixPath(models[0]).name
        if len(models) == 1 or "-00001-of-" in first:
            return folder / models[0]
    return folder / names[0] if len(names) == 1 else folder
