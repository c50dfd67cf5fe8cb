"""What unearth asks index pages through: our HTTP client, with retries and local folders."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path

import httpx
from unearth.fetchers import DEFAULT_SECURE_ORIGINS

from sampan.edge.http import RETRY_STATUS, file_path, host_of, redacted
from sampan.errors import NetworkError

_ATTEMPTS = 3


class IndexClient:
    """See unearth's Fetcher protocol.

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
            except httpx.RequestError as error:
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
