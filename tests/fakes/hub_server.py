"""A server that behaves like a model hub, with its store of large files on a second port, and with faults on order.

A fault is ordered for addresses that hold a word, and spent by the next request that matches.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit

COMMIT = "0123456789abcdef0123456789abcdef01234567"
LARGE = 10_000  # bytes from which a file lies in the store of large files
STATUSES = {"408": 408, "429": 429, "429-date": 429, "500": 500, "502": 502, "503": 503, "504": 504, "401": 401}
STATUSES |= {"403": 403, "404": 404, "416": 416}


@dataclass
class Hub:
    """``files`` of the one repository ORG/NAME; ``requests`` as (port, path, Range, Authorization, Cookie)."""

    repository: str = "org/name"
    files: dict[str, bytes] = field(default_factory=dict)
    port: int = 0
    large_port: int = 0
    token: str | None = None  # wanted of everybody
    error_code: tuple[int, str] | None = None  # of the listing
    listing: bytes | None = None  # in place of the true one
    lies: dict[str, str] = field(default_factory=dict)  # path -> digest that the listing promises
    faults: dict[str, deque[str]] = field(default_factory=dict)
    spent: list[str] = field(default_factory=list)
    requests: list[tuple[int, str, str | None, str | None, str | None]] = field(default_factory=list)
    watch: Callable[[], None] = lambda: None
    stall: float = 1.0  # seconds
    pace: float = 0.0  # seconds a block of 64 KiB
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def url(self) -> str:
        """The hub's endpoint."""
        return f"http://127.0.0.1:{self.port}"

    def order(self, word: str, *faults: str) -> None:
        """The next requests whose address holds ``word`` end so."""
        self.faults.setdefault(word, deque()).extend(faults)

    def take(self, path: str) -> str | None:
        """The fault that is due."""
        with self.lock:
            for word, due in self.faults.items():
                if word in path and due:
                    self.spent.append(due[0])
                    return due.popleft()
        return None


@contextmanager
def hub_served(**settings: object) -> Iterator[Hub]:
    """Serve on two free ports while the block runs."""
    hub = Hub(**settings)  # type: ignore[arg-type]
    servers = [_Server(("127.0.0.1", 0), _Handler) for _ in range(2)]
    hub.port, hub.large_port = (server.server_address[1] for server in servers)
    threads = []
    for server in servers:
        server.hub = hub  # type: ignore[attr-defined]
        threads.append(threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True))
        threads[-1].start()
    try:
        yield hub
    finally:
        for server in servers:
            server.shutdown()
            server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that gave up is what the tests want."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:
        """Silence."""

    @property
    def port(self) -> int:
        return int(self.connection.getsockname()[1])

    @property
    def hub(self) -> Hub:
        hub: Hub = self.server.hub  # type: ignore[attr-defined]
        return hub

    def do_GET(self) -> None:
        """A listing, a file, a redirect to the store of large files, or the fault that is due."""
        words = (self.headers.get(name) for name in ("Range", "Authorization", "Cookie"))
        self.hub.requests.append((self.port, self.path, *words))  # type: ignore[arg-type]
        self.hub.watch()
        fault = self.hub.take(self.path)
        if fault == "reset":
            self.close_connection = True
        elif fault in STATUSES:
            self._status(STATUSES[fault], fault)
        elif fault == "page":
            self._send(200, b"<!DOCTYPE html><html>Please log in</html>", {"Content-Type": "text/html"})
        elif fault == "loop":
            self._send(302, b"", {"Location": self.path})
        else:
            self._route(fault)

    def _status(self, status: int, fault: str) -> None:
        waits = {"429": "0", "429-date": formatdate(time.time() - 1, usegmt=True)}
        self._send(status, b"", {"Retry-After": waits[fault]} if fault in waits else {})

    def _route(self, fault: str | None) -> None:
        parts = urlsplit(self.path)
        hub, path = self.hub, unquote(parts.path)
        if self.port == hub.large_port:
            self._content(hub.files[path.removeprefix("/large/")], fault)
        elif not self._is_allowed():
            self._send(401, b"", {"X-Error-Code": "RepoNotFound"})
        elif path.startswith(f"/api/models/{hub.repository}/revision/"):
            self._listing(path, self._hugging_face())
        elif path == f"/api/v1/models/{hub.repository}/repo/files":
            self._listing(path, self._modelscope())
        elif path == f"/api/v1/models/{hub.repository}/repo":
            self._file(parse_qs(parts.query)["FilePath"][0], fault)
        elif path.startswith(f"/{hub.repository}/resolve/"):
            self._file(path.split("/", 5)[5], fault)
        else:
            self._send(404, b"", {"X-Error-Code": "RepoNotFound"})

    def _is_allowed(self) -> bool:
        token = self.hub.token
        given = (self.headers.get("Authorization"), self.headers.get("Cookie"))
        return token is None or given[0] == f"Bearer {token}" or given[1] == f"m_session_id={token}"

    def _listing(self, path: str, data: object) -> None:
        if self.hub.error_code:
            status, code = self.hub.error_code
            self._send(status, b"{}", {"X-Error-Code": code})
        elif path.endswith("/revision/gone"):
            self._send(404, b"{}", {"X-Error-Code": "RevisionNotFound"})
        else:
            body = self.hub.listing if self.hub.listing is not None else json.dumps(data).encode()
            self._send(200, body, {"Content-Type": "application/json"})

    def _hugging_face(self) -> object:
        siblings = []
        for path, body in self.hub.files.items():
            git = hashlib.sha1(f"blob {len(body)}\0".encode() + body).hexdigest()  # noqa: S324
            entry: dict[str, object] = {"rfilename": path, "size": len(body), "blobId": self.hub.lies.get(path, git)}
            if len(body) >= LARGE:
                digest = self.hub.lies.get(path, hashlib.sha256(body).hexdigest())
                entry["lfs"] = {"sha256": digest, "size": len(body), "pointerSize": 134}
            siblings.append(entry)
        return {"id": self.hub.repository, "sha": COMMIT, "siblings": siblings}

    def _modelscope(self) -> object:
        files: list[dict[str, object]] = [{"Type": "tree", "Path": "1_Pooling", "Size": 0}]
        for path, body in self.hub.files.items():
            digest = self.hub.lies.get(path, hashlib.sha256(body).hexdigest())
            files.append({"Type": "blob", "Path": path, "Size": len(body), "Sha256": digest})
        return {"Code": 200, "Data": {"Files": files}}

    def _file(self, path: str, fault: str | None) -> None:
        body = self.hub.files.get(path)
        if body is None:
            self._send(404, b"", {"X-Error-Code": "EntryNotFound"})
        elif len(body) >= LARGE:
            headers = {"Location": f"http://127.0.0.1:{self.hub.large_port}/large/{path}?signature=s3cret"}
            headers |= {"X-Linked-Etag": f'"{hashlib.sha256(body).hexdigest()}"', "X-Linked-Size": str(len(body))}
            self._send(302, b"", headers)
        else:
            self._content(body, fault)

    def _content(self, body: bytes, fault: str | None) -> None:
        start, status = self._start(), 200
        headers = {"ETag": f'"{hashlib.md5(body).hexdigest()}"'}  # noqa: S324
        if start is not None and fault != "no-range":
            status = 206
            shown = start + 7 if fault == "wrong-range" else start
            headers["Content-Range"] = f"bytes {shown}-{len(body) - 1}/{len(body)}"
            body = body[start:]
        if fault == "flip" and body:
            body = bytes([body[0] ^ 1]) + body[1:]
        if fault == "short":
            body = body[: len(body) // 2]
        if fault == "gzip":
            body, headers["Content-Encoding"] = gzip.compress(body), "gzip"
        if fault == "chunked":
            self._half_a_chunk(body, headers)
            return
        self._send(status, body, headers, fault)

    def _start(self) -> int | None:
        wanted = self.headers.get("Range", "")
        return int(wanted.removeprefix("bytes=").partition("-")[0]) if wanted else None

    def _half_a_chunk(self, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(200)
        for name, value in {**headers, "Transfer-Encoding": "chunked"}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(f"{len(body):x}\r\n".encode() + body[: len(body) // 2])
        self.close_connection = True

    def _send(self, status: int, body: bytes, headers: dict[str, str], fault: str | None = None) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        if fault in ("cut", "stall"):
            body = body[: len(body) // 2]
            self.close_connection = True
        for at in range(0, len(body), 1 << 16):
            self.wfile.write(body[at : at + (1 << 16)])
            time.sleep(self.hub.pace)
        if fault == "stall":
            self.wfile.flush()
            time.sleep(self.hub.stall)
