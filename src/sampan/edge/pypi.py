"""Finding one named file of a project on the user's package indexes."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import cast

import httpx
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from unearth import PackageFinder
from unearth.fetchers import DEFAULT_SECURE_ORIGINS, Fetcher
from unearth.link import Link

from sampan.edge.http import RETRY_STATUS, file_path, host_of, redacted
from sampan.edge.pip_settings import IndexSettings
from sampan.errors import NetworkError, VerificationError

logging.getLogger("unearth").addHandler(logging.NullHandler())  # what matters of its warnings becomes our error
_ATTEMPTS = 3


class IndexClient:
    """What unearth asks pages through (its Fetcher protocol): our client, with retries and local folders.

    ``trouble`` keeps the first refusal, which unearth itself only logs.
    """

    def __init__(self, client: httpx.Client, trusted_hosts: Iterable[str], pause: float = 0.5) -> None:
        self._client, self._trusted, self._pause = client, tuple(trusted_hosts), pause
        self.trouble: NetworkError | None = None

    def get(self, url: str, *, headers: Mapping[str, str] | None = None) -> httpx.Response:
        """One page. Raises NetworkError ``net.offline`` where the host does not answer."""
        local = file_path(url)
        if local is not None:
            return _local_page(local, url)
        for attempt in range(_ATTEMPTS):
            last = attempt == _ATTEMPTS - 1
            try:
                answer = self._client.get(url, headers=dict(headers or {}))
            except httpx.TransportError as error:
                if last:
                    raise NetworkError(
                        "net.index-offline", host=host_of(url), url=redacted(url), detail=_detail(error)
                    ) from error
            else:
                if last or answer.status_code not in RETRY_STATUS:
                    return self._noted(answer, url)
            time.sleep(self._pause * 2**attempt)
        raise AssertionError("unreachable")

    def _noted(self, answer: httpx.Response, url: str) -> httpx.Response:
        if answer.is_error and answer.status_code != httpx.codes.NOT_FOUND and self.trouble is None:
            self.trouble = NetworkError("net.status", url=redacted(url), status=answer.status_code)
        return answer

    def head(self, url: str, *, headers: Mapping[str, str] | None = None) -> httpx.Response:
        """See unearth's Fetcher."""
        return self._client.head(url, headers=dict(headers or {}))

    def get_stream(
        self, url: str, *, headers: Mapping[str, str] | None = None
    ) -> AbstractContextManager[httpx.Response]:
        """See unearth's Fetcher."""
        return self._client.stream("GET", url, headers=dict(headers or {}))

    def iter_secure_origins(self) -> Iterator[tuple[str, str, str]]:
        """Where plain HTTP is allowed: unearth's list and the hosts that the user trusts."""
        yield from DEFAULT_SECURE_ORIGINS
        for entry in self._trusted:
            host, _, port = entry.partition(":")
            yield ("*", host, port or "*")


def _detail(error: Exception) -> str:
    return str(error) or type(error).__name__


def _local_page(path: Path, url: str) -> httpx.Response:
    request = httpx.Request("GET", url)
    if not path.is_file():
        return httpx.Response(404, request=request)
    headers = {"Content-Type": "text/html"}
    return httpx.Response(200, headers=headers, content=path.read_bytes(), request=request)


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


def candidates(
    project: str, file_name: str, sha256: str, client: httpx.Client, settings: IndexSettings, *, pause: float = 0.5
) -> Iterator[str]:
    """Addresses of the file, source by source; only those whose published hash, if any, is the wanted one.

    Where no source has it, raises NetworkError (the first refusal, or ``net.not-found``), or VerificationError
    where the name exists only with another hash.
    """
    pages = IndexClient(client, settings.trusted_hosts, pause)
    trouble: NetworkError | None = None
    found, other = False, ""
    places = sources(settings)
    for kind, address in places:
        try:
            links = _links(_finder(kind, address, pages), project, file_name)
        except NetworkError as error:
            trouble = trouble or error
            continue
        for link in links:
            published = _published(link)
            if published in (None, sha256):
                found = True
                yield link.url_without_fragment
            else:
                other = published or ""
    if found:
        return
    if other:
        raise VerificationError("net.index-hash", name=file_name, expected=sha256, found=other)
    raise trouble or pages.trouble or NetworkError("net.no-such-file", name=file_name, project=project)


def _links(finder: PackageFinder, project: str, file_name: str) -> list[Link]:
    packages = finder.find_all_packages(project, allow_yanked=True)
    return [package.link for package in packages if package.link.filename == file_name]


def _published(link: Link) -> str | None:
    """The SHA-256 that the index gives for a file, where it does."""
    hashes = link.hash_option or {}
    values = hashes.get("sha256")
    return values[0] if values else None


def project_of(requirement: str) -> str:
    """The normalized project name of ``name`` or ``name==1.0``."""
    return canonicalize_name(Requirement(requirement).name)
