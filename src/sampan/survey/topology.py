"""Sockets, cores and NUMA nodes from /sys; None where /sys does not tell."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from sampan.survey.files import read_text


class Topology(NamedTuple):
    """Counts of what is online; ``cores`` are physical ones (hyper-threads of one core count once)."""

    sockets: int | None
    cores: int | None
    numa_nodes: int | None


def read(root: Path) -> Topology:
    """Read the topology below ``root``."""
    cpus = [path / "topology" for path in sorted((root / "sys/devices/system/cpu").glob("cpu[0-9]*"))]
    packages = {read_text(cpu / "physical_package_id").strip() for cpu in cpus}
    siblings = {_siblings(cpu) for cpu in cpus}
    nodes = list((root / "sys/devices/system/node").glob("node[0-9]*"))
    return Topology(
        # Kernel 4.x on arm64 prints -1 where the firmware does not say.
        sockets=len({package for package in packages if package.isdigit()}) or None,
        cores=len(siblings - {""}) or None,
        numa_nodes=len(nodes) or None,
    )


def _siblings(cpu: Path) -> str:
    """The list of hyper-threads that share this core; the old and the new name of one file."""
    return (read_text(cpu / "core_cpus_list") or read_text(cpu / "thread_siblings_list")).strip()
