"""Finding files of a project on the user's package indexes."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import httpx
from packaging.requirements import Requirement
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from unearth import PackageFinder
from unearth.fetchers import Fetcher
from unearth.link import Link

from sampan.edge.http import file_path
from sampan.edge.index_client import IndexClient
from sampan.edge.pip_settings import IndexSettings
from sampan.errors import IncompatibleError, NetworkError, VerificationError

logging.getLogger("unearth").addHandler(logging.NullHandler())  # what matters of its warnings becomes our error


@dataclass(frozen=True)
class IndexFile:
    """One file as an index shows it; ``sha256`` None where the index does not say."""

    name: str
    url: str
    sha256: str | None


def sources(settings: IndexSettings) -> tuple[tuple[str, str], ...]:
    """``(kind, address)`` of every place to look, the nearest first; an empty address is the client's default."""
    links = [("find_links", entry) for entry in settings.find_links if _exists(entry)]
    indexes = [] if settings.no_index else [("index", settings.index_url or "")]
    indexes += [] if settings.no_index else [("index", entry) for entry in settings.extra_index_urls]
    found = [*links, *indexes]
    return tuple(sorted(found, key=lambda item: not _is_local(item[1])))


def _is_local(entry: str) -> bool:
    return file_path(entry) is not None or (bool(entry) and "://" not in entry)


def _exists(entry: str) -> bool:
    """Settings often name a folder that only some machines have; pip passes over it with a word, so do we."""
    if not _is_local(entry):
        return True
    return (file_path(entry) or Path(entry).expanduser()).exists()


def _finder(kind: str, address: str, client: IndexClient) -> PackageFinder:
    finder = PackageFinder(
        session=cast("Fetcher", client), ignore_compatibility=True
    )  # without a source: its default index
    if address:
        finder.sources.clear()
        place = str(Path(address).expanduser().absolute()) if _is_local(address) and "://" not in address else address
        (finder.add_index_url if kind == "index" else finder.add_find_links)(place)
    return finder


class Indexes:
    """All places of the settings, asked one after the other; ``trouble`` keeps the first failure."""

    def __init__(self, client: httpx.Client, settings: IndexSettings, pause: float = 0.5) -> None:
        self._pages = IndexClient(client, settings.trusted_hosts, pause)
        self._settings = settings
        self._failure: NetworkError | None = None

    def files(self, project: str) -> Iterator[IndexFile]:
        """Every file of the project, place by place: who has found enough need not ask the next."""
        for kind, address in sources(self._settings):
            try:
                found = _finder(kind, address, self._pages).find_all_packages(project, allow_yanked=True)
                yield from [_index_file(package.link) for package in found]
            except NetworkError as error:
                self._failure = self._failure or error

    @property
    def trouble(self) -> NetworkError | None:
        """Why a place gave nothing: not reachable, or refused."""
        return self._failure or self._pages.trouble


def _index_file(link: Link) -> IndexFile:
    hashes = (link.hash_option or {}).get("sha256")
    return IndexFile(link.filename, link.url_without_fragment, hashes[0] if hashes else None)


def candidates(indexes: Indexes, project: str, file_name: str, sha256: str) -> Iterator[str]:
    """Addresses of one file whose published hash, if any, is the wanted one.

    Where no place has it, raises NetworkError (the first refusal, or ``net.no-such-file``), or VerificationError
    where the name exists only with another hash.
    """
    found, other = False, ""
    for file in indexes.files(project):
        if file.name != file_name:
            continue
        if file.sha256 in (None, sha256):
            found = True
            yield file.url
        else:
            other = file.sha256 or ""
    if found:
        return
    if other:
        raise VerificationError("net.index-hash", name=file_name, expected=sha256, found=other)
    raise indexes.trouble or NetworkError("net.no-such-file", name=file_name, project=project)


def best_wheel(indexes: Indexes, requirement: str, tags: Sequence[str], hashes: Collection[str]) -> IndexFile:
    """The pinned wheel with the best tag; see ports.WheelFetcher. Its hash is always known."""
    wanted = Requirement(requirement)
    project = canonicalize_name(wanted.name)
    ranks = {tag: rank for rank, tag in enumerate(tags)}
    seen: list[str] = []
    best: tuple[int, IndexFile] | None = None
    for file in indexes.files(project):
        version, rank = _rank(file.name, ranks)
        if not version or not wanted.specifier.contains(version, prereleases=True):
            continue
        pinned = _with_hash(file)
        if pinned.sha256 not in hashes:
            continue
        seen.append(file.name)
        if rank is not None and (best is None or rank < best[0]):
            best = (rank, pinned)
    if best:
        return best[1]
    if not seen and indexes.trouble:
        raise indexes.trouble
    found = ", ".join(sorted(set(seen))[:4]) or "sdist"
    version = str(wanted.specifier).removeprefix("==")
    raise IncompatibleError("net.no-wheel", project=project, version=version, platform=tags[0], found=found)


def _rank(name: str, ranks: dict[str, int]) -> tuple[str, int | None]:
    """A wheel's version and the place of its best tag; an empty version for anything else."""
    try:
        _, version, _, tags = parse_wheel_filename(name)
    except InvalidWheelFilename:
        return "", None
    places = [ranks[str(tag)] for tag in tags if str(tag) in ranks]
    return str(version), min(places, default=None)


def _with_hash(file: IndexFile) -> IndexFile:
    """A local folder publishes no hashes: read the file. (An HTTP index without hashes cannot be pinned.)"""
    local = file_path(file.url)
    if file.sha256 is not None or local is None or not local.is_file():
        return file
    return replace(file, sha256=hashlib.sha256(local.read_bytes()).hexdigest())


def project_of(requirement: str) -> str:
    """The normalized project name of ``name`` or ``name==1.0``."""
    return canonicalize_name(Requirement(requirement).name)
