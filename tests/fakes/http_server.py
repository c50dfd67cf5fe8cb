"""A small HTTP server with faults: for what a download meets in the field."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Page:
    """What one path answers. ``break_after`` closes the connection after so many bytes, ``breaks`` times."""

    body: bytes = b""
    status: int = 200
    content_type: str = "application/octet-stream"
    ranges: bool = True
    etag: str | None = '"v1"'
    break_after: int | None = None
    breaks: int = 0
    statuses: list[int] = field(default_factory=list)  # served first, one a request
    redirect: str | None = None
    delay: float = 0.0
    credentials: str | None = None  # the Authorization header that it wants


@dataclass
class Site:
    """The server's pages, and every request that came: ``(path, Range header, Authorization header)``."""

    port: int
    pages: dict[str, Page] = field(default_factory=dict)
    requests: list[tuple[str, str | None, str | None]] = field(default_factory=list)

    @property
    def url(self) -> str:
        """The root address."""
        return f"http://127.0.0.1:{self.port}"


@contextmanager
def served() -> Iterator[Site]:
    """Serve on a free port while the block runs."""
    server = _Server(("127.0.0.1", 0), _Handler)
    site = Site(server.server_address[1])
    server.site = site  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield site
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that gave up is what the tests want."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:
        """Silence."""

    def do_GET(self) -> None:
        """Answer as the page says."""
        site: Site = self.server.site  # type: ignore[attr-defined]
        site.requests.append((self.path, self.headers.get("Range"), self.headers.get("Authorization")))
        page = site.pages.get(self.path, Page(status=404))
        time.sleep(page.delay)
        if page.statuses:
            self._plain(page.statuses.pop(0))
        elif page.credentials and self.headers.get("Authorization") != page.credentials:
            self._plain(401)
        elif page.redirect:
            self._plain(302, {"Location": page.redirect})
        elif page.status != 200:
            self._plain(page.status)
        else:
            self._file(page)

    def _plain(self, status: int, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _file(self, page: Page) -> None:
        start = self._start(page)
        body = page.body[start:]
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(page.body) - 1}/{len(page.body)}")
        self.send_header("Content-Type", page.content_type)
        self.send_header("Content-Length", str(len(body)))
        if page.etag:
            self.send_header("ETag", page.etag)
        self.end_headers()
        if page.break_after is not None and page.breaks > 0:
            page.breaks -= 1
            body = body[: page.break_after]
            self.close_connection = True
        self.wfile.write(body)

    def _start(self, page: Page) -> int:
        wanted = self.headers.get("Range", "")
        same = self.headers.get("If-Range") in (None, page.etag)
        if not page.ranges or not wanted or not same:
            return 0
        return int(wanted.removeprefix("bytes=").rstrip("-"))
