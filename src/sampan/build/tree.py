"""One build tree that goes on where it stopped: source, recipe, and a build folder for one variant after another."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from sampan import i18n
from sampan.build import flags
from sampan.build.failure import explain
from sampan.build.ninja import parse_step
from sampan.build.pins import Architecture, EnginePin
from sampan.build.toolchain import BuildTools, Compiler
from sampan.errors import BuildError
from sampan.spec.plan import Variant
from sampan.spec.ports import Completed, Progress, Runner

_STRAY_SECONDS = 180.0  # longer than any one compiler call


@dataclass(frozen=True)
class BuildTree:
    """``path`` holds ``source``, ``recipe``, ``build`` and a log; the caller holds the lock on it."""

    path: Path
    pin: EnginePin
    arch: Architecture
    compiler: Compiler
    tools: BuildTools
    environment: dict[str, str]
    runner: Runner

    def make(self, variant: Variant, progress: Progress) -> Path:
        """The executable of one variant, in the build folder. ``source`` is unpacked already.

        Raises BuildError, FilesystemError.
        """
        wait_for_strays(self.path)
        self._write_recipe()
        log = self.path / "build.log"
        log.unlink(missing_ok=True)
        with progress.task(i18n.text("build.compiling", engine=self.pin.name, variant=variant.name)) as task:

            def show(line: str) -> None:
                step = parse_step(line)
                if step:
                    task.update(completed=step.done, total=step.total, note=step.what)

            self._configure(variant, log)
            parallel = flags.jobs(cpu_count(), memory_bytes())
            argv = flags.compile_target(self.pin, self.tools, self.path, parallel)
            done = self.runner.run(argv, cwd=self.path, env=self.environment, log=log, on_line=show)
            if done.returncode != 0:
                raise explain(done, step=variant.name, log=log, tree=self.path)
        return self.path / "build" / "bin" / self.pin.target

    def _write_recipe(self) -> None:
        folder = self.path / "recipe"
        folder.mkdir(exist_ok=True)
        for name, data in flags.recipe().items():
            file = folder / name
            if not file.is_file() or file.read_bytes() != data:
                file.write_bytes(data)

    def _configure(self, variant: Variant, log: Path) -> None:
        """A folder that a killed run left unusable is made anew, once."""
        build = self.path / "build"
        continued = build.exists()
        done = self._cmake(variant, log)
        if done.returncode != 0 and continued:
            shutil.rmtree(build)
            done = self._cmake(variant, log)
        if done.returncode != 0:
            raise explain(done, step="cmake", log=log, tree=self.path)

    def _cmake(self, variant: Variant, log: Path) -> Completed:
        argv = flags.configure(self.pin, self.arch, variant, compiler=self.compiler, tools=self.tools, tree=self.path)
        return self.runner.run(argv, cwd=self.path, env=self.environment, log=log)


def wait_for_strays(folder: Path, seconds: float = _STRAY_SECONDS) -> None:
    """Wait for compilers that a killed run of ours left at work in ``folder``; two must not write one file.

    They end by themselves: ninja at its next line of output, a compiler with its file. Raises BuildError
    ``build.busy`` after ``seconds``.
    """
    end = time.monotonic() + seconds
    while pids := tuple(_processes_in(folder.resolve())):
        if time.monotonic() > end:
            raise BuildError("build.busy", path=str(folder), pids=", ".join(map(str, pids)))
        time.sleep(0.2)


def _processes_in(folder: Path) -> Iterator[int]:
    own = os.getpid()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == own:
            continue
        with suppress(OSError):  # it ended meanwhile, or is another user's
            place = (entry / "cwd").readlink()
            if place == folder or folder in place.parents:
                yield int(entry.name)


def cpu_count() -> int:
    """The CPUs that this process may use."""
    return len(os.sched_getaffinity(0))


def memory_bytes(limit_file: Path = Path("/sys/fs/cgroup/memory.max")) -> int:
    """The machine's memory, or the container's where that is less."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with suppress(OSError, ValueError):  # no cgroup v2, or "max"
        return min(total, int(limit_file.read_text(encoding="ascii")))
    return total
