"""The survey script in every shell: what it prints, read back, is what the direct survey finds."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

import pytest
from tests.fakes.machines import library, write
from tests.fakes.surveys import LARGEST, pretended, printed_block, run, shell

from sampan.edge.process import ProcessRunner
from sampan.spec.target import Moment, TargetProfile
from sampan.survey import block, data, pasted, script
from sampan.survey.machine import survey_this
from sampan.survey.whole import survey_whole

pytestmark = pytest.mark.integration

SHELLS = ("dash", "bash", "busybox")


def lasting(profile: TargetProfile) -> TargetProfile:
    """Without what changes between two looks at one machine, and without where it comes from."""
    moment = Moment("", None, None) if profile.moment else None
    disks = tuple(replace(disk, free_bytes=None) for disk in profile.disks)
    return replace(profile, sources=(), moment=moment, disks=disks, name="")


@pytest.mark.parametrize("name", SHELLS)
def test_reading_it_back_equals_the_direct_survey(name: str) -> None:
    env = {"HTTPS_PROXY": "http://user:secret@proxy:3128", "no_proxy": "", "LANG": "zh_CN.UTF-8"}
    output = run(shell(name), env=env)
    assert "secret" not in output
    assert len(printed_block(output).encode()) <= LARGEST
    direct = survey_whole(runner=ProcessRunner(), environ={**os.environ, **env}, now=datetime.now(timezone.utc))
    read = lasting(pasted.profile(output, name="", where="-"))
    expected = lasting(direct)
    if name == "busybox":  # its own applets come before the system's programs
        read, expected = replace(read, tar=None), replace(expected, tar=None)
    assert read == expected
    assert direct.proxies is not None
    assert {"HTTPS_PROXY"} <= set(direct.proxies)


def test_the_moment_is_that_of_the_run() -> None:
    before = datetime.now(timezone.utc).replace(microsecond=0)
    moment = pasted.profile(run(shell("dash")), name="", where="-").moment
    assert moment is not None
    told = datetime.strptime(moment.utc, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=timezone.utc)
    assert before <= told <= datetime.now(timezone.utc)


def test_the_largest_machine_fits_and_says_what_was_left_out(tmp_path: Path) -> None:
    root = pretended(tmp_path, "xeon-e5-2680-v4")
    flags = " ".join([*script.x86_flags(), *(f"a_flag_of_the_future_{number}" for number in range(60))])
    ports = "".join(f"   {n}: 00000000:{n + 1000:04X} 00000000:0000 0A 0\n" for n in range(400))
    write(
        root, {"proc/cpuinfo": f"processor : 0\nmodel name : {'Big ' * 30}\nflags : {flags}\n", "proc/net/tcp": ports}
    )
    output = run(shell("dash"), root)
    assert LARGEST - 150 <= len(printed_block(output).encode()) <= LARGEST
    profile = pasted.profile(output, name="", where="-")
    assert int(profile.extra["survey_dropped"]) > 0
    assert set(profile.cpu.features) >= set(script.x86_flags())


def test_names_in_chinese_and_with_every_sign_come_back(tmp_path: Path) -> None:
    root = pretended(tmp_path, "kunpeng-920")
    write(root, {"etc/os-release": 'ID=kylin\nNAME="银河麒麟"\nVERSION="a_b;c=d,e@f#g%h|i>j`k\\l*m [n]"\n'})
    found = pasted.profile(run(shell("dash"), root), name="", where="-").os
    assert (found.name, found.version) == ("银河麒麟", "a_b;c=d,e@f#g%h|i>j`k\\l*m [n]")


def test_without_the_kernels_words_the_names_are_sent(tmp_path: Path) -> None:
    root = pretended(tmp_path, "ft-2000-4-kernel-4.4")
    assert ";fl=asimd;" in "".join(re.findall(r"@\d\d (\S+) #", run(shell("dash"), root)))


def test_the_script_is_short_and_plain() -> None:
    lines = script.text().splitlines()
    assert len(lines) < 320
    assert max(map(len, lines)) <= 160
    bare = re.sub(r"'[^']*'|#.*|\$\(\(.*?\)\)(?!\))", "", script.text())  # without quoted words, remarks and sums
    assert "<<" not in bare  # here-documents may be written to /tmp
    targets = set(re.findall(r"(?<![0-9-])[0-9]?>\s*([^&\s);]+)", bare))
    assert targets == {"/dev/null"}
    commands = set(re.findall(r"(?:^|[|;&({]|\bthen|\bdo|\belse)\s*([a-z]\w*)\b(?!=)", bare, re.MULTILINE))
    assert {"od", "sed", "cat", "df"} <= commands
    assert not commands & {
        "mrs",
        "eval",
        "rm",
        "mv",
        "cp",
        "dd",
        "mkdir",
        "touch",
        "chmod",
        "curl",
        "wget",
        "tee",
        "nc",
        "hostname",
        "sudo",
        "su",
    }
    assert "mrs" not in script.text()


def test_the_list_of_x86_features_only_grows() -> None:
    flags = script.x86_flags()
    assert len(set(flags)) == len(flags)
    assert (flags[0], flags[100], flags[270]) == ("fpu", "xop", "fred")


def test_the_list_of_libraries_only_grows() -> None:
    names = script.libraries()
    assert len(set(names)) == len(names)
    assert (names[0], names[20], names[47]) == ("libz.so.1", "libpcre.so.1", "libcrypto.so.3")


@pytest.mark.parametrize("name", SHELLS)
def test_libraries_are_looked_for_where_the_loader_looks(tmp_path: Path, name: str) -> None:
    root = pretended(tmp_path, "kunpeng-920")
    own, other = library([]), library([], machine=40, bits=32)
    places = "".join(f"{root}/{path}\0" for path in ("opt/x/libuuid.so.1", "opt/y z/libexpat.so.1"))
    write(root, {"usr/lib64/libz.so.1": own, "usr/lib64/libacl.so.1": other, "usr/lib/libacl.so.1": b"GROUP ( x )"})
    write(root, {"opt/x/libuuid.so.1": own, "opt/y z/libexpat.so.1": own, "etc/ld.so.cache": f"\1\2\0{places}"})
    told = pasted.profile(run(shell(name), root), name="", where="-")
    assert told.libraries == ("libz.so.1", "libstdc++.so.6", "libgomp.so.1", "libuuid.so.1")
    assert {*told.libraries, *told.absent_libraries} == set(script.libraries())


def test_every_feature_that_a_variant_asks_for_is_in_the_list() -> None:
    wanted = {name for variant in data.table("variants.toml")["variant"] for name in variant["requires"]}
    arm = set(data.table("hwcap-aarch64.toml")["hwcap"]) | set(data.table("hwcap-aarch64.toml")["hwcap2"])
    assert wanted
    assert wanted - arm <= set(script.x86_flags())


@pytest.mark.skipif(shutil.which("shellcheck") is None, reason="no shellcheck here")
def test_shellcheck_has_nothing_to_say() -> None:
    done = subprocess.run(
        ["shellcheck", "-s", "sh", "-"], input=script.text().encode(), capture_output=True, check=False
    )
    assert done.stdout.decode() == ""


@pytest.mark.parametrize("name", SHELLS)
def test_without_cksum_the_sum_is_made_by_hand(tmp_path: Path, name: str) -> None:
    text = script.text()
    by_hand = text[text.index("sum() {") :].split("\n}\n")[0].replace("if has cksum", "if false") + "\n}\n"
    for sample in ("a", "01sampan1.11.3012172f", "x" * 255, "y" * 256, "on=Kylin_Linux;" * 107):
        done = subprocess.run(
            [*shell(name), "-c", f'{by_hand}sum "$1"', "sh", sample], capture_output=True, text=True, check=True
        )
        assert (done.stdout, done.stderr) == (block.cksum(sample), "")


def test_limits_of_control_groups_v2(tmp_path: Path) -> None:
    root = pretended(tmp_path, "kunpeng-920")
    files: dict[str, str | bytes] = {
        "proc/self/cgroup": "0::/a.slice/b.scope\n",
        "sys/fs/cgroup/cgroup.controllers": "cpu memory\n",
        "sys/fs/cgroup/a.slice/memory.max": "4294967296\n",
        "sys/fs/cgroup/a.slice/cpu.max": "200000 100000\n",
        "sys/fs/cgroup/a.slice/b.scope/memory.max": "max\n",
        "sys/fs/cgroup/a.slice/b.scope/cpu.max": "75000 50000\n",
    }
    read = pasted.profile(run(shell("dash"), write(root, files)), name="", where="-")
    direct = survey_this(root)
    assert (read.cgroup, read.memory_limit_bytes, read.cpu_quota) == (2, 4 << 30, 1.5)
    assert (direct.cgroup, direct.memory_limit_bytes, direct.cpu_quota) == (2, 4 << 30, 1.5)


NVIDIA = {
    "new": ("for card in a b; do echo 'Tesla T4, 7.5, 535.54.03, 15360'; done", 2),
    "old": (
        "case $1 in *compute_cap*) echo 'Field \"compute_cap\" is not a valid field to query.'; exit 2;;"
        " *) echo 'Tesla P4, 470.82.01, 7611';; esac",
        1,
    ),
    "broken": ("echo 'NVIDIA-SMI has failed because it could not communicate with the driver, version 5'; exit 9", 0),
}


@pytest.mark.parametrize("kind", NVIDIA)
def test_what_the_commands_of_cards_and_of_kysec_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    answer, count = NVIDIA[kind]
    rows = (
        "npu-smi 23.0.rc2   Version: 23.0.rc2",
        "NPU   Name   | Health",
        "0     910B3  | OK    ",
        "0     | 0000:C1",
    )
    table = "\n".join(f"| {row} |" for row in rows)
    programs = {
        "nvidia-smi": answer,
        "npu-smi": f"echo '{table}'",
        "getstatus": "echo 'KySec status: enabled'; echo; echo 'exec control    : warning'",
    }
    for name, body in programs.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{body}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    read = pasted.profile(run(shell("dash")), name="", where="-")
    direct = survey_whole(runner=ProcessRunner(), environ={}, now=datetime.now(timezone.utc))
    assert (read.gpus, read.npus, read.security) == (direct.gpus, direct.npus, direct.security)
    assert len(read.gpus) == count
    assert (read.security.kysec, read.npus and read.npus.name) == ("warning", "910B3")


@pytest.mark.parametrize("name", SHELLS)
def test_a_shell_that_ends_at_the_first_failure_prints_the_block_too(name: str) -> None:
    assert pasted.profile(run((*shell(name), "-eu")), name="", where="-").page_size == os.sysconf("SC_PAGESIZE")


def test_programs_that_are_missing_are_named() -> None:
    done = subprocess.run(
        ["/bin/sh", "-s"], input=script.text().encode(), env={"PATH": ""}, capture_output=True, check=False
    )
    assert "无法生成文本块: od sed grep tr sort head tail" in done.stdout.decode()
    assert "Programs missing" not in run(shell("dash"))
