"""Parsers of the facts that an installation and the doctor ask for."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.fakes.machines import write

from sampan.spec.target import DiskFacts, GpuFacts, LimitsFacts, NpuFacts, SecurityFacts
from sampan.survey import accelerators, guards, resources

LIMITS = """Limit                     Soft Limit           Hard Limit           Units
Max processes             96365                96365                processes
Max open files            1024                 524288               files
Max locked memory         unlimited            unlimited            bytes
"""
MOUNTS = """/dev/vda1 / xfs rw,relatime 0 0
tmpfs /tmp tmpfs rw,nosuid,noexec 0 0
/dev/vdb /opt ext4 ro,relatime 0 0
/dev/vdc /opt/with\\040blank ext4 rw 0 0
/dev/vdd /opt ext4 rw,nosuid 0 0
"""
TCP = """  sl  local_address rem_address   st tx_queue
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000
   1: 0100007F:1F91 0100007F:8000 01 00000000:00000000
"""
TCP6 = "   0: 00000000000000000000000000000000:0016 00000000000000000000000000000000:0000 0A 0\n" + TCP
NPU_SMI = """+--------------------------------------------------------------------------------------------+
| npu-smi 23.0.rc2                 Version: 23.0.rc2                                         |
+---------------------------+---------------+------------------------------------------------+
| NPU   Name                | Health        | Power(W)    Temp(C)                            |
| Chip                      | Bus-Id        | AICore(%)   Memory-Usage(MB)                   |
+===========================+===============+================================================+
| 0     910B3               | OK            | 93.6        40                                 |
| 0                         | 0000:C1:00.0  | 0           0    / 0                           |
"""


def test_limits() -> None:
    assert resources.limits(LIMITS) == LimitsFacts(memlock=-1, nofile=1024, nproc=96365)
    assert resources.limits("") == LimitsFacts()


def test_disks_by_the_longest_and_last_mount(tmp_path: Path) -> None:
    root = write(tmp_path, {"proc/mounts": MOUNTS, "tmp/x": "", "opt/x": "", "var/x": ""})
    assert resources.disks(root) == (
        DiskFacts("/", "/", "xfs"),
        DiskFacts("/tmp", "/tmp", "tmpfs", noexec=True, nosuid=True),
        DiskFacts("/opt", "/opt", "ext4", nosuid=True),
        DiskFacts("/var", "/", "xfs"),
    )
    assert resources.mounts(MOUNTS)[3].point == "/opt/with blank"
    assert resources.disks(tmp_path / "nowhere") == ()


def test_ports_of_both_families_that_listen() -> None:
    assert resources.listening_ports(TCP, TCP6) == (22, 8080)


@pytest.mark.parametrize(
    ("files", "facts"),
    [
        ({}, SecurityFacts(None, None, None, None)),
        ({"usr/sbin/x": ""}, SecurityFacts(None, None, "absent", "absent")),
        ({"sys/fs/x": "", "sys/module/x": ""}, SecurityFacts("absent", "absent", None, None)),
        ({"sys/fs/selinux/enforce": "0"}, SecurityFacts("permissive", None, None, None)),
        ({"sys/module/apparmor/parameters/enabled": "Y\n"}, SecurityFacts(None, "enabled", None, None)),
        ({"usr/sbin/kysec_set": "", "usr/sbin/fapolicyd": ""}, SecurityFacts(None, None, "present", "installed")),
        ({"proc/9/comm": "fapolicyd\n"}, SecurityFacts(None, None, None, "running")),
    ],
)
def test_guards(tmp_path: Path, files: dict[str, str | bytes], facts: SecurityFacts) -> None:
    assert guards.facts(write(tmp_path, files)) == facts


def test_the_state_of_kysec() -> None:
    text = "KySec status: enabled\n\nexec control    : warning\nnet control     : off\n"
    assert guards.kysec_state(text) == "warning"
    assert guards.kysec_state("getstatus: some other program\n") is None


def test_npus(tmp_path: Path) -> None:
    assert accelerators.npu_smi(NPU_SMI) == (("910B3",), "23.0.rc2")
    assert accelerators.npu_smi("") == ((), None)
    files: dict[str, str | bytes] = {"dev/davinci0": "", "dev/davinci1": "", "dev/davinci_manager": ""}
    files["usr/local/Ascend/driver/version.info"] = "Version=23.0.rc2\n"
    assert accelerators.npus(write(tmp_path, files)) == NpuFacts(2, None, "23.0.rc2")
    assert accelerators.npus(tmp_path / "nowhere") is None


def test_nvidia_smi_with_and_without_compute_capability() -> None:
    new = ("name", "compute_cap", "driver_version", "memory.total")
    assert accelerators.nvidia_smi("Tesla T4, 7.5, 535.54.03, 15360\n", new) == (
        GpuFacts("Tesla T4", "7.5", "535.54.03", 15360 << 20),
    )
    old = ("name", "driver_version", "memory.total")
    assert accelerators.nvidia_smi("Tesla P4, 470.82.01, [N/A]\n", old) == (GpuFacts("Tesla P4", None, "470.82.01"),)


def test_device_nodes_tell_their_rights(tmp_path: Path) -> None:
    write(tmp_path, {"dev/nvidia0": "", "dev/nvidiactl": "", "dev/null": ""})
    (tmp_path / "dev/nvidia0").chmod(0o660)
    found = accelerators.devices(tmp_path)
    assert [one.path for one in found] == ["/dev/nvidia0", "/dev/nvidiactl"]
    assert (found[0].mode, found[0].usable) == ("-rw-rw----", True)
