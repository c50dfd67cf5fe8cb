"""The one door to the network: what was fetched once is served from the store."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from urllib.parse import unquote, urlsplit

import httpx

from sampan.disk import filesystem_errors
from sampan.edge import pip_settings, pypi
from sampan.edge.download import Downloader
from sampan.edge.files import write_atomically
from sampan.edge.http import make_client
from sampan.edge.pip_settings import IndexSettings
from sampan.edge.pypi import Indexes
from sampan.edge.store import DiskStore
from sampan.edge.verify import Wanted, sha256_of
from sampan.errors import NetworkError
from sampan.spec.ports import Progress


class NetFetcher:
    """See ports.Fetcher. Opens no connection and reads no setting before something is missing in the store."""

    def __init__(
        self,
        store: DiskStore,
        progress: Progress,
        *,
        settings: IndexSettings | None = None,
        pause: float = 0.5,
    ) -> None:
        self._store, self._progress, self._pause = store, progress, pause
        self._given = settings
        self._sound: set[Path] = set()

    @cached_property
    def _settings(self) -> IndexSettings:
        return self._given or pip_settings.read()

    @cached_property
    def _client(self) -> httpx.Client:
        return make_client(self._settings)

    @cached_property
    def _downloader(self) -> Downloader:
        return Downloader(self._client, self._progress, pause=self._pause)

    def pypi(self, requirement: str, *, file_name: str, sha256: str) -> Path:
        """See ports.Fetcher."""
        final = self._place(sha256, file_name)
        if self._has(final, sha256):
            return final
        with self._locked(final):
            if self._has(final, sha256):
                return final
            return self._first_good(requirement, file_name, sha256, final)

    def _first_good(self, requirement: str, file_name: str, sha256: str, final: Path) -> Path:
        """Take the first place that delivers; the last place's error where none does."""
        failure: NetworkError | None = None
        project = pypi.project_of(requirement)
        for url in pypi.candidates(self._indexes(), project, file_name, sha256):
            try:
                return self._downloader.fetch(Wanted(url, file_name, sha256), final)
            except NetworkError as error:
                failure = error
        raise failure or NetworkError("net.no-such-file", name=file_name, project=project)

    def wheel(self, requirement: str, *, tags: Sequence[str], hashes: Collection[str]) -> Path:
        """See ports.WheelFetcher. The choice is kept in the store: with it, a filled store needs no network."""
        note = self._store.root / "resolved" / "wheels" / f"{_choice(requirement, tags, hashes)}.json"
        chosen = _read_note(note)
        if chosen is None:
            file = pypi.best_wheel(self._indexes(), requirement, tags, hashes)
            chosen = (file.name, file.sha256 or "")
            write_atomically(note, json.dumps(chosen).encode())
        name, sha256 = chosen
        return self.pypi(requirement, file_name=name, sha256=sha256)

    def _indexes(self) -> Indexes:
        return Indexes(self._client, self._settings, self._pause)

    def url(self, url: str, *, sha256: str | None, size: int | None = None) -> Path:
        """See ports.Fetcher. Without a hash the file is always fetched anew."""
        name = unquote(urlsplit(url).path).rpartition("/")[2] or "index"
        if sha256 is None:
            final = self._store.root / "downloads" / "unpinned" / hashlib.sha256(url.encode()).hexdigest() / name
        else:
            final = self._place(sha256, name)
            if self._has(final, sha256):
                return final
        with self._locked(final):
            if sha256 is not None and self._has(final, sha256):
                return final
            return self._downloader.fetch(Wanted(url, name, sha256, size), final)

    def _has(self, final: Path, sha256: str) -> bool:
        """Whether it is there and still what it was: hashed once a process, a damaged one is fetched again."""
        if not final.is_file():
            return False
        if final not in self._sound:
            with filesystem_errors(final):
                if sha256_of(final) != sha256:
                    return False
            self._sound.add(final)
        return True

    def _place(self, sha256: str, name: str) -> Path:
        return self._store.root / "downloads" / sha256 / name

    @contextmanager
    def _locked(self, final: Path) -> Iterator[None]:
        """One process downloads, the others wait for it."""
        with filesystem_errors(final), self._store.locked(f"download-{final.parent.name}"):
            yield


def _choice(requirement: str, tags: Sequence[str], hashes: Collection[str]) -> str:
    text = json.dumps([requirement, list(tags), sorted(hashes)])
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def _read_note(path: Path) -> tuple[str, str] | None:
    try:
        name, sha256 = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return None
    return str(name), str(sha256)
