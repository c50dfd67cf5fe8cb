"""What the bundle's own commands do on the target: serve, self-test, install and the service's life."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from sampan import i18n
from sampan.errors import BadInputError, ServiceError, UsageError
from sampan.spec import codec
from sampan.spec.plan import Plan, Variant
from sampan.spec.ports import Progress
from sampan.spec.weights import GoldenSet, WeightsInfo

if TYPE_CHECKING:
    from sampan.gateway.selftest import SelfTest
    from sampan.gateway.settings import Files, Limits, ServedModel
    from sampan.install.job import Hands
    from sampan.install.model import Health
    from sampan.install.service import Found

_UNITS_RUN = Path("/run")  # where systemd makes the folders of its services


def bundle_root() -> Path:
    """The bundle that this command runs from: the launcher says so. Raises UsageError elsewhere."""
    root = os.environ.get("SAMPAN_BUNDLE")
    if not root or not (Path(root) / "plan.json").is_file():
        raise UsageError("target.no-bundle")
    return Path(root)


def read_plan(bundle: Path) -> Plan:
    """The bundle's plan. Raises BadInputError."""
    return codec.load(Plan, bundle / "plan.json")


def read_golden(bundle: Path) -> GoldenSet | None:
    """What the bundle's service is asked; None where its model has no reference, or none of it is short enough.

    Raises BadInputError.
    """
    from sampan.flow.golden_fit import fitting

    path, about = bundle / "weights" / "golden.json", bundle / "weights" / "weights.json"
    if not path.is_file():
        return None
    golden = codec.load(GoldenSet, path)
    if about.is_file():
        golden = fitting(golden, read_plan(bundle), codec.load(WeightsInfo, about))
    return golden if golden.embeddings or golden.chats or golden.pairs else None


def serve(
    bundle: Path,
    *,
    host: str,
    port: int | None,
    say: Callable[[str], None],
    files: Files | None = None,
    limits: Limits | None = None,
    json_logs: bool = False,
) -> None:
    """Serve until SIGTERM. Raises IncompatibleError (no variant fits), BadInputError (a part lacks), ServiceError."""
    from sampan.flow import api_keys
    from sampan.gateway.serve import serve as run
    from sampan.gateway.settings import Files, Limits, ServeSettings, Watch
    from sampan.plan import threads, variants
    from sampan.survey import features
    from sampan.survey.machine import survey_this

    files = files or Files()
    plan = read_plan(bundle)
    _need(bundle, bundle / "weights" / "weights.json")
    info = codec.load(WeightsInfo, bundle / "weights" / "weights.json")
    _need(bundle, bundle / info.path)
    here = survey_this()
    variant = variants.choose(_carried(bundle, plan), features.current())
    count = threads.resolve(
        plan.settings.threads,
        len(os.sched_getaffinity(0)),
        cores=here.cpu.cores,
        quota=here.cpu_quota,
        numa_nodes=here.cpu.numa_nodes,
    )
    say(i18n.text("target.variant", variant=variant.name, cpu=here.cpu.model, threads=count))
    settings = ServeSettings(
        executable=_executable(bundle, plan, variant),
        variant=variant.name,
        weights=bundle / info.path,
        model=_served(plan, info),
        engine=plan.settings,
        threads=count,
        host=host,
        port=port or plan.port,
        limits=limits or Limits(),
        watch=Watch(memory_bytes=plan.engine_bytes_at_most),
        files=replace(files, keys=files.keys or api_keys.file_of(plan.name)),
        golden=read_golden(bundle),
        json_logs=json_logs,
        successor=(str(_in_force(bundle) / "sampan"), *sys.argv[1:]),
    )
    with _pid_file(plan.name, host, settings.port) as folder:
        run(replace(settings, run_folder=folder), say=say)


def _in_force(bundle: Path) -> Path:
    """The release that is in force by now where the bundle is an installed one, else the bundle itself."""
    from sampan.install.model import CURRENT, RELEASES

    current = bundle.parent.parent / CURRENT
    return current if bundle.parent.name == RELEASES and current.is_dir() else bundle


def _served(plan: Plan, info: WeightsInfo) -> ServedModel:
    """What the model is to clients: its length of vectors, its longest text, its own prefixes by ``input_type``."""
    from sampan.gateway.settings import ServedModel

    query = dict.fromkeys(("query", "search_query"), info.query_prefix)
    passage = dict.fromkeys(("passage", "document", "search_document"), info.passage_prefix)
    return ServedModel(
        plan.model,
        plan.task,
        info.embedding_length if plan.task == "embedding" else None,
        tokens=info.context_length,
        prompts=tuple((query | passage).items()) if info.query_prefix or info.passage_prefix else (),
        release=f"{plan.name}-{plan.release}",
    )


def _carried(bundle: Path, plan: Plan) -> tuple[Variant, ...]:
    """The planned variants that the bundle really has. Raises BadInputError where it has none."""
    found = tuple(variant for variant in plan.variants if _executable(bundle, plan, variant).is_file())
    if not found:
        raise BadInputError("target.incomplete", path=str(bundle / "engine" / plan.engine), bundle=str(bundle))
    return found


def _need(bundle: Path, path: Path) -> None:
    """Raises BadInputError where a part of the bundle is not there."""
    if not path.is_file():
        raise BadInputError("target.incomplete", path=str(path), bundle=str(bundle))


def _executable(bundle: Path, plan: Plan, variant: Variant) -> Path:
    return bundle / "engine" / plan.engine / variant.name / "llama-server"


def run_folder(name: str) -> Path:
    """Where a server of this user keeps its pid file and its engine's socket; short, as a socket's path must be."""
    from sampan.gateway.run_folder import choose_base
    from sampan.install.model import user_name

    base = choose_base(os.environ)
    if str(base) == os.environ.get("RUNTIME_DIRECTORY"):  # of this one service already
        return base
    return base / f"{user_name(name)}-{os.getuid()}"


@contextmanager
def _pid_file(name: str, host: str, port: int) -> Iterator[Path]:
    """A folder of our own, mode 0700, with pid, host and port inside. A folder that is another's is refused."""
    from sampan.install.service import PID_FILE, Foreground, pid_text

    folder = run_folder(name)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.lstat()
        if folder.is_symlink() or found.st_uid != os.getuid() or found.st_mode & 0o077:
            raise ServiceError("gateway.run-folder", path=str(folder), detail="not a private folder of this user")
        before, own = _text_of(folder / PID_FILE), pid_text(Foreground(os.getpid(), host, port))
        (folder / PID_FILE).write_text(own, encoding="utf-8")
    except OSError as error:
        raise ServiceError("gateway.run-folder", path=str(folder), detail=str(error.strerror)) from error
    try:
        yield folder
    finally:
        if _text_of(folder / PID_FILE) == own:  # else a successor has taken over, and it is the successor's
            _put_back(folder / PID_FILE, before)


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return ""


def _put_back(path: Path, before: str) -> None:
    """A successor that came to nothing leaves its predecessor's file; where there was none, there is none again."""
    if before and Path(f"/proc/{before.split(maxsplit=1)[0]}").exists():
        path.write_text(before, encoding="utf-8")
    else:
        path.unlink(missing_ok=True)


def selftest(bundle: Path, url: str | None, *, once: bool = False) -> SelfTest:
    """Put the golden questions to the running service. Raises ServiceError where it cannot be asked."""
    from sampan.install.service import find

    found = listening(find(bundle))
    own = url_of(found.host, found.port, found.certificate)
    where = url or own
    # Only the service of this bundle on this machine is told the token, never another that a person names.
    is_own = where.rstrip("/").removesuffix("/v1") == own
    token = _local_token(found.name, found.port) if is_own else None
    return _ask(bundle, where, token, found.certificate if is_own else None, once=once)


def _ask(bundle: Path, where: str, token: str | None, certificate: str | None, *, once: bool) -> SelfTest:
    from sampan.gateway import selftest as tests

    golden = read_golden(bundle)
    if golden is None:
        return tests.consistency(where, read_plan(bundle).task, token=token, certificate=certificate)
    return tests.selftest(where, golden, once=once, token=token, certificate=certificate)


def _local_token(name: str, port: int) -> str | None:
    """What opens the service on ``port`` to the self-test: from the folder of the unit, or of a foreground server."""
    from sampan.gateway import local_token
    from sampan.install.model import user_name

    user, own = user_name(name), _UNITS_RUN / "user" / str(os.getuid())
    # Who started the server may have had another environment (a boot script, su) than who asks.
    bases = (own, Path(os.environ.get("XDG_RUNTIME_DIR") or own), Path(tempfile.gettempdir()))
    of_user = (base / one for base in bases for one in (user, f"{user}-{os.getuid()}"))
    return local_token.find(dict.fromkeys((_UNITS_RUN / user, run_folder(name), *of_user)), port)


def listening(found: Found) -> Found:
    """The service where it really listens: as its foreground server was started, else as installed or planned."""
    from sampan.edge.process import ProcessRunner
    from sampan.install.service import at, foreground

    server = None if found.has_unit else foreground(found.machine(ProcessRunner()), run_folder(found.name))
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
    token = _local_token(read_plan(bundle).name, port)
    result = _ask(bundle, url_of(host, port, certificate), token, certificate, once=False)
    answers = (*result.embeddings, *result.chats, *result.pairs)
    if not answers:
        raise BadInputError("target.no-golden", path=str(bundle / "weights" / "golden.json"))
    worst = min(answers, key=lambda each: each.score - each.minimum)
    if not result.ok:
        raise ServiceError("target.selftest", text=worst.text[:40], score=f"{worst.score:.4f}", minimum=worst.minimum)
    return i18n.text(f"target.selftest-{result.basis}", count=len(answers), score=f"{worst.score:.4f}")
