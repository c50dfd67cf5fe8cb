"""``serve``: this bundle's model in the foreground, as the plan and this machine have it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from sampan import i18n
from sampan.errors import BadInputError, ServiceError
from sampan.flow import target
from sampan.spec import codec
from sampan.spec.plan import Plan, Variant
from sampan.spec.weights import WeightsInfo

if TYPE_CHECKING:
    from sampan.gateway.settings import Files, Limits, ServedModel


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
    plan = target.read_plan(bundle)
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
        golden=target.read_golden(bundle),
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


@contextmanager
def _pid_file(name: str, host: str, port: int) -> Iterator[Path]:
    """A folder of our own, mode 0700, with pid, host and port inside. A folder that is another's is refused."""
    from sampan.install.foreground import PID_FILE, Foreground, pid_text

    folder = target.run_folder(name)
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
