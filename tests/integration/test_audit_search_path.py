"""The folders that a real loader of glibc 2.36 says it searches, against those that the audit simulates."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from importlib import resources
from pathlib import Path

import pytest
from tests.integration.runtime_parts import Parts

from sampan.audit import rules
from sampan.audit.world import World
from sampan.spec.layout import python_command
from sampan.spec.target import CpuFacts, LibcFacts, OsFacts, TargetProfile

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

pytestmark = pytest.mark.integration
_DATA = tomllib.loads((resources.files("sampan") / "data" / "emulated_cpus.toml").read_text(encoding="utf-8"))
CPUS = {cpu["name"]: cpu for cpu in _DATA["cpu"]}
_INTELS_OWN = re.compile(r"haswell|xeon_phi|avx512_1")


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Parts:
    return Parts(tmp_path_factory.mktemp("parts") / "store")


@pytest.mark.parametrize("name", ["cortex-a57", "cortex-a76", "Nehalem", "Haswell"])
def test_the_subfolders_of_a_searched_folder(parts: Parts, name: str) -> None:
    cpu = CPUS[name]
    emulator = _DATA["qemu"][cpu["arch"]]["program"]
    if shutil.which(emulator) is None:
        pytest.skip(f"{emulator} (package qemu-user-static) is not on this machine")
    runtime = parts.runtime(cpu["arch"])
    command = [emulator, "-cpu", cpu["qemu"], "-E", "LD_DEBUG=libs", *python_command(runtime.path, runtime.python)]
    said = subprocess.run([*command, "-c", "0"], capture_output=True, text=True, check=False)
    first = re.search(r"search path=(\S+)", said.stdout + said.stderr)
    assert first, said.stderr
    entries = first[1].split(":")
    top = min(entries, key=len)
    theirs = [Path(entry).relative_to(top).as_posix() for entry in entries if entry != top]
    theirs = list(dict.fromkeys(entry for entry in theirs if not _INTELS_OWN.search(entry)))
    known = rules.load()
    machine = CpuFacts(name, tuple(cpu["features"]))
    profile = TargetProfile(name, cpu["arch"], OsFacts("debian", "Debian"), machine, 4096, LibcFacts("2.36"))
    ours = World(profile, known.arch[cpu["arch"]], known, files={}, shown={}).hwcaps
    if name == "Haswell":  # where its own folder takes the platform's place
        assert [entry for entry in ours if entry not in {"tls/x86_64/x86_64", "x86_64/x86_64"}] == theirs
    else:
        assert list(ours) == theirs
