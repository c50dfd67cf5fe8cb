"""Logs: lines for people, or one JSON object a line. No text of any request is in them."""

from __future__ import annotations

import logging
import sys
import traceback
from datetime import datetime, timezone

import orjson


class JsonFormatter(logging.Formatter):
    """``time``, ``level``, ``logger``, ``message``, and the fields given as ``extra={"fields": …}``."""

    def format(self, record: logging.LogRecord) -> str:
        """See logging."""
        data: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, timezone.utc).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        data |= getattr(record, "fields", {})
        if record.exc_info and record.exc_info[0] is not None:
            data["trace"] = "".join(traceback.format_exception(*record.exc_info))
        return orjson.dumps(data, default=str).decode()


def log_to_stderr(*, json: bool) -> None:
    """The engine's output and our own log, for journald or the terminal; the application's own choice wins."""
    root = logging.getLogger()
    if root.handlers:
        return
    handler = logging.StreamHandler(sys.stderr)
    plain = logging.Formatter("%(levelname).1s %(name)s %(message)s")
    handler.setFormatter(JsonFormatter() if json else plain)
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
