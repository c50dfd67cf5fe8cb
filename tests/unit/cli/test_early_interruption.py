"""Ctrl-C before any verb has begun."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

_PRESSED = "import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(5)\n"


@pytest.mark.parametrize("module", ["typer", "rich"])
def test_ctrl_c_during_the_imports_ends_quietly(tmp_path: Path, module: str) -> None:
    (tmp_path / f"{module}.py").write_text(_PRESSED, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "sampan", "survey"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 130
    assert done.stderr == done.stdout == ""
