"""Two changes of one installation never run at once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.unit.install.conftest import Target, make_bundle, make_plan

from sampan.errors import BusyError
from sampan.install import lookup
from sampan.install.gc import gc
from sampan.install.lock import NAME, Lock
from sampan.install.rollback import rollback
from sampan.install.steps import install
from sampan.install.uninstall import uninstall

_HOLD = """
import fcntl, os, sys
handle = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT, 0o600)
fcntl.flock(handle, fcntl.LOCK_EX)
os.write(handle, f"{os.getpid()}\\n".encode())
print("held", flush=True)
sys.stdin.read()
"""


def test_every_change_is_refused_while_another_process_is_at_work(
    target: Target, bundle: Path, tmp_path: Path
) -> None:
    install(target.options(bundle), target.hands())
    newer = make_bundle(tmp_path / "mini-2", make_plan(release=2))
    found = lookup.find(target.prefix / "current")
    machine = found.machine(target.systemd, target.root)
    before, path = target.files(), target.prefix / NAME
    holder = subprocess.Popen(
        [sys.executable, "-c", _HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        for change in (
            lambda: install(target.options(newer), target.hands()),
            lambda: rollback(target.prefix, None, machine, target.hands()),
            lambda: gc(target.prefix, 2, machine, target.hands()),
            lambda: uninstall(found, target.hands()),
        ):
            with pytest.raises(BusyError, match=str(holder.pid)) as caught:
                change()
            assert caught.value.exit_code == 13
        holder.communicate()
    path.unlink()
    assert target.files() == before


def test_the_lock_of_a_killed_process_is_free_and_goes(tmp_path: Path) -> None:
    (tmp_path / NAME).write_text("4711\n")
    lock = Lock(tmp_path)
    lock.take()
    assert (tmp_path / NAME).read_text() == f"{os.getpid()}\n"
    assert (tmp_path / NAME).stat().st_mode & 0o777 == 0o644, "the file was there before"
    lock.free()
    assert list(tmp_path.iterdir()) == []
    lock.take()
    assert (tmp_path / NAME).stat().st_mode & 0o777 == 0o600, "nobody else may hold it"
    lock.free()


def test_a_lock_file_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("precious")
    (tmp_path / NAME).symlink_to("victim")
    with pytest.raises(OSError, match=r"\.lock"):
        Lock(tmp_path).take()
    assert (tmp_path / "victim").read_text() == "precious"
