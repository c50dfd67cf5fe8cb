"""Where two profiles differ."""

from __future__ import annotations

from dataclasses import replace

from sampan.spec.target import DiskFacts, GpuFacts, LibcFacts
from sampan.survey import known
from sampan.survey.diff import Difference, differences

KUNPENG = known.load("kylin-v10-sp3-kunpeng920")


def test_a_profile_does_not_differ_from_itself_under_another_name() -> None:
    assert differences(KUNPENG, replace(KUNPENG, name="x", sources=())) == ()


def test_scalars_lists_and_entries() -> None:
    other = replace(
        KUNPENG,
        page_size=4096,
        libc=LibcFacts(None, "3.4.24", "1.3.11"),
        cpu=replace(KUNPENG.cpu, features=(*(f for f in KUNPENG.cpu.features if f != "asimddp"), "i8mm")),
        disks=(DiskFacts("/", "/", "xfs", noexec=True),),
        gpus=(GpuFacts("Tesla P4"), GpuFacts("Tesla P4", driver="470")),
    )
    base = replace(KUNPENG, disks=(DiskFacts("/", "/", "xfs"),), gpus=(GpuFacts("Tesla P4"),))
    found = {one.fact: (one.a, one.b) for one in differences(base, other)}
    assert found == {
        "page_size": ("65536", "4096"),
        "libc.glibc": ("2.28", None),
        "cpu.features": ("asimddp", "i8mm"),
        "disks./.noexec": ("False", "True"),
        "gpus.Tesla P4#2.driver": (None, "470"),
    }


def test_the_sides_keep_their_places() -> None:
    other = replace(KUNPENG, systemd=219)
    assert differences(KUNPENG, other) == (Difference("systemd", "243", "219"),)
    assert differences(other, KUNPENG) == (Difference("systemd", "219", "243"),)
