"""Makes the sandbox's folder, runs the scripts through the runner, removes the folder."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from sampan.rehearse import script
from sampan.rehearse.script import Sandbox
from sampan.rehearse.steps import Line
from sampan.spec.ports import Runner

_PREFIX, _LOCK = "rehearsal-", "lock"
_UNUSED_BYTE = 15  # the last of e_ident: EI_PAD, zero in every program


@contextmanager
def prepared(box: Sandbox, mode: str, work: Path) -> Iterator[Sandbox]:
    """``box`` with a fresh folder below ``work`` that holds its scripts; removed at the end.

    All mounts live in the sandbox's own mount namespace and died with it, so removing meets only our own files;
    ``rmtree`` follows no links.
    """
    work.mkdir(parents=True, exist_ok=True)
    _sweep(work)
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=work)).resolve()
    with (folder / _LOCK).open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            folder.chmod(0o711)  # the unprivileged user passes through to its home
            ready = replace(box, folder=folder)
            _fill(ready, mode)
            yield ready
        finally:
            shutil.rmtree(folder)


def _fill(box: Sandbox, mode: str) -> None:
    for mount_point in ("root", "binfmt"):
        (box.folder / mount_point).mkdir()
    user_home = box.home / Path(script.HOME).relative_to("/home")
    user_home.mkdir(parents=True)
    os.chown(user_home, script.USER, script.USER)
    real = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    texts = {
        "sandbox.sh": script.outer(box),
        "steps.sh": script.inner(box, mode),
        "userns.sh": script.body("userns.sh"),
        "cpuinfo": script.cpuinfo(real, box.way, os.cpu_count() or 1),
    }
    for name, text in texts.items():
        (box.folder / name).write_text(text, encoding="utf-8")
    if box.way.qemu:
        _copy_marked(Path(box.way.qemu), box.folder / "qemu")


def _copy_marked(program: Path, copy: Path) -> None:
    """The emulator, marked in an unused byte of its ELF header that the registered pattern wants to be zero.

    Without the mark the kernel would start the emulator of this machine's own architecture by itself, for ever.
    """
    content = bytearray(program.read_bytes())
    content[_UNUSED_BYTE] = 1
    copy.write_bytes(content)
    copy.chmod(0o755)


def run(box: Sandbox, runner: Runner, *, timeout: float, on_line: Callable[[Line], None]) -> tuple[Line, ...]:
    """Run a prepared sandbox to its end and give all lines. ``on_line`` sees every line as it comes."""
    started = time.monotonic()
    lines: list[Line] = []

    def keep(text: str) -> None:
        line = Line(time.monotonic() - started, text)
        lines.append(line)
        on_line(line)

    runner.run(script.command(box), on_line=keep, timeout=timeout)
    return tuple(lines)


def keep_log(lines: Iterable[Line], path: Path) -> None:
    """Write the whole output, each line with its time, for who has to find out why."""
    path.write_text("".join(f"{line.seconds:8.2f} {line.text}\n" for line in lines), encoding="utf-8")


def _sweep(work: Path) -> None:
    """Remove what killed rehearsals left: nobody holds their lock. Their mounts died with them."""
    for folder in work.glob(f"{_PREFIX}*"):
        with suppress(OSError), (folder / _LOCK).open("r+b") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder)
