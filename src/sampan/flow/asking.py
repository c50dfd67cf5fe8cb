"""What is asked of a service that runs on this machine: its health, and the golden questions."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from sampan import i18n
from sampan.errors import BadInputError, ServiceError
from sampan.flow import target
from sampan.spec.ports import Progress

if TYPE_CHECKING:
    from sampan.gateway.selftest import SelfTest
    from sampan.install.job import Hands
    from sampan.install.lookup import Found
    from sampan.install.model import Health

_UNITS_RUN = Path("/run")  # where systemd makes the folders of its services


def selftest(bundle: Path, url: str | None, *, once: bool = False) -> SelfTest:
    """Put the golden questions to the running service. Raises ServiceError where it cannot be asked."""
    from sampan.install.lookup import find

    found = listening(find(bundle))
    own = url_of(found.host, found.port, found.certificate)
    where = url or own
    # Only the service of this bundle on this machine is told the token, never another that a person names.
    is_own = where.rstrip("/").removesuffix("/v1") == own
    token = _local_token(found.name, found.port) if is_own else None
    return _ask(bundle, where, token, found.certificate if is_own else None, once=once)


def _ask(bundle: Path, where: str, token: str | None, certificate: str | None, *, once: bool) -> SelfTest:
    from sampan.gateway import selftest as tests

    golden = target.read_golden(bundle)
    if golden is None:
        return tests.consistency(where, target.read_plan(bundle).task, token=token, certificate=certificate)
    return tests.selftest(where, golden, once=once, token=token, certificate=certificate)


def _local_token(name: str, port: int) -> str | None:
    """What opens the service on ``port`` to the self-test: from the folder of the unit, or of a foreground server."""
    from sampan.gateway import local_token
    from sampan.install.model import user_name

    user, own = user_name(name), _UNITS_RUN / "user" / str(os.getuid())
    # Who started the server may have had another environment (a boot script, su) than who asks.
    bases = (own, Path(os.environ.get("XDG_RUNTIME_DIR") or own), Path(tempfile.gettempdir()))
    of_user = (base / one for base in bases for one in (user, f"{user}-{os.getuid()}"))
    return local_token.find(dict.fromkeys((_UNITS_RUN / user, target.run_folder(name), *of_user)), port)


def listening(found: Found) -> Found:
    """The service where it really listens: as its foreground server was started, else as installed or planned."""
    from sampan.edge.process import ProcessRunner
    from sampan.install.foreground import at, foreground

    server = None if found.has_unit else foreground(found.machine(ProcessRunner()), target.run_folder(found.name))
    return found if server is None else at(found, server)


def url_of(host: str, port: int, certificate: str | None = None) -> str:
    """Where this machine reaches a service that listens on ``host``."""
    from sampan.install.model import probe_host

    at, scheme = probe_host(host), "https" if certificate else "http"
    return f"{scheme}://[{at}]:{port}" if ":" in at else f"{scheme}://{at}:{port}"


def probe_health(host: str, port: int, tls: bool) -> Health:
    """Ask ``GET /health`` without any proxy that the environment may name.

    Over TLS whatever certificate is shown is taken: it is of this machine, for a name that is not asked here, and
    nothing secret is sent.
    """
    import json
    import ssl
    from http.client import HTTPConnection, HTTPException, HTTPSConnection

    from sampan.install.model import Health

    context = ssl._create_unverified_context() if tls else None  # noqa: S323  (see above)
    connection = (
        HTTPSConnection(host, port, timeout=5, context=context) if tls else HTTPConnection(host, port, timeout=5)
    )
    try:
        connection.request("GET", "/health")
        answer = json.loads(connection.getresponse().read())
    except (OSError, HTTPException, ValueError) as error:
        return Health("unreachable", str(error))
    finally:
        connection.close()
    state = str(answer.get("status", "unreachable"))
    found = "ready" if state == "ok" else state
    return Health(found, str(answer.get("detail", "")), str(answer.get("release", "")))


def hands(say: Callable[[str], None], progress: Progress) -> Hands:
    """The doors that install and uninstall are handed."""
    from sampan.edge.process import ProcessRunner
    from sampan.install.job import Hands

    return Hands(
        runner=ProcessRunner(),
        health=probe_health,
        selftest=_selftest_line,
        echo=say,
        progress=progress,
        free_memory=_free_memory,
    )


def _free_memory(pid: int) -> int | None:
    """What the control group of the process could still take."""
    from sampan.gateway import process_facts

    return process_facts.free_bytes(own=Path(f"/proc/{pid}/cgroup"))


def _selftest_line(bundle: Path, host: str, port: int, certificate: str | None) -> str:
    """One line for people; ServiceError where an answer is wrong."""
    token = _local_token(target.read_plan(bundle).name, port)
    result = _ask(bundle, url_of(host, port, certificate), token, certificate, once=False)
    answers = (*result.embeddings, *result.chats, *result.pairs)
    if not answers:
        raise BadInputError("target.no-golden", path=str(bundle / "weights" / "golden.json"))
    worst = min(answers, key=lambda each: each.score - each.minimum)
    if not result.ok:
        raise ServiceError("target.selftest", text=worst.text[:40], score=f"{worst.score:.4f}", minimum=worst.minimum)
    return i18n.text(f"target.selftest-{result.basis}", count=len(answers), score=f"{worst.score:.4f}")
