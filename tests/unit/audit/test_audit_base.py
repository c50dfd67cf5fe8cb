"""Outside of a bundle: what a system has for sure, what it may have, and what it has not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sampan.audit import base, rules
from sampan.audit.audit import audit
from sampan.spec.target import LibcFacts, OsFacts, TargetProfile
from sampan.survey import known, script

Put = Callable[[str, bytes], Path]
Make = Callable[..., Any]
SURE: list[str] = []
UNSTATED, MISSING = ["closure.unstated"], ["closure.missing"]


def _codes(path: Path, profile: TargetProfile) -> list[str]:
    return [finding.code for finding in audit([path], profile).findings]


@pytest.mark.parametrize("target", known.names())
def test_no_known_profile_loses_the_libraries_of_every_install(target: str) -> None:
    profile = known.load(target)
    sure, perhaps = base.certain(profile, rules.load()), base.probable(profile)
    assert {"libc.so.6", "libdl.so.2", "libm.so.6", "libpthread.so.0"} <= sure
    assert {"libz.so.1", "libcrypt.so.1", "libstdc++.so.6", "libgcc_s.so.1", "libuuid.so.1"} <= sure | perhaps
    if profile.os.id != "linux":
        assert "libz.so.1" in sure


@pytest.mark.parametrize(
    ("target", "library", "expected"),
    [
        ("kylin-v10-phytium-d2000", "libz.so.1", SURE),
        ("kylin-v10-phytium-d2000", "libcrypt.so.1", SURE),
        ("openeuler-22.03", "libcrypt.so.1", UNSTATED),  # libxcrypt, perhaps without the old name
        ("centos-7-x86-64", "libcrypt.so.1", SURE),
        ("centos-7-x86-64", "libnsl.so.1", SURE),
        ("kylin-v10-phytium-d2000", "libnsl.so.1", UNSTATED),
        ("debian-10-aarch64", "libnsl.so.1", SURE),
        ("debian-10-aarch64", "liblzma.so.5", SURE),
        ("kylin-v10-phytium-d2000", "liblzma.so.5", UNSTATED),
        ("kylin-v10-phytium-d2000", "libuuid.so.1", UNSTATED),
        ("kylin-v10-phytium-d2000", "libgomp.so.1", [*UNSTATED, "tls.static"]),
        ("kylin-v11", "libgomp.so.1", UNSTATED),  # its glibc keeps room for static TLS
        ("kylin-v10-phytium-d2000", "libGL.so.1", MISSING),
        ("kylin-v10-phytium-d2000", "libopenblas.so.0", MISSING),
        ("kylin-v10-sp3-kunpeng920", "libssl.so.1.1", SURE),  # the profile states OpenSSL 1.1.1
        ("kylin-v10-sp3-kunpeng920", "libssl.so.3", MISSING),
        ("centos-7-x86-64", "libcrypto.so.10", SURE),
        ("generic-aarch64", "libssl.so.3", UNSTATED),
        ("generic-aarch64", "libstdc++.so.6", UNSTATED),
        ("generic-aarch64", "libz.so.1", UNSTATED),
        ("kylin-v10-phytium-d2000", "libmvec.so.1", MISSING),  # on arm64 glibc has it from 2.38 on
        ("kylin-v11", "libmvec.so.1", SURE),
        ("centos-7-x86-64", "libmvec.so.1", MISSING),  # 2.22
    ],
)
def test_each_library_is_there_or_not_or_not_known(
    put: Put, make: Make, target: str, library: str, expected: list[str]
) -> None:
    profile = known.load(target)
    machine = {"aarch64": 183, "x86_64": 62}[profile.arch]
    assert _codes(put("x.so", make(machine=machine, needed=[library]).build()), profile) == expected


def test_what_the_profile_states_is_sure(put: Put, make: Make, kylin: TargetProfile) -> None:
    path = put("x.so", make(needed=["libuuid.so.1", "libgomp.so.1"]).build())
    finding = audit([path], kylin).findings[0]
    assert dict(finding.values)["libraries"] == "libuuid.so.1, libgomp.so.1"
    surveyed = replace(kylin, libc=replace(kylin.libc, gomp="4.5"), libraries=("libuuid.so.1",))
    assert _codes(path, surveyed) == ["tls.static"]


def test_what_a_survey_did_not_find_is_missing(put: Put, make: Make, kylin: TargetProfile) -> None:
    path = put("x.so", make(needed=["libuuid.so.1", "libz.so.1", "libm.so.6", "libexpat.so.1"]).build())
    surveyed = replace(kylin, absent_libraries=("libuuid.so.1", "libz.so.1", "libm.so.6"))
    found = {finding.code: dict(finding.values)["libraries"] for finding in audit([path], surveyed).findings}
    assert found == {"closure.missing": "libuuid.so.1, libz.so.1", "closure.unstated": "libexpat.so.1"}


def test_a_survey_looks_for_each_library_that_is_not_sure_everywhere() -> None:
    known = base.load()
    names = known.usual.union(*(one.libraries for one in known.base), *known.openssl.values())
    assert names == set(script.libraries())


def test_the_targets_libgomp_wants_static_tls_when_it_is_loaded_late(
    put: Put, make: Make, kylin: TargetProfile
) -> None:
    path = put("x.so", make(needed=["libgomp.so.1"]).build())
    stated = replace(kylin, libc=replace(kylin.libc, gomp="4.5"))
    (finding,) = audit([path], stated).findings
    assert (finding.code, finding.severity) == ("tls.static", "warning")
    assert dict(finding.values) == {"size": "?", "proof": "kylin:libgomp.so.1", "glibc": "2.28"}
    assert _codes(path, replace(stated, libc=replace(stated.libc, glibc="2.34"))) == []
    program = put(
        "program", make(needed=["libgomp.so.1"], interpreter="/lib/ld-linux-aarch64.so.1", pie=True).build()
    )
    assert _codes(program, stated) == []


def test_a_carried_library_is_no_question(put: Put, make: Make, kylin: TargetProfile) -> None:
    put("s/libuuid.so.1", make(soname="libuuid.so.1").build())
    site = put("s/x.so", make(needed=["libuuid.so.1"], runpath="$ORIGIN").build()).parent
    assert _codes(site, kylin) == []


def test_versions_of_an_unstated_library_are_not_judged_but_said_to_be_unknown(
    put: Put, make: Make, kylin: TargetProfile
) -> None:
    needs = {"libstdc++.so.6": {"GLIBCXX_3.4.30": ["f"]}}
    path = put("x.so", make(needed=["libstdc++.so.6"], needs=needs).build())
    found = audit([path], replace(kylin, libc=LibcFacts(glibc="2.28"))).findings
    assert [(one.code, one.severity) for one in found] == [
        ("ceiling.unknown", "warning"),
        ("closure.unstated", "warning"),
    ]


def test_the_lib_token_is_the_systems_own(put: Put, make: Make, kylin: TargetProfile) -> None:
    put("s/lib64/liba.so", make(soname="liba.so").build())
    put("s/lib/aarch64-linux-gnu/libb.so", make(soname="libb.so").build())
    red = put("s/red.so", make(needed=["liba.so"], runpath="$ORIGIN/$LIB").build())
    debian = put("s/debian.so", make(needed=["libb.so"], runpath="$ORIGIN/$LIB").build())
    assert (_codes(red, kylin), _codes(debian, kylin)) == ([], ["closure.missing"])
    other = replace(kylin, os=OsFacts("debian", "Debian"))
    assert (_codes(red, other), _codes(debian, other)) == (["closure.missing"], [])


def test_older_loaders_look_into_subfolders_of_the_platforms_name(put: Put, make: Make, kylin: TargetProfile) -> None:
    put("s/aarch64/liba.so", make(soname="liba.so").build())
    path = put("s/x.so", make(needed=["liba.so"], runpath="$ORIGIN").build())
    assert _codes(path, kylin) == []
    assert _codes(path, replace(kylin, libc=replace(kylin.libc, glibc="2.37"))) == ["closure.missing"]
