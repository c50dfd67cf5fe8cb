"""What is being done goes on when the reader of its output is gone."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from typing import TextIO

import pytest

from sampan.cli import output


@pytest.fixture
def closed_pipe() -> Iterator[TextIO]:
    """A stream whose reader is gone."""
    reader, writer = os.pipe()
    os.close(reader)
    stream = os.fdopen(writer, "w")
    yield stream
    with suppress(OSError):
        stream.close()


def test_progress_falls_silent(closed_pipe: TextIO) -> None:
    console = output.Unheard(file=closed_pipe)
    console.print("one")
    console.print("two")
    assert console.quiet


def test_a_line_that_nobody_reads_is_no_failure(closed_pipe: TextIO, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout", closed_pipe)
    output.tell("one")
    output.tell("two")


def test_a_hang_up_ends_a_command_as_ctrl_c_does_unless_it_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "_mute", lambda _handle: None)  # this terminal is still there

    @output.handled
    def verb() -> None:
        os.kill(os.getpid(), signal.SIGHUP)

    before = signal.getsignal(signal.SIGHUP)
    with pytest.raises(SystemExit) as ended:
        verb()
    assert ended.value.code == 130
    assert signal.getsignal(signal.SIGHUP) is before
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does
    try:
        verb()
    finally:
        signal.signal(signal.SIGHUP, before)
