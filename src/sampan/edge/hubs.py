"""Model hubs: listings and downloads, several files at once, each under its name only when its digest is right."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path

import httpx

from sampan import i18n
from sampan.disk import filesystem_errors
from sampan.edge import pip_settings
from sampan.edge.download import Downloader
from sampan.edge.http import host_of, make_client
from sampan.edge.hub_api import HubApi
from sampan.edge.hub_settings import HubAccess, access
from sampan.edge.joined_progress import Joined, StoppedError
from sampan.edge.pip_settings import IndexSettings
from sampan.edge.store import DiskStore
from sampan.edge.verify import Wanted, check
from sampan.errors import NetworkError, VerificationError
from sampan.spec.hub import HubFile, HubListing
from sampan.spec.ports import Progress

_AT_ONCE = 4
_PATIENCE = 8


class HubClient:
    """See spec.hub.Hubs. Proxies and certificates are those of the user's pip settings and environment."""

    def __init__(
        self, store: DiskStore, progress: Progress, *, settings: IndexSettings | None = None, pause: float = 0.5
    ) -> None:
        self._store, self._progress, self._given, self._pause = store, progress, settings, pause

    @cached_property
    def _client(self) -> httpx.Client:
        settings = self._given or pip_settings.read()
        # The indexes' passwords are none of a hub's business.
        return make_client(replace(settings, index_url="", extra_index_urls=(), find_links=()))

    @cached_property
    def _api(self) -> HubApi:
        return HubApi(self._client, pause=self._pause)

    def listing(self, hub: str, repository: str, revision: str | None) -> HubListing:
        """See spec.hub.Hubs."""
        return self._api.listing(hub, access(hub), repository, revision)

    def address(self, url: str) -> HubListing:
        """See spec.hub.Hubs."""
        return self._api.address(url)

    def fetch(self, hub: str, files: Sequence[tuple[HubFile, Path]]) -> None:
        """See spec.hub.Hubs."""
        where = access(hub) if hub != "url" else HubAccess("")
        total = float(sum(file.size_bytes or 0 for file, _ in files))
        title = i18n.text("hub.fetching", count=len(files))
        with self._progress.task(title, total or None) as outer:
            joined = Joined(outer, total)
            downloader = Downloader(
                self._client,
                joined,
                patience=_PATIENCE,
                pause=self._pause,
                sleep=joined.wait,
                headers=where.headers,
                again=True,
            )
            self._all(downloader, joined, files)

    def _all(self, downloader: Downloader, joined: Joined, files: Sequence[tuple[HubFile, Path]]) -> None:
        """The first real failure ends the others; so does Ctrl-C."""
        largest_first = sorted(files, key=lambda pair: -(pair[0].size_bytes or 0))
        with ThreadPoolExecutor(max_workers=_AT_ONCE) as pool:
            running = [pool.submit(self._one, downloader, file, final) for file, final in largest_first]
            try:
                for each in as_completed(running):
                    each.result()
            except BaseException:
                joined.stop.set()
                for each in running:
                    each.cancel()
                raise

    def _one(self, downloader: Downloader, file: HubFile, final: Path) -> None:
        wanted = Wanted(file.url, file.path, file.sha256, file.size_bytes, file.git_sha1)
        lock = f"hub-{hashlib.sha256(str(final).encode()).hexdigest()[:24]}"
        with filesystem_errors(final), self._store.locked(lock), _hub_errors(file):
            if wanted.pinned and final.is_file() and _is_right(final, wanted):
                return  # another process was faster
            downloader.fetch(wanted, final)


def _is_right(final: Path, wanted: Wanted) -> bool:
    try:
        check(final, wanted)
    except VerificationError:
        return False
    return True


_KEYS = {"net.offline": "hub.offline", "net.not-found": "hub.file_gone", "net.status": "hub.status"}


@contextmanager
def _hub_errors(file: HubFile) -> Iterator[None]:
    """The downloader's errors speak of package indexes; these say what to do with a hub."""
    host = host_of(file.url)
    try:
        yield
    except VerificationError as error:
        raise VerificationError("hub.hash", host=host, name=file.path, detail=error.message) from error
    except NetworkError as error:
        status = error.values.get("status", 0)
        if status in (401, 403):
            key = "hub.login" if status == 401 else "hub.gated"
            raise NetworkError(key, host=host, what=file.path) from error
        key = _KEYS.get(error.key, error.key)
        detail = error.values.get("detail", "")
        raise NetworkError(key, host=host, what=file.path, status=status, detail=detail) from error


__all__ = ["HubClient", "StoppedError"]
