"""Machines put together from public dumps: a root folder with what a dump says, and with nothing else."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Any

from tests.fakes.machines import DATA, auxv, library, write

from sampan.survey import elf
from sampan.survey.data import table

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FOLDER = DATA / "machines"
ASSUMED_PAGE = 4096  # bytes; a profile must have one, few dumps say it
# What the script is made of. Programs that it asks for their version are there only where a dump tells that version.
TOOLS = (
    "cat cksum date df env grep head id ls mkdir od printf rm sed sh sort tail timeout tr true wc busybox dash bash"
)
Machine = dict[str, Any]


def names() -> list[str]:
    """Of every recorded machine."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def load(name: str) -> Machine:
    """What the dumps say."""
    machine: Machine = tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8"))
    return machine


def root(folder: Path, machine: Machine) -> Path:
    """The folder that pretends to be that machine."""
    number = next(number for (number, _), arch in elf.MACHINES.items() if arch == machine["arch"])
    page = machine.get("page_size", ASSUMED_PAGE)
    files: dict[str, str | bytes] = {
        "proc/self/exe": library([], machine=number),
        "proc/self/auxv": auxv(page_size=page, **_words(machine)),
    }
    if "kernel" in machine:
        files["proc/sys/kernel/osrelease"] = machine["kernel"] + "\n"
    if "release" in machine:
        files["etc/os-release"] = "".join(f'{key}="{value}"\n' for key, value in machine["release"].items())
    if "glibc" in machine:
        files["usr/lib64/libc.so.6"] = library(["GLIBC_2.17", f"GLIBC_{machine['glibc']}"], machine=number)
    for index, card in enumerate(machine.get("gpus", {}).get("names", [])):
        files[f"proc/driver/nvidia/gpus/0000:{index:02x}:00.0/information"] = f"Model: \t\t {card}\n"
        driver = machine["gpus"]["driver"]
        files["proc/driver/nvidia/version"] = f"NVRM version: NVIDIA UNIX Kernel Module  {driver}  Wed Oct 27\n"
    return write(folder, {**files, **_processors(machine.get("cpu"))})


def _words(machine: Machine) -> dict[str, int]:
    """The HWCAP words that go with the features of arm64."""
    listed = machine.get("cpu", {}).get("fields", {}).get("Features", "").split()
    if machine["arch"] != "aarch64" or not listed:
        return {}
    names = table("hwcap-aarch64.toml")
    known = {word: [feature in listed for feature in names[word]] for word in ("hwcap", "hwcap2")}
    return {word: sum(1 << bit for bit, is_set in enumerate(bits) if is_set) for word, bits in known.items()}


def _processors(cpu: dict[str, Any] | None) -> dict[str, str | bytes]:
    """/proc/cpuinfo, and /sys as far as the dump tells the machine's shape."""
    if cpu is None:
        return {}
    lines = "".join(f"{key}\t: {value}\n" for key, value in cpu["fields"].items())
    blocks = [f"processor\t: {number}\n{lines}" for number in range(cpu["logical"])]
    files: dict[str, str | bytes] = {"proc/cpuinfo": "\n".join(blocks)}
    if "sockets" in cpu:
        threads = cpu.get("threads_per_core", 1)
        for number in range(cpu["logical"]):
            place, core = f"sys/devices/system/cpu/cpu{number}/topology", number // threads
            socket = core // cpu["cores_per_socket"] if cpu["sockets"] else -1  # -1: the firmware does not say
            files[f"{place}/physical_package_id"] = f"{socket}\n"
            files[f"{place}/thread_siblings_list"] = f"{core * threads}\n"
    for node in range(cpu.get("numa", 0)):
        files[f"sys/devices/system/node/node{node}/cpulist"] = "\n"
    return files


def path(folder: Path, machine: Machine) -> str:
    """A PATH with the script's tools, and with stand-ins for the programs whose answers a dump has."""
    folder.mkdir()
    for tool in TOOLS.split():
        found = shutil.which(tool)
        if found:
            (folder / tool).symlink_to(found)
    answers = {"uname": machine["arch"]}
    if "python" in machine:
        answers["python3"] = f"Python {machine['python']}"
    if "npu" in machine:
        answers["npu-smi"] = _npu_smi(**machine["npu"])
    for name, answer in answers.items():
        (folder / name).write_text(f"#!/bin/sh\nprintf '%s\\n' '{answer}'\n")
        (folder / name).chmod(0o755)
    return str(folder)


def _npu_smi(version: str, names: list[str]) -> str:
    rows = "\n".join(f"| {number}     {name}   | OK   | 88.2  30 |" for number, name in enumerate(names))
    return f"| npu-smi {version}    Version: {version}   |\n| NPU   Name   | Health | Power(W) |\n{rows}"


def environment(folder: str) -> dict[str, str]:
    """Nothing of this session's locale or proxies."""
    unset = {name: "" for name in os.environ if name.upper().endswith("_PROXY")}
    return {**unset, "PATH": folder, "LC_ALL": "", "LC_CTYPE": "", "LANG": ""}
