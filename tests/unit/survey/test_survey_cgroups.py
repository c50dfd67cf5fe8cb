"""cgroup limits, v1 and v2."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.fakes.machines import write

from sampan.survey import cgroups

V1 = "12:memory:/system.slice/x.service\n5:cpu,cpuacct:/system.slice/x.service\n1:name=systemd:/\n"
V1_NONE = "9223372036854710272\n"  # a kernel with 64 KiB pages; 4 KiB pages give …771712


def test_v1_limits_of_the_service_and_of_its_parent(tmp_path: Path) -> None:
    top = "sys/fs/cgroup"
    files: dict[str, str | bytes] = {
        "proc/self/cgroup": V1,
        f"{top}/memory/memory.limit_in_bytes": V1_NONE,
        f"{top}/memory/system.slice/memory.limit_in_bytes": "8589934592\n",
        f"{top}/memory/system.slice/x.service/memory.limit_in_bytes": V1_NONE,
        f"{top}/cpu,cpuacct/system.slice/x.service/cpu.cfs_quota_us": "250000\n",
        f"{top}/cpu,cpuacct/system.slice/x.service/cpu.cfs_period_us": "100000\n",
    }
    assert cgroups.read(write(tmp_path, files)) == cgroups.Limits(1, 8589934592, 2.5)


def test_v1_without_limits(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {
        "proc/self/cgroup": V1,
        "sys/fs/cgroup/memory/memory.limit_in_bytes": V1_NONE,
        "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
        "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
    }
    assert cgroups.read(write(tmp_path, files)) == cgroups.Limits(1, None, None)


def test_v1_in_a_container_where_only_the_top_is_mounted(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {
        "proc/self/cgroup": "4:memory:/docker/0123\n",
        "sys/fs/cgroup/memory/memory.limit_in_bytes": "1073741824\n",
    }
    assert cgroups.read(write(tmp_path, files)).memory_bytes == 1073741824


def test_v2_takes_the_smallest_on_the_way_up(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {
        "proc/self/cgroup": "0::/a.slice/b.service\n",
        "sys/fs/cgroup/cgroup.controllers": "cpu memory\n",
        "sys/fs/cgroup/a.slice/memory.max": "4294967296\n",
        "sys/fs/cgroup/a.slice/cpu.max": "150000 100000\n",
        "sys/fs/cgroup/a.slice/b.service/memory.max": "max\n",
        "sys/fs/cgroup/a.slice/b.service/cpu.max": "max 100000\n",
    }
    assert cgroups.read(write(tmp_path, files)) == cgroups.Limits(2, 4294967296, 1.5)


def test_no_cgroups_at_all(tmp_path: Path) -> None:
    assert cgroups.read(tmp_path) == cgroups.Limits(None, None, None)


@pytest.mark.parametrize("text", ["", "max 100000", "-1 100000", "100000", "100000 0", "a b"])
def test_what_is_no_quota(text: str) -> None:
    assert cgroups.quota(text) is None
