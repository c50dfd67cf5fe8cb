"""Units as old and new systemds judge them: `systemd-analyze verify` of each version that can be had here.

Debian 11 to 13 have 247, 252 and 257; the archives of older ones are gone from the usual mirrors. For versions before
247 there is the table of tests/unit/install/systemd_directives.json, which is held against systemd's own NEWS.
"""

from __future__ import annotations

import gzip
import json
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from tests.e2e import systemd_container
from tests.unit.install.test_install_unit import FACTS

from sampan.install.model import USER
from sampan.install.unit import Limits, render

pytestmark = pytest.mark.integration
NEWS = Path("/usr/share/doc/systemd/NEWS.gz")
TABLE = Path(__file__).parents[1] / "unit/install/systemd_directives.json"
MOST = Limits(656 << 20, 1040, lock_memory=True, cpu_percent=150, cpus="0-3,8")


@pytest.mark.parametrize("suite", ["bullseye", "bookworm", "trixie"])
def test_a_real_systemd_finds_no_fault_with_its_units(suite: str, tmp_path: Path) -> None:
    why = systemd_container.missing()
    root = None if why else systemd_container.tree((suite,))
    if root is None:
        pytest.skip(why or f"no mirror of this machine has {suite}")
    said = _in(root, tmp_path, "systemd-analyze", "--version")
    version = int(said.split()[1])
    program = tmp_path / "opt/mini/current/sampan"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    (program.parent / "README.txt").write_text("x")
    facts = replace(FACTS, prefix=Path("/mnt/opt/mini"), systemd=version, user="daemon")
    kinds = {
        "plain": facts,
        "limited": replace(facts, limits=MOST, host="0.0.0.0", keys="/etc/keys.json", tls=("/etc/c", "/etc/k")),
        "user": replace(facts, scope=USER),
    }
    for name, kind in kinds.items():
        (tmp_path / f"sampan-{name}.service").write_text(render(kind))
        scope = ("--user",) if kind.scope == USER else ()
        said = _in(root, tmp_path, "systemd-analyze", "verify", *scope, f"/mnt/sampan-{name}.service")
        assert [line for line in said.splitlines() if "sampan" in line] == [], (version, name)
    broken = render(facts).replace("MemoryMax=", "MemoryMost=")
    (tmp_path / "sampan-broken.service").write_text(broken)
    assert "MemoryMost" in _in(root, tmp_path, "systemd-analyze", "verify", "/mnt/sampan-broken.service")


def _in(root: Path, bound: Path, *words: str) -> str:
    """What a command says in the tree, which stays as it is; ``bound`` is /mnt there."""
    command = ["systemd-nspawn", "--quiet", "--register=no", "--keep-unit", "--private-network", "--pipe"]
    command += ["--volatile=overlay", f"--directory={root}", f"--bind={bound}:/mnt", "--setenv=LC_ALL=C"]
    command += ["--setenv=SYSTEMD_COLORS=0", "--setenv=TERM=dumb"]
    done = subprocess.run([*command, *words], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    return done.stdout + done.stderr


def test_the_table_of_directives_agrees_with_systemds_own_news() -> None:
    if not NEWS.is_file():
        pytest.skip("systemd's NEWS is not installed here (Debian: systemd)")
    text = gzip.decompress(NEWS.read_bytes()).decode()
    pieces = re.split(r"(?m)^CHANGES WITH (\d+)", text)
    news = {int(number): section for number, section in zip(pieces[1::2], pieces[2::2], strict=True)}
    table = json.loads(TABLE.read_text(encoding="utf-8"))["directives"]
    for name, known in table.items():
        word = rf"\b{name.partition('-')[0]}="
        if known["source"] == "NEWS":
            assert re.search(word, news[known["since"]]), name
