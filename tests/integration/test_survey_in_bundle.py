"""A bundle surveys the machine that it lies on: by its own launcher and private Python, natively and emulated."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.integration.runtime_parts import need_chroot
from tests.integration.survey_bundle import bundle

from sampan.errors import ExitCode
from sampan.flow import surveys
from sampan.spec import codec
from sampan.spec.target import TargetProfile
from sampan.survey import script

pytestmark = pytest.mark.integration
HERE = platform.machine()


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return bundle(tmp_path_factory.mktemp("bundle"), HERE)


def sampan(folder: Path, *words: str, **environ: str) -> subprocess.CompletedProcess[str]:
    env = {
        name: value for name, value in os.environ.items() if not name.startswith(("SAMPAN", "VIRTUAL_ENV", "PYTHON"))
    }
    argv = ["./sampan", *words]
    return subprocess.run(argv, cwd=folder, env={**env, **environ}, capture_output=True, text=True, check=False)


def lasting(profile: TargetProfile) -> TargetProfile:
    disks = tuple(replace(disk, free_bytes=None) for disk in profile.disks)
    return replace(profile, moment=None, disks=disks)


def test_it_finds_what_the_workshop_finds_on_the_same_machine(own: Path) -> None:
    done = sampan(own, "survey", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    found = codec.from_json(TargetProfile, done.stdout, where="-")
    assert lasting(found) == lasting(surveys.here())
    assert found.moment is not None


def test_its_table_and_its_script_are_there(own: Path, tmp_path: Path) -> None:
    assert "GLIBCXX" in sampan(own, "survey").stdout
    assert sampan(own, "survey", "--script").stdout == script.text()
    out = tmp_path / "this.json"
    assert sampan(own, "survey", "--out", str(out)).returncode == 0
    assert json.loads(out.read_text())["schema"] == TargetProfile.SCHEMA
    assert sampan(own, "survey", "--diff", str(out), str(out)).returncode == 0


@pytest.mark.parametrize(
    ("words", "code", "hint"),
    [
        (("survey", "--read", "/dev/null"), ExitCode.BAD_INPUT, "`./sampan survey --script`"),
        (("survey", "/"), ExitCode.BAD_INPUT, "`./sampan survey --out target.json`"),
        (("survey", "ssh://root@127.0.0.1:1"), ExitCode.MISSING_TOOL, "`./sampan survey --script`"),
        (("survey", "--probe"), ExitCode.USAGE, "In the workshop run `sampan survey --script --probe > survey.sh`"),
        (("ship",), ExitCode.USAGE, "Run `sampan ship` on the connected machine"),
    ],
)
def test_hints_name_the_command_as_it_is_typed_there(own: Path, words: tuple[str, ...], code: int, hint: str) -> None:
    done = sampan(own, "--lang", "en", *words)
    assert done.returncode == code
    assert hint in " ".join(done.stderr.split())


def test_its_help_shows_examples_that_work_there(own: Path) -> None:
    told = sampan(own, "--lang", "en", "survey", "--help").stdout
    assert "./sampan survey" in told
    assert " sampan survey" not in told.replace("./sampan", "./")


def test_on_an_emulated_machine_in_an_empty_root(tmp_path: Path) -> None:
    if HERE == "aarch64":
        pytest.skip("arm64 is not emulated here")
    need_chroot("aarch64")
    for name in ("proc", "dev", "b"):
        (tmp_path / name).mkdir()
    bundle(tmp_path / "b", "aarch64")
    enter = 'mount -t proc proc "$1/proc" && exec chroot "$1" /b/sampan survey --json'
    done = subprocess.run(
        ["unshare", "--mount", "--propagation", "private", "sh", "-c", enter, "sh", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": os.environ["PATH"], "QEMU_CPU": "cortex-a57", "QEMU_PAGESIZE": "65536"},
    )
    if "unshare" in done.stderr or "mount:" in done.stderr:
        pytest.skip(f"no mount namespace here: {done.stderr}")
    assert (done.returncode, done.stderr) == (0, "")
    told: dict[str, Any] = json.loads(done.stdout)
    assert (told["arch"], told["page_size"], told["systemd"], told["python"]) == ("aarch64", 65536, None, None)
    assert {"asimd", "crc32"} <= set(told["cpu"]["features"])
    assert "atomics" not in told["cpu"]["features"]
