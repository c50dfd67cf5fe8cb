"""The audit log: who asked what, how much, with what outcome, when; one JSON object a line, rotated by size.

It must never stop the service: a full disk costs entries, which are counted, and said in the log once.
"""

from __future__ import annotations

import logging
import os
from datetime import datetime, timezone
from pathlib import Path

import orjson

from sampan.disk import filesystem_errors
from sampan.gateway.call import Call

logger = logging.getLogger("sampan.gateway")
_QUIET = frozenset({"/health", "/ready", "/metrics"})  # probes: they would fill it


class AuditLog:
    """Appends to ``path`` (mode 0600); ``path.1`` is the newest of the old ones, at most ``files`` of them."""

    def __init__(self, path: Path, most_bytes: int, files: int) -> None:
        """Raises FilesystemError where it cannot be written at all."""
        self._path = path
        self._most = most_bytes
        self._files = files
        self._failing = False
        self.lost = 0
        with filesystem_errors(path):
            self._handle = self._open()
            self._size = os.fstat(self._handle).st_size

    def _open(self) -> int:
        return os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def write(self, call: Call, status: int, seconds: float) -> None:
        """One request's line."""
        if call.scope["path"] in _QUIET:
            return
        client = call.scope.get("client")
        line = orjson.dumps(
            {
                "time": datetime.now(timezone.utc).isoformat(timespec="milliseconds"),
                "id": call.id,
                "key": call.caller.id,
                "client": client[0] if client else None,
                "method": call.scope["method"],
                "path": call.scope["path"][:200],
                "status": status,
                "code": call.code or None,
                "lane": call.ask.lane.value,
                "prompt_tokens": call.tokens,
                "completion_tokens": call.completion_tokens,
                "milliseconds": round(seconds * 1000, 3),
            },
            option=orjson.OPT_APPEND_NEWLINE,
        )
        try:
            self._append(line)
            self._failing = False
        except OSError as error:
            self.lost += 1
            if not self._failing:
                logger.error("audit log %s: %s; entries are lost", self._path, error.strerror)  # noqa: TRY400
            self._failing = True

    def _append(self, line: bytes) -> None:
        if self._size + len(line) > self._most and self._size:
            self._rotate()
        written = os.write(self._handle, line)
        self._size += written
        if written < len(line):  # the disk is full in the middle of a line: take the part back
            self._size -= written
            os.ftruncate(self._handle, self._size)
            raise OSError(28, os.strerror(28))

    def _rotate(self) -> None:
        for number in range(self._files - 1, 0, -1):
            old = self._numbered(number)
            if old.exists():
                old.replace(self._numbered(number + 1))
        self._path.replace(self._numbered(1))
        self._numbered(self._files + 1).unlink(missing_ok=True)
        self.reopen()

    def _numbered(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{number}")

    def reopen(self) -> None:
        """Begin the file anew: after a rotation, also one by logrotate (SIGHUP). Raises OSError."""
        fresh = self._open()
        os.close(self._handle)
        self._handle, self._size = fresh, os.fstat(fresh).st_size

    def close(self) -> None:
        """The last entry was written."""
        os.close(self._handle)
