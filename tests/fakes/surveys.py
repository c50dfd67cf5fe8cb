"""The survey script, run by a shell on this machine or on a root folder that pretends to be another."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.fakes.machines import AARCH64, X86_64, auxv, cpuinfo, library, write

from sampan.survey import block, script

_PLACES = re.compile(r"(?<![\w.*\]])/(proc|sys|etc|lib64|lib|usr|dev(?!/null))(?=[/ ;])")


def run(shell: tuple[str, ...], root: Path | None = None, env: dict[str, str] | None = None) -> str:
    """What the script prints. With ``root`` every place that it reads is looked for below that folder."""
    text = script.text()
    if root is not None:
        text = _PLACES.sub(lambda place: f"{root}{place[0]}", text).replace(" / /tmp /opt", " /tmp /opt")
    done = subprocess.run(
        [*shell, "-s"],
        input=text.encode(),
        capture_output=True,
        check=True,
        timeout=120,
        env={**os.environ, **(env or {})},
    )
    assert done.stderr == b""
    return done.stdout.decode("utf-8")


def printed_block(output: str) -> str:
    """The lines with @ alone."""
    return "".join(line for line in output.splitlines(keepends=True) if line.startswith("@"))


def through_web_terminals(output: str) -> tuple[str, ...]:
    """A printed block as three web terminals and a chat program hand it over: wrapped, indented, widened."""
    lines = printed_block(output).splitlines()

    def wrapped(width: int) -> list[str]:
        return [line[at : at + width] for line in lines for at in range(0, len(line), width)]

    return (
        "\r\n".join(f"    {line}  " for line in wrapped(57)),
        "[root@kylin ~]# sh s.sh\n" + "\n\n".join(f"> {line}" for line in wrapped(80)) + "\n[root@kylin ~]# ",
        "\n".join(line.replace(" ", "\u3000") for line in lines),
        "\u2028".join(f"\u00a0{line}\u200b" for line in wrapped(31)),
    )


def make_block(body: str) -> str:
    """A sound block of any body, as the script would print it."""
    parts = [body[at : at + 64] for at in range(0, len(body), 64)]
    lines = [f"sampan1.{len(parts) + 1:02d}.{block.cksum(body)}", *parts]
    return "".join(
        f"@{number:02d} {part} #{block.cksum(f'{number:02d}{part}')}\n" for number, part in enumerate(lines, start=1)
    )


SHELLS = {"dash": ("dash",), "bash": ("bash", "--posix"), "busybox": ("busybox", "sh")}
LARGEST = 2048  # bytes of the block


def shell(name: str) -> tuple[str, ...]:
    if shutil.which(SHELLS[name][0]) is None:
        pytest.skip(f"no {name} here")
    return SHELLS[name]


# Of recorded machines: the HWCAP words as the kernel gives them there; None for x86-64 and where none is recorded.
MACHINES: dict[str, int | None] = {
    "arm64-summary-kernel-3.10": None,
    "d2000-8": 0x8FF,
    "d3000": None,
    "e2000q-mixed": None,
    "ft-2000-4-kernel-4.4": None,
    "hygon-c86-7285": None,
    "kunpeng-920": 0x917FFF & ~(1 << 15),
    "qemu-vcpu": None,
    "xeon-e5-2680-v4": None,
    "zhaoxin-kx-u6780a": None,
}


def pretended(root: Path, name: str) -> Path:
    """A root folder with the recorded /proc/cpuinfo and the rest of a machine around it."""
    text = cpuinfo(name)
    is_x86 = "flags\t" in text
    hwcap = MACHINES[name]
    machine = X86_64 if is_x86 else AARCH64
    files: dict[str, str | bytes] = {
        "proc/self/exe": library([], machine=machine),
        "proc/self/auxv": auxv(page_size=65536, hwcap=hwcap) if hwcap else auxv(page_size=4096)[:16] + bytes(16),
        "proc/cpuinfo": text,
        "proc/meminfo": "MemTotal:       266887104 kB\nMemAvailable: 1000 kB\nSwapTotal:  4194300 kB\n",
        "proc/sys/kernel/osrelease": "4.19.90-89.11.v2401.ky10.aarch64\n",
        "proc/self/cgroup": "4:memory:/a/b\n3:cpuacct,cpu:/a\n1:name=systemd:/x\n",
        "sys/fs/cgroup/memory/a/b/memory.limit_in_bytes": "9223372036854771712\n",
        "sys/fs/cgroup/memory/a/memory.limit_in_bytes": "8589934592\n",
        "sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us": "150000\n",
        "sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us": "100000\n",
        "proc/1/comm": "systemd\n",
        "proc/77/comm": "fapolicyd\n",
        "sys/fs/selinux/enforce": "1",
        "sys/module/apparmor/parameters/enabled": "N\n",
        "etc/kysec/x": "",
        "etc/os-release": 'ID="kylin"\nNAME="Kylin Linux Advanced Server"\nVERSION="V10 (Halberd)"\n',
        "usr/lib64/libc.so.6": library(["GLIBC_2.17", "GLIBC_2.28", "GLIBC_2.4", "GLIBC_PRIVATE"], machine=machine),
        "usr/lib64/libstdc++.so.6": library(["GLIBCXX_3.4.9", "GLIBCXX_3.4.24", "CXXABI_1.3.11"], machine=machine),
        "usr/lib64/libgomp.so.1": library(["GOMP_1.0", "GOMP_4.5"], machine=machine),
        "usr/lib/libc.so.6": library(["GLIBC_2.99"], machine=40, bits=32),
        "usr/lib/systemd/libsystemd-shared-243.so": b"",
        "proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX x86_64 Kernel Module  470.82.01  Wed Oct 27\n",
        "proc/driver/nvidia/gpus/0000:3b:00.0/information": "Model: \t\t Tesla P4\nIRQ:   \t\t 46\n",
        "proc/driver/nvidia/gpus/0000:af:00.0/information": "Model: \t\t Tesla T4\n",
    }
    for cpu in range(4):
        folder = f"sys/devices/system/cpu/cpu{cpu}/topology"
        files[f"{folder}/physical_package_id"] = f"{cpu // 2}\n"
        files[f"{folder}/thread_siblings_list"] = f"{cpu}\n"
    for node in range(2):
        files[f"sys/devices/system/node/node{node}/cpulist"] = "\n"
    return write(root, files)


# In a mount namespace of its own: nothing is left behind.
ENTER = (
    'root=$1 && shift && mount --bind /dev/null "$root/dev/null" && mount -t proc proc "$root/proc" && '
    'exec chroot "$root" "$@"'
)


def enter(root: Path, *argv: str, **env: str) -> str:
    """What ``argv`` prints in that root, in a mount namespace of its own; else the script, by the root's /bin/sh."""
    if os.getuid() != 0:
        pytest.skip("a mount namespace and chroot need root here")
    done = subprocess.run(
        [
            *("unshare", "--mount", "--propagation", "private", "sh", "-c", ENTER, "sh"),
            root,
            *(argv or ("/bin/sh", "-s")),
        ],
        input=script.text().encode(),
        capture_output=True,
        timeout=300,
        check=False,
        env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", **env},
    )
    if b"unshare" in done.stderr or b"mount:" in done.stderr:
        pytest.skip(f"no mount namespace here: {done.stderr.decode()}")
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout.decode()
