"""Make ``app/``: sampan and its locked wheels for the target's private Python, unpacked and compiled."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from importlib import resources
from pathlib import Path

from sampan import i18n
from sampan.errors import BuildError, IncompatibleError
from sampan.spec.artefacts import RuntimeTree, Wheel, Wheelhouse
from sampan.spec.layout import python_command
from sampan.spec.ports import Progress, Runner, Store, Task, WheelFetcher
from sampan.wheelhouse.lock import Pinned, lock_text, pinned
from sampan.wheelhouse.own import digest, files, place_own
from sampan.wheelhouse.target import environment, tags
from sampan.wheelhouse.unpack import trim, unpack

_FORMAT = 1  # raise when the layout changes in a way that the key's other parts do not show
_AT_ONCE = 4  # downloads; an index page is slow to come and quick to read


def make(
    runtime: RuntimeTree,
    host_runtime: RuntimeTree,
    *,
    runner: Runner,
    fetcher: WheelFetcher,
    store: Store,
    progress: Progress,
) -> Wheelhouse:
    """The folder ``app/`` for ``runtime``, in the store; ``host_runtime`` compiles it and must be the same Python.

    Raises NetworkError, VerificationError, BadInputError, IncompatibleError (no wheel for the target, or Pythons that
    differ), BuildError.
    """
    if runtime.python != host_runtime.python:
        raise IncompatibleError("wheelhouse.pythons", target=runtime.python, host=host_runtime.python)
    own = files()
    key = {
        "format": _FORMAT,
        "lock": _digest(lock_text().encode()),
        "sampan": digest(own),
        "trim": _digest(trim().text.encode()),
        "compiler": _digest(_compiler().read_bytes()),
        "arch": runtime.arch,
        "python": runtime.python,
        "glibc": runtime.glibc,
    }

    def fill(folder: Path) -> None:
        app = folder / "app"
        app.mkdir()
        entries = pinned(lock_text(), environment(runtime))
        wheels = [*_install(entries, tags(runtime), app, fetcher, progress), place_own(app, own)]
        _compile(app, host_runtime, runner, progress)
        _normalise(app)
        (folder / "wheels.json").write_text(json.dumps([asdict(wheel) for wheel in wheels], indent=1))

    made = store.get_or_make("wheelhouse", key, fill)
    wheels = tuple(Wheel(**entry) for entry in json.loads((made / "wheels.json").read_text()))
    return Wheelhouse(arch=runtime.arch, python=runtime.python, path=str(made / "app"), wheels=wheels)


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _compiler() -> Path:
    with resources.as_file(resources.files("sampan") / "data" / "compile_tree.py") as path:
        return path


def _install(
    entries: Sequence[Pinned], tags: Sequence[str], app: Path, fetcher: WheelFetcher, progress: Progress
) -> list[Wheel]:
    """Fetch side by side, unpack one by one in the lock's order."""
    with (
        progress.task(i18n.text("wheelhouse.fetching"), len(entries)) as task,
        ThreadPoolExecutor(_AT_ONCE) as pool,
    ):
        waiting = [pool.submit(_fetch, entry, tags, fetcher, task) for entry in entries]
        try:
            paths = [future.result() for future in waiting]
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return [unpack(path, app, _digest(path.read_bytes())) for path in paths]


def _fetch(entry: Pinned, tags: Sequence[str], fetcher: WheelFetcher, task: Task) -> Path:
    path = fetcher.wheel(entry.requirement, tags=tags, hashes=entry.hashes)
    task.advance()
    return path


def _compile(app: Path, host: RuntimeTree, runner: Runner, progress: Progress) -> None:
    with progress.task(i18n.text("wheelhouse.compiling")):
        done = runner.run(
            [*python_command(host.path, host.python), "-I", "-S", "-B", str(_compiler()), str(app)],
            env={"PYTHONHASHSEED": "0", "LD_LIBRARY_PATH": "", "LD_PRELOAD": ""},
        )
    if done.returncode != 0:
        raise BuildError("wheelhouse.compile", folder=str(app), detail=done.output.strip()[-500:])


def _normalise(app: Path) -> None:
    """0755 for folders, 0644 for files: modules are loaded, none is started."""
    for path in app.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)
