"""What the hubs say of a repository, over their documented HTTP interfaces.

source: Hugging Face, "Hub API Endpoints" (``/api/models/{repo}/revision/{revision}?blobs=true``, ``X-Error-Code``);
ModelScope, ``/api/v1/models/{repo}/repo/files``, as its library modelscope-hub 0.5 asks.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

import httpx

from sampan.edge.answer import retry_after, total
from sampan.edge.http import RETRY_STATUS, host_of, redacted
from sampan.edge.hub_settings import HubAccess
from sampan.errors import NetworkError
from sampan.spec.hub import HubFile, HubListing

_DEFAULT_REVISIONS = {"hf": "main", "ms": "master"}
_OF_THE_WAY = ("content-encoding", "content-length", "transfer-encoding")
_LARGEST_ANSWER = 64 << 20  # bytes
_TRUNCATED_AT = 3000  # entries; ModelScope's listing ends there without a word
_SHA256, _SHA1 = re.compile(r"[0-9a-f]{64}"), re.compile(r"[0-9a-f]{40}")


@dataclass(frozen=True)
class HubApi:
    """``patience`` is the number of tries of one question."""

    client: httpx.Client
    patience: int = 6
    pause: float = 0.5
    sleep: Callable[[float], None] = time.sleep

    def listing(self, hub: str, where: HubAccess, repository: str, revision: str | None) -> HubListing:
        """See spec.hub.Hubs."""
        wanted = revision or _DEFAULT_REVISIONS[hub]
        data = self._ask(_listing_url(hub, where.endpoint, repository, wanted), where.headers, repository, wanted)
        try:
            read = _hugging_face if hub == "hf" else _modelscope
            return read(data, where.endpoint, repository, wanted)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise NetworkError("hub.answer", host=host_of(where.endpoint), detail=repr(error)[:120]) from error

    def address(self, url: str) -> HubListing:
        """See spec.hub.Hubs. One byte is asked for: some hosts sign addresses for GET alone."""
        answer = self._retried(url, {"Range": "bytes=0-0", "Accept-Encoding": "identity"}, stream=True)
        judge_hub(answer, url, "-")
        headers = [each.headers for each in (*answer.history, answer)]
        digest = next((found for each in headers if (found := _digest(each.get("X-Linked-Etag")))), None)
        size = total(answer, 0)
        name = httpx.URL(url).path.rpartition("/")[2]
        return HubListing("url", url, "-", None, (HubFile(name, size, url, sha256=digest),))

    def _ask(self, url: str, headers: Mapping[str, str], repository: str, revision: str) -> dict[str, Any]:
        answer = self._retried(url, {**headers, "Accept": "application/json"}, stream=False)
        judge_hub(answer, url, f"{repository}@{revision}")
        try:
            data = answer.json()
        except (ValueError, RecursionError) as error:
            raise NetworkError("hub.answer", host=host_of(url), detail=str(error)[:120]) from error
        if not isinstance(data, dict):
            raise NetworkError("hub.answer", host=host_of(url), detail=type(data).__name__)
        return data

    def _retried(self, url: str, headers: Mapping[str, str], *, stream: bool) -> httpx.Response:
        """The first answer that is no passing trouble, read whole unless ``stream``. Raises NetworkError."""
        for attempt in range(1, self.patience + 1):
            wait, last = self.pause * 2 ** (attempt - 1), attempt == self.patience
            try:
                answer = self._once(url, headers, stream=stream)
            except httpx.RequestError as error:
                if last:
                    detail = (str(error) or type(error).__name__).replace(url, redacted(url))
                    raise NetworkError("hub.offline", host=host_of(url), detail=detail) from error
            else:
                if answer.status_code not in RETRY_STATUS:
                    return answer
                if last:
                    raise NetworkError("hub.busy", host=host_of(url), status=answer.status_code)
                wait = max(wait, retry_after(answer))
            self.sleep(wait)
        raise AssertionError("unreachable")

    def _once(self, url: str, headers: Mapping[str, str], *, stream: bool) -> httpx.Response:
        with self.client.stream("GET", url, headers=dict(headers)) as answer:
            if not stream:
                body = bytearray()
                for chunk in answer.iter_bytes():
                    body += chunk
                    if len(body) > _LARGEST_ANSWER:
                        raise NetworkError("hub.answer", host=host_of(url), detail=f"> {_LARGEST_ANSWER} B")
                kept = [(name, value) for name, value in answer.headers.items() if name not in _OF_THE_WAY]
                return httpx.Response(answer.status_code, headers=kept, content=bytes(body), request=answer.request)
            return answer


def judge_hub(answer: httpx.Response, url: str, what: str) -> None:
    """Let 2xx pass. Raises NetworkError that says whether to ask for access, log in, or correct the name."""
    status, code = answer.status_code, answer.headers.get("X-Error-Code", "")
    if answer.is_success:
        return
    values = {"host": host_of(url), "what": what}
    if code == "RevisionNotFound":
        raise NetworkError("hub.no_revision", **values)
    if code == "RepoNotFound":  # the hub says so, too, where only the token is missing
        raise NetworkError("hub.no_repository", **values)
    if code == "GatedRepo" or status == httpx.codes.FORBIDDEN:
        raise NetworkError("hub.gated", **values)
    if status == httpx.codes.UNAUTHORIZED:
        raise NetworkError("hub.login", **values)
    if status in (httpx.codes.NOT_FOUND, httpx.codes.GONE):
        raise NetworkError("hub.no_repository", **values)
    raise NetworkError("hub.status", status=status, host=host_of(url), what=what)


def _listing_url(hub: str, endpoint: str, repository: str, revision: str) -> str:
    if hub == "hf":
        return f"{endpoint}/api/models/{quote(repository)}/revision/{quote(revision, safe='')}?blobs=true"
    asked = urlencode({"Revision": revision, "Recursive": "True"})
    return f"{endpoint}/api/v1/models/{quote(repository)}/repo/files?{asked}"


def _hugging_face(data: dict[str, Any], endpoint: str, repository: str, revision: str) -> HubListing:
    commit = str(data["sha"])
    if not _SHA1.fullmatch(commit):
        raise ValueError(commit[:60])
    files = []
    for entry in data["siblings"]:
        large, path = entry.get("lfs") or {}, str(entry["rfilename"])
        url = f"{endpoint}/{quote(repository)}/resolve/{commit}/{quote(path)}"
        digest = _digest(large.get("sha256") or large.get("oid"))
        size = large.get("size", entry.get("size"))
        blob = None if digest else _matching(_SHA1, entry.get("blobId"))
        files.append(_known(HubFile(path, size, url, digest, blob)))
    return HubListing("hf", repository, revision, commit, tuple(files))


def _modelscope(data: dict[str, Any], endpoint: str, repository: str, revision: str) -> HubListing:
    entries = data["Data"]["Files"]
    if len(entries) >= _TRUNCATED_AT:
        raise ValueError(f"{len(entries)} files")
    files = []
    for entry in entries:
        if entry.get("Type") == "tree":
            continue
        path = str(entry["Path"])
        asked = urlencode({"Revision": revision, "FilePath": path})
        url = f"{endpoint}/api/v1/models/{quote(repository)}/repo?{asked}"
        files.append(_known(HubFile(path, entry.get("Size"), url, _digest(entry.get("Sha256")))))
    return HubListing("ms", repository, revision, None, tuple(files))


def _known(file: HubFile) -> HubFile:
    """Raises ValueError for a size that is none."""
    if type(file.size_bytes) is not int or file.size_bytes < 0:
        raise ValueError(f"{file.path}: {file.size_bytes!r}")
    return file


def _digest(stated: object) -> str | None:
    text = str(stated or "").strip('"').removeprefix("sha256:").lower()
    return _matching(_SHA256, text)


def _matching(form: re.Pattern[str], value: object) -> str | None:
    return value if isinstance(value, str) and form.fullmatch(value) else None
