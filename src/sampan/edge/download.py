"""One file from one address into the store: resumed, retried, checked, renamed at the end."""

from __future__ import annotations

import hashlib
import shutil
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from sampan import i18n
from sampan.edge.http import RETRY_STATUS, file_path, host_of, redacted
from sampan.edge.store import filesystem_errors
from sampan.errors import NetworkError, VerificationError
from sampan.spec.ports import Progress, Task

_CHUNK = 1 << 18
_SHOW_ABOVE = 1 << 20  # bytes; smaller files come faster than a bar can be read


@dataclass(frozen=True)
class Wanted:
    """What must come: ``sha256`` None only where the caller verifies a signature itself."""

    url: str
    name: str
    sha256: str | None
    size: int | None = None


@dataclass
class _Attempt:
    """What one broken connection leaves for the next: the validator that says the file is still the same."""

    validator: str | None = None
    failures: int = 0
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Downloader:
    """``patience`` is the number of failures in a row without a new byte; ``pause`` the first wait in seconds."""

    client: httpx.Client
    progress: Progress
    patience: int = 5
    pause: float = 0.5
    sleep: Callable[[float], None] = time.sleep

    def fetch(self, wanted: Wanted, final: Path) -> Path:
        """Download to ``final``. Raises NetworkError, VerificationError, FilesystemError.

        A part that an earlier run left beside it is continued, where a hash will prove the whole.
        """
        part = final.with_name(f".{final.name}.part")
        with filesystem_errors(final):
            final.parent.mkdir(parents=True, exist_ok=True)
            if wanted.sha256 is None:
                part.unlink(missing_ok=True)
            resumed = part.exists()
            self._bring(wanted, part)
            try:
                check(part, wanted)
            except VerificationError:
                part.unlink(missing_ok=True)
                if not resumed:
                    raise
                self._bring(wanted, part)  # the old part may have been of another file: once more, whole
                check_or_remove(part, wanted)
            part.replace(final)
        return final

    def _bring(self, wanted: Wanted, part: Path) -> None:
        local = file_path(wanted.url)
        if local is not None:
            _copy(local, part, wanted)
            return
        with self._shown(wanted) as task:
            attempt = _Attempt()
            while True:
                before = _size(part)
                try:
                    self._stream(wanted, part, attempt, task)
                    return
                except httpx.RequestError as error:
                    attempt.failures = 1 if _size(part) > before else attempt.failures + 1
                    if attempt.failures >= self.patience:
                        raise offline(wanted, error) from error
                self.sleep(self.pause * 2 ** (attempt.failures - 1))

    def _shown(self, wanted: Wanted) -> AbstractContextManager[Task | None]:
        if wanted.size is not None and wanted.size < _SHOW_ABOVE:
            return nullcontext()
        title = i18n.text("net.downloading", name=wanted.name)
        return self.progress.task(title, wanted.size)

    def _stream(self, wanted: Wanted, part: Path, attempt: _Attempt, task: Task | None) -> None:
        have = _size(part)
        headers = {"Accept-Encoding": "identity"}
        if have:
            headers["Range"] = f"bytes={have}-"
            if attempt.validator:
                headers["If-Range"] = attempt.validator
        with self.client.stream("GET", wanted.url, headers=headers) as answer:
            _judge(answer, wanted, part)
            attempt.validator = _validator(answer)
            appended = answer.status_code == httpx.codes.PARTIAL_CONTENT and _starts_at(answer) == have
            have = have if appended else 0
            if task:
                task.update(completed=have, total=wanted.size or _total(answer, have))
            with part.open("ab" if appended else "wb") as stream:
                for chunk in answer.iter_raw():  # as they come: what was received before a break counts
                    stream.write(chunk)
                    if task:
                        task.advance(len(chunk))
            _complete(answer, part)


def _judge(answer: httpx.Response, wanted: Wanted, part: Path) -> None:
    """Let 2xx pass; make what may pass by itself a transport error, so that it is tried again."""
    status = answer.status_code
    if answer.is_success:
        return
    if status == httpx.codes.REQUESTED_RANGE_NOT_SATISFIABLE:
        part.unlink(missing_ok=True)
    if status in RETRY_STATUS or status == httpx.codes.REQUESTED_RANGE_NOT_SATISFIABLE:
        raise httpx.RemoteProtocolError(f"HTTP {status}", request=answer.request)
    if status in (httpx.codes.NOT_FOUND, httpx.codes.GONE):
        raise NetworkError("net.not-found", url=redacted(wanted.url))
    raise NetworkError("net.status", url=redacted(wanted.url), status=status)


def _complete(answer: httpx.Response, part: Path) -> None:
    """A server that closes early without a word is a broken connection, not a short file."""
    expected = _total(answer, 0)
    if expected is not None and _size(part) < expected:
        raise httpx.RemoteProtocolError("connection closed early", request=answer.request)


def _total(answer: httpx.Response, have: int) -> int | None:
    """The whole file's bytes, as Content-Range or Content-Length tell."""
    total = answer.headers.get("Content-Range", "").rpartition("/")[2]
    if total.isdecimal():
        return int(total)
    length = answer.headers.get("Content-Length", "")
    return have + int(length) if length.isdecimal() else None


def _starts_at(answer: httpx.Response) -> int:
    start = answer.headers.get("Content-Range", "").removeprefix("bytes ").partition("-")[0]
    return int(start) if start.isdecimal() else -1


def _validator(answer: httpx.Response) -> str | None:
    """A strong ETag, else the date: what If-Range accepts."""
    tag: str = answer.headers.get("ETag", "")
    if tag and not tag.startswith("W/"):
        return tag
    date: str = answer.headers.get("Last-Modified", "")
    return date or None


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _copy(local: Path, part: Path, wanted: Wanted) -> None:
    if not local.is_file():
        raise NetworkError("net.not-found", url=redacted(wanted.url))
    shutil.copyfile(local, part)


def offline(wanted: Wanted, error: Exception) -> NetworkError:
    """The error for a host that does not answer."""
    detail = redacted_text(str(error), wanted.url) or type(error).__name__
    return NetworkError("net.offline", host=host_of(wanted.url), name=wanted.name, detail=detail)


def redacted_text(text: str, url: str) -> str:
    """``text`` without the secrets that ``url`` carries."""
    return text.replace(url, redacted(url))


def check(path: Path, wanted: Wanted) -> None:
    """Raises VerificationError where size or SHA-256 are not the promised ones."""
    if wanted.size is not None and path.stat().st_size != wanted.size:
        raise VerificationError(
            "net.size", name=wanted.name, host=host_of(wanted.url), expected=wanted.size, found=path.stat().st_size
        )
    if wanted.sha256 is None:
        return
    found = sha256_of(path)
    if found != wanted.sha256:
        raise VerificationError(
            "net.hash", name=wanted.name, host=host_of(wanted.url), expected=wanted.sha256, found=found
        )


def check_or_remove(path: Path, wanted: Wanted) -> None:
    """As ``check``; what fails it does not stay."""
    try:
        check(path, wanted)
    except VerificationError:
        path.unlink(missing_ok=True)
        raise


def sha256_of(path: Path) -> str:
    """The file's SHA-256 in hexadecimal."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while chunk := stream.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()
