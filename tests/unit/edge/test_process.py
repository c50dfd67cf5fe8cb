"""ProcessRunner: output, logs, and nothing left behind."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from sampan.edge.process import ProcessRunner, end_group
from sampan.errors import ExitCode, MissingToolError


def test_output_and_code_come_back_with_stderr_in_order() -> None:
    done = ProcessRunner().run(["sh", "-c", "echo one; echo two >&2; exit 3"])
    assert done.returncode == 3
    assert done.output == "one\ntwo\n"


def test_log_and_lines_receive_what_is_printed(tmp_path: Path) -> None:
    lines: list[str] = []
    ProcessRunner().run(["sh", "-c", "printf 'a\\nb'"], log=tmp_path / "log", on_line=lines.append)
    assert lines == ["a", "b"]
    assert (tmp_path / "log").read_text() == "a\nb"


def test_bytes_that_are_not_utf8_do_not_fail() -> None:
    assert "\ufffd" in ProcessRunner().run(["printf", "\\377"]).output


def test_stdin_environment_and_folder_are_handed_over(tmp_path: Path) -> None:
    done = ProcessRunner().run(
        ["sh", "-c", "cat; echo $SAMPAN_X; pwd"], stdin=b"in\n", env={"SAMPAN_X": "x"}, cwd=tmp_path
    )
    assert done.output == f"in\nx\n{tmp_path}\n"


def test_a_missing_program_is_named() -> None:
    with pytest.raises(MissingToolError) as caught:
        ProcessRunner().run(["sampan-no-such-program"])
    assert caught.value.key == "tool.missing"
    assert caught.value.exit_code == ExitCode.MISSING_TOOL
    assert "sampan-no-such-program" in caught.value.message


def test_a_timeout_ends_the_grandchildren_too(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    done = ProcessRunner().run(["sh", "-c", f"sleep 60 & echo $! > {pid_file}; wait"], timeout=0.5)
    assert done.returncode != 0
    assert not _alive(int(pid_file.read_text()))


def test_end_group_kills_what_ignores_the_polite_signal() -> None:
    process = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import signal,time; signal.signal(15, signal.SIG_IGN); print(1, flush=True); time.sleep(60)",
        ],
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdout is not None
    process.stdout.readline()
    end_group(process, grace=0.2)
    process.stdout.close()
    assert process.returncode == -9


def test_an_interrupt_in_a_callback_ends_the_process(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"

    def interrupt(_line: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ProcessRunner().run(["sh", "-c", f"echo $$ > {pid_file}; echo go; sleep 60"], on_line=interrupt)
    assert not _alive(int(pid_file.read_text()))
    assert threading.active_count() < 20


def _alive(pid: int) -> bool:
    for _ in range(50):
        try:
            os.kill(pid, 0)
            state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        except (ProcessLookupError, FileNotFoundError):
            return False
        if state == "Z":
            return False
        time.sleep(0.05)
    return True
