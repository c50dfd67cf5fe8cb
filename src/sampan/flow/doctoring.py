"""Joins doctor, survey and install: texts, the facts of a target, and what the machine itself shows."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from sampan.errors import BadInputError, UsageError

if TYPE_CHECKING:
    from sampan.doctor.conditions import Fact
    from sampan.doctor.diagnose import Text
    from sampan.doctor.here import Seen, Service
    from sampan.doctor.model import Diagnosis

STDIN = "-"


def diagnose(files: Sequence[str], *, target: str | None, here: bool) -> Diagnosis:
    """Read the files (``-`` is standard input) and, if wished, this machine.

    Raises UsageError where there is nothing to read, BadInputError for a file that cannot be read.
    """
    from sampan.doctor.diagnose import diagnose as run

    facts: dict[str, Fact] = {}
    if here or target:
        facts.update(_profile(target or "this"))
    seen = _look() if here else None
    if seen:
        facts.update(seen.facts)
    names = tuple(files) or (() if here else _piped())
    with ExitStack() as open_files:
        texts = [*_open(names, open_files), *(seen.texts if seen else ())]
        return run(texts, facts)


def _piped() -> tuple[str, ...]:
    if sys.stdin is None or sys.stdin.isatty():
        raise UsageError("doctor.nothing")
    return (STDIN,)


def _open(names: Sequence[str], open_files: ExitStack) -> Iterator[Text]:
    from sampan.doctor.diagnose import Text

    for name in names:
        if name == STDIN:
            yield Text(STDIN, sys.stdin.buffer)
            continue
        yield Text(name, open_files.enter_context(_file(Path(name))))


@contextmanager
def _file(path: Path) -> Iterator[BinaryIO]:
    try:
        stream = path.open("rb")
        stream.peek(1)  # a folder opens, but cannot be read
    except FileNotFoundError as error:
        raise BadInputError("file.missing", path=str(path)) from error
    except OSError as error:
        raise BadInputError("file.unreadable", path=str(path), detail=str(error.strerror)) from error
    with stream:
        yield stream


def _profile(target: str) -> dict[str, Fact]:
    from sampan.doctor.facts import of_profile
    from sampan.survey.resolve import THIS, resolve

    return of_profile(resolve(target), "this machine" if target == THIS else f"profile {target}")


def _look() -> Seen:
    from sampan.doctor.here import Machine, look
    from sampan.edge.process import ProcessRunner

    service, tls = _service()
    return look(Machine(ProcessRunner(), partial(probe, tls=tls), os.environ), service)


def _service() -> tuple[Service, bool]:
    """The service of the bundle that we run from, and whether it speaks TLS; nothing of a service elsewhere."""
    from sampan.doctor.here import Service
    from sampan.flow.asking import listening
    from sampan.install.lookup import find
    from sampan.install.model import probe_host, unit_name

    bundle = os.environ.get("SAMPAN_BUNDLE")
    if not bundle:
        return Service(), False
    found = listening(find(Path(bundle)))
    prefix = Path(found.record.prefix) if found.record else Path(bundle)
    unit = unit_name(found.name) if found.has_unit else None
    return Service(prefix, unit, probe_host(found.host), found.port), found.certificate is not None


def probe(host: str, port: int, by_proxy: bool, *, tls: bool = False) -> str:
    """``ready``, the engine's state, or why there was no answer. ``by_proxy``: as the environment's clients ask.

    Over TLS any certificate is taken, as ``asking.probe_health`` does.
    """
    import json
    import ssl
    from urllib.error import HTTPError
    from urllib.request import HTTPSHandler, ProxyHandler, build_opener

    handlers = (HTTPSHandler(context=ssl._create_unverified_context()),) if tls else ()  # noqa: S323
    opener = build_opener(*handlers) if by_proxy else build_opener(ProxyHandler({}), *handlers)
    try:
        with opener.open(f"{'https' if tls else 'http'}://{host}:{port}/health", timeout=5) as answer:
            state = str(json.loads(answer.read()).get("status", ""))
    except HTTPError as error:
        return f"HTTP {error.code}"
    except (OSError, ValueError) as error:
        return str(error)
    return "ready" if state == "ok" else state
