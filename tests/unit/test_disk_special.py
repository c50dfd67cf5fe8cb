"""What is neither a file nor a folder is written to and stays what it is."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from sampan import disk


def test_a_pipe_is_written_to(tmp_path: Path) -> None:
    pipe, read = tmp_path / "pipe", list[bytes]()
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    disk.write(pipe, b"data")
    reader.join()
    assert read == [b"data"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert [path.name for path in tmp_path.iterdir()] == ["pipe"]


def test_an_open_file_is_written_through_its_name(tmp_path: Path) -> None:
    with (tmp_path / "out").open("wb") as stream:
        before = os.fstat(stream.fileno()).st_ino
        disk.write(Path(f"/proc/self/fd/{stream.fileno()}"), b"data")
    assert ((tmp_path / "out").read_bytes(), (tmp_path / "out").stat().st_ino) == (b"data", before)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can make a device, or replace one")
def test_a_device_stays_a_device(tmp_path: Path) -> None:
    null = tmp_path / "null"
    try:
        os.mknod(null, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        disk.write(null, b"data")
    except PermissionError:
        pytest.skip("devices cannot be made or opened here")
    assert stat.S_ISCHR(null.stat().st_mode)
