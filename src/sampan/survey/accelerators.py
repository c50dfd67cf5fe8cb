"""GPUs and NPUs: device nodes from /dev, and what the drivers' own commands print."""

from __future__ import annotations

import os
import re
import shutil
import stat
from pathlib import Path

from sampan.spec.ports import Runner
from sampan.spec.target import DeviceFacts, GpuFacts, NpuFacts
from sampan.survey.files import read_text

_NODES = ("nvidia[0-9]*", "nvidiactl", "nvidia-uvm", "davinci*", "devmm_svm", "hisi_hdc", "kfd", "dri/renderD*")
_SECONDS = 10.0  # a card in trouble lets its command hang


def devices(root: Path) -> tuple[DeviceFacts, ...]:
    """Device nodes of accelerators below ``root``/dev with their rights."""
    return tuple(
        DeviceFacts(
            path="/" + str(path.relative_to(root)),
            mode=stat.filemode(path.lstat().st_mode),
            owner=_name(path.owner, path.lstat().st_uid),
            group=_name(path.group, path.lstat().st_gid),
            usable=os.access(path, os.R_OK | os.W_OK),
        )
        for pattern in _NODES
        for path in sorted((root / "dev").glob(pattern))
    )


def _name(look: object, number: int) -> str:
    try:
        return str(look()) if callable(look) else str(number)
    except KeyError:  # a number without a name
        return str(number)


def npus(root: Path) -> NpuFacts | None:
    """Ascend chips by their device nodes, with the driver's version file; None where there is neither."""
    count = len(list((root / "dev").glob("davinci[0-9]*")))
    told = re.search(r"^Version=(\S+)", read_text(root / "usr/local/Ascend/driver/version.info"), re.MULTILINE)
    return NpuFacts(count=count, driver=told[1] if told else None) if count or told else None


def ask_npu(known: NpuFacts | None, runner: Runner) -> NpuFacts | None:
    """The chips' name from ``npu-smi info``, where that command is installed."""
    if shutil.which("npu-smi") is None:
        return known
    listed, version = npu_smi(runner.run(["npu-smi", "info"], timeout=_SECONDS).output)
    count, driver = (known.count, known.driver) if known else (0, None)
    return NpuFacts(count=count or len(listed), name=listed[0] if listed else None, driver=version or driver)


def npu_smi(text: str) -> tuple[tuple[str, ...], str | None]:
    """Each chip's name, and the version, in the table of ``npu-smi info``."""
    names = re.findall(r"^\| *\d+ +([A-Za-z0-9]{3,}) +\|", text, re.MULTILINE)
    version = re.search(r"Version: *([^ |\n]+)", text)
    return tuple(names), version[1] if version else None


def ask_nvidia(known: tuple[GpuFacts, ...], runner: Runner) -> tuple[GpuFacts, ...]:
    """The cards as ``nvidia-smi`` lists them; drivers before 510 do not know ``compute_cap``."""
    if shutil.which("nvidia-smi") is None:
        return known
    for fields in (
        ("name", "compute_cap", "driver_version", "memory.total"),
        ("name", "driver_version", "memory.total"),
    ):
        argv = ["nvidia-smi", f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits"]
        done = runner.run(argv, timeout=_SECONDS)
        if done.returncode == 0:
            return nvidia_smi(done.output, fields)
    return known


def nvidia_smi(text: str, fields: tuple[str, ...]) -> tuple[GpuFacts, ...]:
    """Lines of ``--format=csv,noheader,nounits``; memory in MiB."""
    cards = []
    for line in text.splitlines():
        values = dict(zip(fields, (word.strip() for word in line.split(",")), strict=False))
        if len(values) == len(fields):
            memory = values["memory.total"]
            cards.append(
                GpuFacts(
                    name=values["name"],
                    compute_capability=values.get("compute_cap"),
                    driver=values["driver_version"],
                    memory_bytes=int(memory) << 20 if memory.isdigit() else None,
                )
            )
    return tuple(cards)
