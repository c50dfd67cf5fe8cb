"""Recorded machines from public dumps: the block, read back, is the recorded profile and what the direct survey says.

``SAMPAN_UPDATE_GOLDEN=1`` writes the profiles anew; review the difference.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from tests.fakes import recorded
from tests.fakes.surveys import LARGEST, MACHINES, pretended, printed_block, run, shell

from sampan.plan.variants import all_variants, runnable
from sampan.spec import codec
from sampan.spec.target import TargetProfile
from sampan.survey import pasted
from sampan.survey.machine import survey_this

pytestmark = pytest.mark.integration
ARCHITECTURES = {variant.arch for variant in all_variants()}
# The best variant that each may run; None where no feature is known.
BEST = {
    "kunpeng-920-taishan-2280": "armv8.2-dotprod-fp16",
    "kunpeng-920-7265-openeuler": "armv8.2-dotprod-fp16",
    "kunpeng-920-bclinux": "armv8.2-dotprod-fp16",
    "kunpeng-920-ubuntu-ascend": "armv8.2-dotprod-fp16",
    "phytium-d2000": "armv8.0",
    "phytium-ft2000plus-64": "armv8.0",
    "phytium-d3000-uos": "armv8.2-dotprod-fp16",
    "hygon-c86-7285": "x86-64-v3",
    "zhaoxin-kx-u6780a": "x86-64-v2",
    "xeon-e5-2660-v3": "x86-64-v3",
    "graviton2": "armv8.2-dotprod-fp16",
    "a64fx": "armv8.0",
    "thunderx-coreos": "armv8.0",
    "yitian-710-vm": "armv8.2-dotprod-fp16",
}


def surveyed(tmp_path: Path, name: str, shell_name: str = "dash") -> TargetProfile:
    """By the real script; without what is this session's and not the machine's."""
    machine = recorded.load(name)
    env = recorded.environment(recorded.path(tmp_path / "bin", machine))
    output = run(shell(shell_name), recorded.root(tmp_path / "root", machine), env=env)
    assert len(printed_block(output).encode()) <= LARGEST
    found = pasted.profile(output, name=name, where="-")
    # no dump says which libraries there are: here there are none but glibc's
    return replace(found, user=None, moment=None, sources=(), proxies=None, libraries=None, absent_libraries=())


@pytest.mark.parametrize("name", recorded.names())
def test_recorded_machines(tmp_path: Path, name: str) -> None:
    found = surveyed(tmp_path, name)
    golden = recorded.FOLDER / f"{name}.json"
    if os.environ.get("SAMPAN_UPDATE_GOLDEN") == "1":
        golden.write_text(codec.to_json(found), encoding="utf-8")
    assert found == codec.load(TargetProfile, golden)
    direct = survey_this(tmp_path / "root")
    assert (found.cpu, found.os, found.libc, found.gpus, found.page_size) == (
        direct.cpu,
        direct.os,
        direct.libc,
        direct.gpus,
        direct.page_size,
    )


@pytest.mark.parametrize("name", recorded.names())
def test_what_a_dump_does_not_say_stays_unknown(name: str) -> None:
    machine, profile = recorded.load(name), codec.load(TargetProfile, recorded.FOLDER / f"{name}.json")
    assert machine["source"]
    unsaid = (profile.memory_bytes, profile.systemd, profile.libc.glibcxx, profile.libc.gomp, profile.openssl)
    assert set(unsaid) == {None}
    assert {*vars(profile.security).values(), *vars(profile.limits).values()} == {None}
    assert (profile.libc.glibc, profile.os.kernel) == (machine.get("glibc"), machine.get("kernel"))
    assert profile.python == machine.get("python")
    cpu = machine.get("cpu")
    assert profile.cpu.features_known == bool(cpu)
    assert profile.cpu.sockets == ((cpu or {}).get("sockets") or None)
    assert profile.cpu.numa_nodes == (cpu or {}).get("numa")
    assert len(profile.gpus) == len(machine.get("gpus", {}).get("names", []))


def test_the_plan_for_each_takes_what_it_can_run() -> None:
    best = {}
    for name in recorded.names():
        profile = codec.load(TargetProfile, recorded.FOLDER / f"{name}.json")
        if profile.cpu.features_known and profile.arch in ARCHITECTURES:
            best[name] = max(runnable(profile.arch, profile.cpu.features), key=lambda variant: variant.rank).name
    assert best == BEST


def test_there_are_enough_of_them() -> None:
    assert len(recorded.names()) >= 20


@pytest.mark.parametrize("shell_name", ["bash", "busybox"])
@pytest.mark.parametrize(
    "name", ["kunpeng-920-7265-openeuler", "hygon-c86-7285", "loongson-3a6000", "ascend-910b4-host"]
)
def test_other_shells_say_the_same(tmp_path: Path, name: str, shell_name: str) -> None:
    golden = codec.load(TargetProfile, recorded.FOLDER / f"{name}.json")
    found = surveyed(tmp_path, name, shell_name)
    if shell_name == "busybox":  # its own tar and uname come before ours
        found = replace(found, tar=golden.tar, kernel_arch=golden.kernel_arch)
    assert found == golden


@pytest.mark.parametrize("name", MACHINES)
def test_machines_with_much_around_the_processor(tmp_path: Path, name: str) -> None:
    root = pretended(tmp_path, name)
    output = run(shell("dash"), root)
    assert len(printed_block(output).encode()) <= LARGEST
    read, direct = pasted.profile(output, name="this", where="-"), survey_this(root)
    shared = (
        "arch os page_size libc memory_bytes memory_limit_bytes cpu_quota systemd cgroup security swap_bytes init"
    )
    for fact in (*shared.split(), "gpus"):
        if fact != "page_size" or MACHINES[name]:
            assert getattr(read, fact) == getattr(direct, fact), fact
    assert replace(read.cpu, allowed=None) == direct.cpu
    assert (read.security.selinux, read.security.fapolicyd) == ("enforcing", "running")
    assert read.memory_limit_bytes == 8 << 30
