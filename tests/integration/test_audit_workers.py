"""Processes that read: they end with their parent, and leave Ctrl-C to it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

pytestmark = pytest.mark.integration

_PROGRAM = """
import sys
from pathlib import Path
from sampan.audit import elf, reading
from sampan.cli.output import handled

plain, slow = elf.read, {slow}
def read(*args):
    Path(sys.argv[1], "busy").touch()
    while slow:
        pass
    return plain(*args)

elf.read, reading._WORTH_PROCESSES = read, 0
handled(reading.read_all)(sys.argv[2:], None, lambda _: None, 2)
"""


def _children(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}/task")
    return [int(child) for task in tasks.iterdir() for child in (task / "children").read_text().split()]


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def _soon(condition: Callable[[], bool], seconds: float = 60) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.01)
    return condition()


@contextmanager
def _reading(folder: Path, *, slow: bool) -> Iterator[subprocess.Popen[str]]:
    """A process that reads copies of this Python's own ELF file with two workers, in a group of its own."""
    source = Path(sys.executable).resolve()
    files = [folder / f"copy-{number}" for number in range(40)]
    for file in files:
        os.link(files[0], file) if file is not files[0] else shutil.copyfile(source, file)
    program = _PROGRAM.format(slow=slow)
    with subprocess.Popen(
        [sys.executable, "-c", program, str(folder), *map(str, files)],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            assert _soon((folder / "busy").exists)
            yield process
        finally:
            if process.returncode is None:
                os.killpg(process.pid, signal.SIGKILL)


def test_workers_end_when_their_parent_is_killed(tmp_path: Path) -> None:
    with _reading(tmp_path, slow=True) as process:
        workers = _children(process.pid)
        assert len(workers) == 2
        process.kill()
        process.wait()
        ended = _soon(lambda: not any(map(_lives, workers)), 20)
        for worker in filter(_lives, workers):  # a failure must not leave them behind
            os.kill(worker, signal.SIGKILL)
        assert ended


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_of_the_whole_group_is_one_line(tmp_path: Path, number: signal.Signals) -> None:
    with _reading(tmp_path, slow=False) as process:
        workers = _children(process.pid)
        os.killpg(process.pid, number)
        said = process.communicate(timeout=60)[1]
        assert process.returncode == 130
        assert len(said.splitlines()) == 1, said
        assert not any(map(_lives, workers))


def test_a_worker_can_be_ended_by_itself(tmp_path: Path) -> None:
    with _reading(tmp_path, slow=True) as process:
        worker = _children(process.pid)[0]
        os.kill(worker, signal.SIGTERM)
        assert _soon(lambda: not _lives(worker), 20)
