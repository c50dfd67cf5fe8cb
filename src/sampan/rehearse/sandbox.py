"""Makes the sandbox's folder, runs the scripts through the runner, removes the folder."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from sampan.rehearse import script
from sampan.rehearse.script import Sandbox
from sampan.rehearse.steps import Line, Record, parse
from sampan.spec.ports import Runner

_UNUSED_BYTE = 15  # the last of e_ident: EI_PAD, zero in every program


@contextmanager
def prepared(box: Sandbox, mode: str, work: Path) -> Iterator[Sandbox]:
    """``box`` with a fresh folder below ``work`` that holds its scripts; removed at the end.

    All mounts live in the sandbox's own mount namespace and died with it, so removing meets only our own files;
    ``rmtree`` follows no links.
    """
    work.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="rehearsal-", dir=work)).resolve()
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


def run(box: Sandbox, runner: Runner, *, log: Path, timeout: float, on_line: Callable[[Line], None]) -> Record:
    """Run a prepared sandbox to its end. ``on_line`` sees every line as it comes; ``log`` keeps them all."""
    started = time.monotonic()
    lines: list[Line] = []

    def keep(text: str) -> None:
        line = Line(time.monotonic() - started, text)
        lines.append(line)
        on_line(line)

    runner.run(script.command(box), log=log, on_line=keep, timeout=timeout)
    return parse(lines)
