"""The one door to the network: what was fetched once is served from the store."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from urllib.parse import unquote, urlsplit

import httpx

from sampan.edge import pip_settings, pypi
from sampan.edge.download import Downloader, Wanted
from sampan.edge.http import make_client
from sampan.edge.pip_settings import IndexSettings
from sampan.edge.store import DiskStore, filesystem_errors
from sampan.errors import NetworkError, SampanError
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
        if final.is_file():
            return final
        with self._locked(final):
            if final.is_file():
                return final
            return self._first_good(requirement, file_name, sha256, final)

    def _first_good(self, requirement: str, file_name: str, sha256: str, final: Path) -> Path:
        """Take the first source that delivers; the last source's error where none does."""
        failure: SampanError | None = None
        project = pypi.project_of(requirement)
        for url in pypi.candidates(project, file_name, sha256, self._client, self._settings, pause=self._pause):
            try:
                return self._downloader.fetch(Wanted(url, file_name, sha256), final)
            except NetworkError as error:
                failure = error
        raise failure or NetworkError("net.no-such-file", name=file_name, project=project)

    def url(self, url: str, *, sha256: str | None, size: int | None = None) -> Path:
        """See ports.Fetcher. Without a hash the file is always fetched anew."""
        name = unquote(urlsplit(url).path).rpartition("/")[2] or "index"
        if sha256 is None:
            final = self._store.root / "downloads" / "unpinned" / hashlib.sha256(url.encode()).hexdigest() / name
        else:
            final = self._place(sha256, name)
            if final.is_file():
                return final
        with self._locked(final):
            if sha256 is not None and final.is_file():
                return final
            return self._downloader.fetch(Wanted(url, name, sha256, size), final)

    def _place(self, sha256: str, name: str) -> Path:
        return self._store.root / "downloads" / sha256 / name

    @contextmanager
    def _locked(self, final: Path) -> Iterator[None]:
        """One process downloads, the others wait for it."""
        with filesystem_errors(final), self._store.locked(f"download-{final.parent.name}"):
            yield
