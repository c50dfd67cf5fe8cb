from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest

from sampan import i18n
from sampan.rehearse import cpu, script
from sampan.rehearse.machine import Way
from sampan.rehearse.script import Limits, Sandbox
from sampan.survey import known

KUNPENG = known.load("kylin-v10-sp3-kunpeng920")


def emulated(binfmt: str = "machine", qemu: str | None = None) -> Way:
    stand_in = cpu.emulated(KUNPENG)
    assert stand_in is not None
    return Way(stand_in, binfmt, qemu)


def native(*machine: str) -> Way:
    return Way(cpu.native(known.load("hygon"), frozenset(machine)), "none")


def box(way: Way, bundle: str = "/bundles/minilm-1") -> Sandbox:
    return Sandbox(Path("/work/box"), Path(bundle), Path("/bin/busybox"), way, "aarch64", 65536, 8080, "minilm")


def test_the_command_line_of_an_emulated_target() -> None:
    assert shlex.join(script.command(box(emulated()))) == (
        "setpriv --pdeathsig KILL unshare --mount --pid --net --ipc --uts --fork --kill-child "
        "env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/home/sampan LANG=C SAMPAN_LANG=en "
        "QEMU_CPU=cortex-a76 QEMU_PAGESIZE=65536 QEMU_RESERVED_VA=0x4000000000 sh /work/box/sandbox.sh"
    )


def test_a_private_registration_gets_a_user_namespace_around_it() -> None:
    plain = script.command(box(emulated()))
    private = box(emulated("private", "/usr/bin/qemu-aarch64-static"))
    assert script.command(private) == ("sh", "/work/box/userns.sh", *plain)
    head = script.outer(private).split("set -eu")[0]
    assert "qemu=/work/box/qemu\n" in head
    assert r"binfmt_magic='\x7f\x45\x4c\x46" in head
    assert "qemu=''\n" in script.outer(box(emulated())).split("set -eu")[0]


def test_a_native_target_knows_nothing_of_qemu() -> None:
    assert not any("QEMU" in word for word in script.command(box(native("avx2"))))


def test_the_language_in_force_goes_along(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(i18n, "language", lambda: "zh")
    assert script.environment(box(native()))["SAMPAN_LANG"] == "zh"


def test_the_variables_of_the_scripts() -> None:
    head = script.inner(box(emulated()), "rehearse").split("# What a person")[0]
    assert head == (
        "#!/bin/sh\nmode=rehearse\nbundle_name=minilm-1\nprefix=/home/sampan/opt/minilm\nport=8080\n"
        "install_limit=300\nready_limit=300\nselftest_limit=600\nhttp_limit=120\nstop_limit=60\nsession_limit=1800\n\n"
    )


@pytest.mark.parametrize("folder", ["/a b/it's", "/x/$(touch /tmp/gotcha)", "/x/;id", "/x/`id`"])
def test_no_folder_name_becomes_a_command(folder: str) -> None:
    for text in (script.outer(box(native(), folder)), script.inner(box(native(), folder), "session")):
        head = text.split("\n\n")[0]
        shown = subprocess.run(
            ["sh", "-c", f'{head}\nprintf %s "$bundle_name"'], capture_output=True, text=True, check=True
        )
        assert shown.stdout == Path(folder).name


@pytest.mark.parametrize("name", ["sandbox.sh", "steps.sh", "userns.sh"])
def test_the_scripts_are_plain_shell(name: str) -> None:
    subprocess.run(["sh", "-n"], input=script.body(name), text=True, check=True)
    assert "[[" not in script.body(name)
    assert "\t" not in script.body(name)


def test_all_steps_end_before_the_runner_loses_patience() -> None:
    limits = Limits(1, 2, 3, 4, 5, 6)
    assert limits.all_steps > 1 + 2 + 3 + 2 * 4 + 5


def test_an_emulated_cpu_is_shown_in_place_of_the_real_one() -> None:
    shown = script.cpuinfo("flags\t: avx512f\n", emulated(), cpus=2)
    assert shown.count("processor\t: ") == 2
    assert "CPU implementer\t: 0x41\nCPU architecture: 8\nCPU part\t: 0xd0b\n" in shown
    assert "asimddp" in shown
    assert "avx512f" not in shown


def test_an_emulated_x86_cpu_shows_its_flags() -> None:
    stand_in = cpu.emulated(known.load("zhaoxin"))
    assert stand_in is not None
    shown = script.cpuinfo("flags\t: avx512f\n", Way(stand_in, "private", "/q"), cpus=1)
    flags = next(line for line in shown.splitlines() if line.startswith("flags")).split()
    assert "avx" in flags
    assert "avx2" not in flags


def test_a_native_cpu_hides_what_the_target_lacks_and_keeps_the_rest() -> None:
    real = "processor\t: 0\nmodel name\t: Some CPU\nflags\t\t: fpu avx2 avx512f\nbugs\t\t:\n"
    shown = script.cpuinfo(real, native("fpu", "avx2", "avx512f"), cpus=1)
    assert shown == "processor\t: 0\nmodel name\t: Some CPU\nflags\t\t: fpu avx2\nbugs\t\t:\n"
