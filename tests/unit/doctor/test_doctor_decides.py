"""One text, several causes: the profile that --target names decides, each way; without it all remain."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sampan import i18n
from sampan.doctor import diagnose, explain, facts, knowledge
from sampan.doctor.model import Finding
from sampan.spec.target import DiskFacts, GpuFacts, TargetProfile
from sampan.survey import known

KYLIN = known.load("kylin-v10-sp3-kunpeng920")
MAP = "x: /opt/b/lib/libfoo.so: failed to map segment from shared object: Operation not permitted\n"
EXEC = "bge.service: Failed at step EXEC spawning /opt/bge/sampan: {}\n"
IMAGE = "CUDA error: device kernel image is invalid\n"


def machine(
    *, noexec: bool | None = None, kysec: str = "absent", selinux: str = "absent", fapolicyd: str = "absent"
) -> TargetProfile:
    disks = () if noexec is None else tuple(DiskFacts(path, path, "xfs", noexec=noexec) for path in ("/opt", "/tmp"))
    security = replace(KYLIN.security, kysec=kysec, selinux=selinux, fapolicyd=fapolicyd)
    return replace(KYLIN, disks=disks, security=security)


def gpu(driver: str, capability: str) -> TargetProfile:
    return replace(KYLIN, gpus=(GpuFacts(name="a card", compute_capability=capability, driver=driver),))


def finding(text: str, profile: TargetProfile | None, code: str) -> Finding:
    told = facts.of_profile(profile, "profile") if profile else {}
    return next(one for one in diagnose.of_text(text, told).findings if one.code == code)


@pytest.mark.parametrize(
    ("text", "code", "profile", "cause", "fact"),
    [
        (MAP, "loader.map-refused", machine(noexec=True), "noexec-prefix", "noexec"),
        (MAP, "loader.map-refused", machine(noexec=False, kysec="warning"), "kysec", "kysec"),
        (MAP, "loader.map-refused", machine(noexec=False, fapolicyd="running"), "fapolicyd", "fapolicyd"),
        (EXEC.format("Permission denied"), "systemd.exec", machine(noexec=True), "noexec", "noexec_prefix"),
        (
            EXEC.format("Permission denied"),
            "systemd.exec",
            machine(noexec=False, selinux="enforcing"),
            "selinux",
            "selinux",
        ),
        (EXEC.format("Permission denied"), "systemd.exec", machine(noexec=False, kysec="on"), "kysec", "kysec"),
        (EXEC.format("No such file or directory"), "systemd.exec", machine(noexec=False), "missing", ""),
        (IMAGE, "cuda.image-invalid", gpu("535.104.05", "7.5"), "compressed", "driver"),
        (IMAGE, "cuda.image-invalid", gpu("560.35", "6.1"), "ptx", "driver"),
        (IMAGE, "cuda.image-invalid", gpu("575.51", "8.0"), "other", ""),
    ],
)
def test_the_profile_decides(text: str, code: str, profile: TargetProfile, cause: str, fact: str) -> None:
    found = finding(text, profile, code)
    assert cause in {one.name for one in found.causes}
    assert {one.name for one in found.causes} <= {cause, "noexec"}
    decided = " ".join(one.decided_by for one in found.causes)
    if fact:
        assert f"{fact} " in decided or f"{fact}_" in decided
        assert "(profile)" in decided


def test_commands_are_named_as_they_are_typed_on_the_target() -> None:
    text = "self-test: cosine 0.4512 of the reference, at least 0.99 is needed\n"
    case = knowledge.case("model.pooling")
    told = " ".join((*case.texts["en"].values(), case.prove))
    assert "sampan selftest" in told
    i18n.use_program("./sampan", ("selftest", "doctor"))
    try:
        (found,) = diagnose.of_text(text).findings
        page = explain.page(case)
    finally:
        i18n.use_program(i18n.PROGRAM, ())
    assert "./sampan selftest" in f"{found.prove} {found.cause} {found.fix}"
    assert "./sampan selftest" in page


@pytest.mark.parametrize(
    ("text", "code", "causes"),
    [
        (MAP, "loader.map-refused", {"noexec-prefix", "kysec", "fapolicyd"}),
        (EXEC.format("Permission denied"), "systemd.exec", {"noexec", "selinux", "kysec"}),
        (IMAGE, "cuda.image-invalid", {"compressed", "ptx"}),
    ],
)
def test_without_a_profile_all_causes_remain_each_with_its_proof(text: str, code: str, causes: set[str]) -> None:
    found = finding(text, None, code)
    assert causes <= {one.name for one in found.causes}
    assert not any(one.decided for one in found.causes)
    assert all(one.prove for one in found.causes)
    assert found.confidence != "sure"
