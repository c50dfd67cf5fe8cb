"""From settings to parts: engine, batching, keys, API."""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import dataclass, replace
from pathlib import Path

from starlette.types import ASGIApp

from sampan.errors import UsageError
from sampan.gateway import keys, local_token
from sampan.gateway.admission import Admission
from sampan.gateway.app import make_api
from sampan.gateway.audit_log import AuditLog
from sampan.gateway.batching import Batching
from sampan.gateway.call import Call
from sampan.gateway.callers import Callers
from sampan.gateway.house import House
from sampan.gateway.llama_server import LlamaCommand, LlamaServer
from sampan.gateway.meter import Meter
from sampan.gateway.run_folder import SOCKET_NAME
from sampan.gateway.settings import ServeSettings, longest_input
from sampan.gateway.watchdog import Watchdog
from sampan.spec.address import is_loopback

requests_log = logging.getLogger("sampan.requests")


def read_keys(settings: ServeSettings) -> tuple[keys.Key, ...] | None:
    """The keys in force; None where none are asked for.

    Raises UsageError where the address is reachable from elsewhere and no key is set; BadInputError, FilesystemError.
    """
    path = settings.files.keys
    found = keys.load(path) if path is not None and path.exists() else ()
    if any(not key.revoked for key in found):
        return found
    if not is_loopback(settings.host):
        raise UsageError("gateway.no-keys", host=settings.host)
    return found or None  # all revoked: nobody may


@dataclass
class Parts:
    """One service's."""

    engine: LlamaServer
    batching: Batching
    house: House
    app: ASGIApp
    watchdog: Watchdog
    audit: AuditLog | None
    local_token: str  # for the self-test on this machine


def assemble(settings: ServeSettings, folder: Path) -> Parts:
    """Nothing runs yet. Raises UsageError, BadInputError, FilesystemError."""
    limits = settings.limits
    model = replace(
        settings.model,
        created=int(time.time()),
        tokens=min(settings.model.tokens or longest_input(settings.engine), longest_input(settings.engine)),
    )
    token = local_token.fresh()
    callers = Callers(read_keys(settings), local_token=token)
    files = settings.files
    audit = AuditLog(files.audit_log, files.audit_bytes, files.audit_files) if files.audit_log else None
    engine = LlamaServer(_command(settings, folder), request_seconds=limits.request_seconds)
    meter = Meter()
    slots, tokens = settings.engine.slots, settings.engine.ubatch
    admission = Admission(limits)
    batching = Batching(engine, model, limits, meter, slots=slots, pass_tokens=tokens, measured=admission.measured)
    house = House(batching, model, limits, admission, callers, meter)
    app = make_api(house, _Finished(settings, audit) if audit or settings.json_logs else None)
    watchdog = Watchdog(engine, batching, settings.watch, drain_seconds=settings.drain_seconds)
    return Parts(engine, batching, house, app, watchdog, audit, token)


def _command(settings: ServeSettings, folder: Path) -> LlamaCommand:
    return LlamaCommand(
        executable=settings.executable,
        variant=settings.variant,
        weights=settings.weights,
        socket=folder / SOCKET_NAME,
        settings=settings.engine,
        threads=settings.threads,
        model_id=settings.model.id,
        task=settings.model.task,
    )


class _Finished:
    """What is written of each request when it ends."""

    def __init__(self, settings: ServeSettings, audit: AuditLog | None) -> None:
        self._logs = settings.json_logs
        self._audit = audit

    def __call__(self, call: Call, status: int, seconds: float) -> None:
        if self._audit is not None:
            self._audit.write(call, status, seconds)
        if self._logs:
            fields = {
                "id": call.id,
                "key": call.caller.id,
                "path": call.scope["path"],
                "status": status,
                "code": call.code or None,
                "tokens": call.tokens,
                "milliseconds": round(seconds * 1000, 3),
            }
            requests_log.info("request", extra={"fields": fields})


async def reload(settings: ServeSettings, parts: Parts) -> None:
    """Keys again, and the audit log's file. Raises SampanError, OSError; then what was in force stays."""
    found = await asyncio.to_thread(read_keys, settings)
    parts.house.callers.replace(found)
    if parts.audit is not None:
        parts.audit.reopen()
