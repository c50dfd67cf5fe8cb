"""Whole machines, from a root folder to a profile."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.fakes.machines import AARCH64, ARM32, X86_64, auxv, cpuinfo, library, write

from sampan.errors import ExitCode, IncompatibleError
from sampan.spec import codec
from sampan.spec.target import GpuFacts, LibcFacts, OsFacts, TargetProfile
from sampan.survey import script, system
from sampan.survey.machine import survey_this

OS_RELEASE = """NAME="Kylin Linux Advanced Server"
VERSION="V10 (Halberd)"
ID="kylin"
VERSION_ID="V10"
PRETTY_NAME="Kylin Linux Advanced Server V10 (Halberd)"
"""


def kylin(root: Path) -> Path:
    """A Kunpeng 920 with two NUMA nodes of two cores, Kylin V10 SP3."""
    files: dict[str, str | bytes] = {
        "proc/self/exe": library([], machine=AARCH64),
        "proc/self/auxv": auxv(page_size=65536, hwcap=0x917FFF & ~(1 << 15)),
        "proc/cpuinfo": cpuinfo("kunpeng-920"),
        "proc/meminfo": "MemTotal:       266887104 kB\nMemFree: 1 kB\n",
        "proc/sys/kernel/osrelease": "4.19.90-89.11.v2401.ky10.aarch64\n",
        "proc/self/cgroup": "0::/\n",
        "etc/os-release": OS_RELEASE,
        "usr/lib64/libc.so.6": library(["GLIBC_2.17", "GLIBC_2.28"]),
        "usr/lib64/libstdc++.so.6": library(["GLIBCXX_3.4.24", "CXXABI_1.3.11"]),
        "usr/lib/systemd/libsystemd-shared-243.so": b"",
    }
    for cpu in range(4):
        folder = f"sys/devices/system/cpu/cpu{cpu}/topology"
        files[f"{folder}/physical_package_id"] = f"{36 if cpu < 2 else 3180}\n"
        files[f"{folder}/thread_siblings_list"] = f"{cpu}\n"
    for node in range(2):
        files[f"sys/devices/system/node/node{node}/cpulist"] = "\n"
    write(root, files)
    (root / "usr/bin").mkdir()
    (root / "usr/bin/python3").symlink_to("python3.7")
    return root


def test_a_kylin_server_is_surveyed(tmp_path: Path) -> None:
    profile = survey_this(kylin(tmp_path))
    assert profile.arch == "aarch64"
    assert profile.page_size == 65536
    assert profile.os == OsFacts(
        "kylin", "Kylin Linux Advanced Server", "V10 (Halberd)", "4.19.90-89.11.v2401.ky10.aarch64"
    )
    assert profile.libc == LibcFacts("2.28", "3.4.24", "1.3.11")
    assert (profile.cpu.sockets, profile.cpu.cores, profile.cpu.numa_nodes) == (2, 4, 2)
    assert profile.memory_bytes == 266887104 * 1024
    assert (profile.systemd, profile.python) == (243, "3.7")
    assert {source.check for source in profile.sources} == {"S"}
    assert codec.from_json(TargetProfile, codec.to_json(profile), where="-") == profile


def test_libraries_are_those_of_the_loaders_folders_and_of_its_cache(tmp_path: Path) -> None:
    root = write(kylin(tmp_path), {"usr/lib64/libz.so.1": library([]), "lib/libacl.so.1": library([], machine=ARM32)})
    write(root, {"opt/x/libuuid.so.1": library([]), "etc/ld.so.cache": b"\1\2\0libuuid.so.1\0/opt/x/libuuid.so.1\0"})
    profile = survey_this(root)
    assert profile.libraries == ("libz.so.1", "libstdc++.so.6", "libuuid.so.1")
    assert {*profile.libraries, *profile.absent_libraries} == set(script.libraries())
    (root / "usr/lib64/libc.so.6").unlink()
    assert (survey_this(root).libraries, survey_this(root).absent_libraries) == (None, ())


def test_what_cannot_be_read_stays_unknown(tmp_path: Path) -> None:
    profile = survey_this(write(tmp_path, {"bin/sh": library([], machine=X86_64)}))
    assert profile.arch == "x86_64"
    assert (profile.memory_bytes, profile.memory_limit_bytes, profile.cpu_quota, profile.systemd) == (None,) * 4
    assert (profile.cpu.sockets, profile.cpu.cores, profile.cpu.numa_nodes) == (None, None, None)
    assert not profile.cpu.features_known
    assert profile.libc == LibcFacts()
    assert profile.os == OsFacts("linux", "Linux")


def test_a_vm_that_does_not_tell_its_sockets(tmp_path: Path) -> None:
    root = kylin(tmp_path)
    for path in root.glob("sys/devices/system/cpu/*/topology/physical_package_id"):
        path.write_text("-1\n")
    assert survey_this(root).cpu.sockets is None


def test_hyper_threads_count_once(tmp_path: Path) -> None:
    root = kylin(tmp_path)
    for index, path in enumerate(sorted(root.glob("sys/devices/system/cpu/*/topology"))):
        (path / "core_cpus_list").write_text(f"{index % 2},{index % 2 + 2}\n")
    assert survey_this(root).cpu.cores == 2


@pytest.mark.parametrize("sh", [b"", b"#!/bin/sh", library([], machine=AARCH64, order=">"), library([], machine=8)])
def test_an_unknown_userland_is_refused(tmp_path: Path, sh: bytes) -> None:
    write(tmp_path, {"bin/sh": sh})
    with pytest.raises(IncompatibleError) as caught:
        survey_this(tmp_path)
    assert caught.value.key == "survey.userland"
    assert caught.value.exit_code == ExitCode.INCOMPATIBLE


def test_a_32_bit_userland_is_named_whatever_the_kernel_is(tmp_path: Path) -> None:
    assert survey_this(write(tmp_path, {"bin/sh": library([], machine=ARM32, bits=32)})).arch == "armv7l"


def test_systemd_219_is_found_in_its_executable(tmp_path: Path) -> None:
    write(tmp_path, {"usr/lib/systemd/systemd": b"\x7fELF\0systemd 219\0+PAM +AUDIT\0"})
    assert system.systemd_version(tmp_path) == 219
    assert system.systemd_version(tmp_path / "nowhere") is None


@pytest.mark.parametrize(
    ("name", "version"),
    [("libsystemd-shared-252.38-1~deb12u1.so", 252), ("libsystemd-shared-249.so", 249)],
)
def test_systemd_by_its_library(tmp_path: Path, name: str, version: int) -> None:
    write(tmp_path, {f"usr/lib/x86_64-linux-gnu/systemd/{name}": b""})
    assert system.systemd_version(tmp_path) == version


def test_nvidia_cards_and_their_driver(tmp_path: Path) -> None:
    version = (
        "NVRM version: NVIDIA UNIX x86_64 Kernel Module  470.82.01  Wed Oct 27 21:21:55 UTC 2021\nGCC version:  gcc\n"
    )
    write(
        tmp_path,
        {
            "proc/driver/nvidia/version": version,
            "proc/driver/nvidia/gpus/0000:3b:00.0/information": "Model: \t\t Tesla P4\nIRQ:   \t\t 46\n",
        },
    )
    assert system.gpus(tmp_path) == (GpuFacts(name="Tesla P4", driver="470.82.01"),)
    assert system.gpus(tmp_path / "nowhere") == ()


def test_the_open_kernel_module_names_its_driver_too() -> None:
    text = "NVRM version: NVIDIA UNIX Open Kernel Module for aarch64  550.54.14  Release Build\n"
    assert system.nvidia_driver(text) == "550.54.14"


def test_os_release_with_a_broken_quote() -> None:
    assert system.os_facts('ID=kylin\nNAME="Kylin\n# comment\n', "").name == "Kylin"


def test_another_machines_cpuinfo_counts_no_cores(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {
        "proc/self/exe": library([], machine=AARCH64),
        "proc/self/auxv": auxv(page_size=4096, hwcap=0x8FB),
        "proc/cpuinfo": cpuinfo("xeon-e5-2680-v4"),  # what a process under qemu-user sees
    }
    cpu = survey_this(write(tmp_path, files)).cpu
    assert (cpu.model, cpu.cores, "asimd" in cpu.features) == ("unknown", None, True)


def test_the_release_of_glibc_counts_more_than_its_highest_symbol(tmp_path: Path) -> None:
    banner = b"GNU C Library (Debian GLIBC 2.31-13+deb11u11) stable release version 2.31.\nCopyright"
    files: dict[str, str | bytes] = {
        "proc/self/exe": library([], machine=AARCH64),
        "lib/libc.so.6": library(["GLIBC_2.17", "GLIBC_2.30"]) + banner,
    }
    assert survey_this(write(tmp_path, files)).libc.glibc == "2.31"
