"""Reading an HTTP answer: may it pass, is it worth another try, where does it start, is it whole."""

from __future__ import annotations

from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from pathlib import Path

import httpx

from sampan.edge.http import RETRY_STATUS, redacted
from sampan.edge.verify import Wanted
from sampan.errors import NetworkError

LONGEST_WAIT = 120.0  # seconds; a host that wants more is not there today


class PassingError(httpx.RemoteProtocolError):
    """A status that may pass by itself; ``after`` is the wait in seconds that the host asked for."""

    def __init__(self, message: str, *, request: httpx.Request, after: float = 0.0) -> None:
        super().__init__(message, request=request)
        self.after = after


def retry_after(answer: httpx.Response) -> float:
    """Seconds of Retry-After, given as a number or a date (RFC 9110, 10.2.3); 0 where there is none."""
    stated = answer.headers.get("Retry-After", "").strip()
    if stated.isdecimal():
        return min(float(stated), LONGEST_WAIT)
    try:
        moment = parsedate_to_datetime(stated)
    except ValueError:
        return 0.0
    left = (moment - datetime.now(timezone.utc)).total_seconds() if moment.tzinfo else 0.0
    return min(max(left, 0.0), LONGEST_WAIT)


def judge(answer: httpx.Response, wanted: Wanted, part: Path) -> None:
    """Let 2xx pass; make what may pass by itself a transport error, so that it is tried again."""
    status = answer.status_code
    if answer.is_success:
        return
    if status == httpx.codes.REQUESTED_RANGE_NOT_SATISFIABLE:
        part.unlink(missing_ok=True)
    if status in RETRY_STATUS or status == httpx.codes.REQUESTED_RANGE_NOT_SATISFIABLE:
        raise PassingError(f"HTTP {status}", request=answer.request, after=retry_after(answer))
    if status == httpx.codes.FORBIDDEN and answer.history:  # a signed address that ran out; the first host signs anew
        raise PassingError(f"HTTP {status}", request=answer.request)
    if status in (httpx.codes.NOT_FOUND, httpx.codes.GONE):
        raise NetworkError("net.not-found", url=redacted(wanted.url))
    raise NetworkError("net.status", url=redacted(wanted.url), status=status)


def complete(answer: httpx.Response, part: Path) -> None:
    """A server that closes early without a word is a broken connection, not a short file."""
    expected = total(answer, 0)
    if expected is not None and size_of(part) < expected:
        raise httpx.RemoteProtocolError("connection closed early", request=answer.request)


def total(answer: httpx.Response, have: int) -> int | None:
    """The whole file's bytes, as Content-Range or Content-Length tell."""
    total = answer.headers.get("Content-Range", "").rpartition("/")[2]
    if total.isdecimal():
        return int(total)
    length = answer.headers.get("Content-Length", "")
    return have + int(length) if length.isdecimal() else None


def starts_at(answer: httpx.Response) -> int:
    start = answer.headers.get("Content-Range", "").removeprefix("bytes ").partition("-")[0]
    return int(start) if start.isdecimal() else -1


def validator(answer: httpx.Response) -> str | None:
    """A strong ETag, else the date: what If-Range accepts."""
    tag: str = answer.headers.get("ETag", "")
    if tag and not tag.startswith("W/"):
        return tag
    date: str = answer.headers.get("Last-Modified", "")
    return date or None


def size_of(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
