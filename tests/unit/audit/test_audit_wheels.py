"""Wheels: the promises of name, tag and RECORD against what is inside."""

from __future__ import annotations

import base64
import hashlib
import io
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sampan.audit.audit import audit
from sampan.audit.numbers import number
from sampan.audit.wheels import policies
from sampan.spec.artefacts import AuditReport, Finding
from sampan.spec.target import LibcFacts, TargetProfile

Put = Callable[[str, bytes], Path]
Make = Callable[..., Any]
NAME = "pkg-1.0-cp311-cp311-manylinux_2_28_aarch64.whl"
INFO = "pkg-1.0.dist-info"


def wheel(members: Mapping[str, bytes], *, record: Mapping[str, bytes] | None = None, extra: str = "") -> bytes:
    """A wheel of ``members``; RECORD speaks of ``record``, by default of the same."""
    described = {**(members if record is None else record)}
    lines = [f"{name},{_digest(content)},{len(content)}" for name, content in described.items()]
    text = "\n".join([*lines, f"{INFO}/RECORD,,", extra]).strip() + "\n"
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
        archive.writestr(f"{INFO}/RECORD", text)
    return stream.getvalue()


def _digest(content: bytes) -> str:
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")


def _codes(report: AuditReport) -> list[tuple[str, str]]:
    return [(finding.code, finding.severity) for finding in report.findings]


def _one(report: AuditReport, code: str) -> dict[str, str]:
    (finding,) = [finding for finding in report.findings if finding.code == code]
    return dict(finding.values)


def _needing(make: Make, **versions: Mapping[str, list[str]]) -> bytes:
    libraries = {"c": "libc.so.6", "m": "libm.so.6", "stdcxx": "libstdc++.so.6", "z": "libz.so.1"}
    needs = {libraries[short]: wanted for short, wanted in versions.items()}
    data: bytes = make(soname="x.so", needed=list(needs), needs=needs).build()
    return data


def test_a_wheel_that_keeps_its_promises_has_no_finding(put: Put, make: Make, kylin: TargetProfile) -> None:
    members = {
        "pkg/x.so": _needing(make, c={"GLIBC_2.28": ["fcntl64"]}, stdcxx={"GLIBCXX_3.4.24": ["a"]}),
        "pkg-1.0.data/scripts/tool": b"#!python\nprint()\n",
        "pkg-1.0.data/scripts/other": b"#!/usr/bin/env bash\n",
        f"{INFO}/WHEEL": b"Wheel-Version: 1.0\n",
    }
    assert audit([put(NAME, wheel(members))], kylin).findings == ()


@pytest.mark.parametrize(
    ("tag", "versions", "real", "reason"),
    [
        ("manylinux2014_aarch64", {"m": {"GLIBC_2.29": ["pow", "exp"]}}, "2_29", "pow@GLIBC_2.29 (pkg/x.so)"),
        ("manylinux_2_17_aarch64", {"c": {"GLIBC_2.17": ["a"], "GLIBC_2.28": ["b"]}}, "2_28", "b@GLIBC_2.28"),
        ("manylinux_2_24_aarch64", {"stdcxx": {"GLIBCXX_3.4.29": ["s"]}}, "2_34", "s@GLIBCXX_3.4.29"),
        ("manylinux_2_28_aarch64", {"stdcxx": {"GLIBCXX_3.4.25": ["s"]}}, "2_31", "s@GLIBCXX_3.4.25"),
        ("manylinux_2_28_aarch64", {"stdcxx": {"CXXABI_1.3.13": ["s"]}}, "2_34", "s@CXXABI_1.3.13"),
        ("manylinux_2_28_aarch64", {"c": {"GLIBC_ABI_DT_RELR": []}}, "2_36", "GLIBC_ABI_DT_RELR"),
        ("manylinux_2_28_aarch64", {"z": {"ZLIB_1.2.12": ["z"]}}, "2_38", "z@ZLIB_1.2.12"),
        ("manylinux_2_28_aarch64", {"c": {"GLIBC_2.99": ["z"]}}, "2_99", "z@GLIBC_2.99"),
    ],
)
def test_a_tag_that_is_too_low_names_the_real_one_and_why(  # noqa: PLR0917
    put: Put,
    make: Make,
    kylin: TargetProfile,
    tag: str,
    versions: dict[str, dict[str, list[str]]],
    real: str,
    reason: str,
) -> None:
    path = put(f"pkg-1.0-cp311-cp311-{tag}.whl", wheel({"pkg/x.so": _needing(make, **versions)}))
    said = _one(audit([path], kylin), "wheel.tag")
    assert (said["kind"], said["tag"], said["real"]) == ("too-low", tag, f"manylinux_{real}_aarch64")
    assert said["reason"].startswith(reason)


@pytest.mark.parametrize(
    ("tag", "versions"),
    [
        ("manylinux2014_aarch64", {"c": {"GLIBC_2.18": ["a"]}}),  # the exception that the images make necessary
        ("manylinux2014_aarch64.manylinux_2_17_aarch64", {"c": {"GLIBC_2.17": ["a"]}}),
        ("manylinux_2_33_aarch64", {"c": {"GLIBC_2.33": ["a"]}}),  # a policy without a table of its own
        ("manylinux_2_17_aarch64", {"stdcxx": {"CXXABI_TM_1": ["a"], "GLIBCXX_3.4.19": ["b"]}}),
    ],
)
def test_tags_that_hold(
    put: Put, make: Make, kylin: TargetProfile, tag: str, versions: dict[str, dict[str, list[str]]]
) -> None:
    newest = replace(kylin, libc=LibcFacts("2.39", "3.4.33", "1.3.15"))
    path = put(f"pkg-1.0-cp311-cp311-{tag}.whl", wheel({"pkg/x.so": _needing(make, **versions)}))
    assert audit([path], newest).findings == ()


def test_2_18_is_too_new_for_the_same_tag_on_x86(put: Put, make: Make, kylin: TargetProfile) -> None:
    elf = make(machine=62, segments=[(4096, 0)], needed=["libc.so.6"], needs={"libc.so.6": {"GLIBC_2.18": ["a"]}})
    path = put("pkg-1.0-cp311-cp311-manylinux2014_x86_64.whl", wheel({"x.so": elf.build()}))
    report = audit([path], replace(kylin, arch="x86_64", page_size=4096))
    assert _codes(report) == [("wheel.tag", "warning")]


def test_a_library_of_the_system_that_no_policy_allows(put: Put, make: Make, kylin: TargetProfile) -> None:
    path = put(NAME, wheel({"x.so": make(soname="x.so", needed=["libgomp.so.1"]).build()}))
    assert _one(audit([path], kylin), "wheel.tag")["real"] == "linux_aarch64"
    both = wheel(
        {
            "x.so": make(soname="x.so", needed=["libgomp-1.so"], runpath="$ORIGIN/pkg.libs").build(),
            "pkg.libs/libgomp-1.so": make(soname="libgomp-1.so").build(),
        }
    )
    assert audit([put(NAME, both)], kylin).findings == ()


@pytest.mark.parametrize(
    ("tag", "kind", "severity"),
    [
        ("linux_aarch64", "none", "warning"),
        ("any", "any", "warning"),
        ("manylinux1_aarch64", "impossible", "error"),
        ("manylinux2010_aarch64", "impossible", "error"),
        ("manylinux_2_12_aarch64", "impossible", "error"),
        ("manylinux2035_aarch64", "impossible", "error"),
    ],
)
def test_tags_that_promise_nothing_or_the_impossible(  # noqa: PLR0917
    put: Put, make: Make, kylin: TargetProfile, tag: str, kind: str, severity: str
) -> None:
    report = audit([put(f"pkg-1.0-cp311-cp311-{tag}.whl", wheel({"x.so": make(soname="x.so").build()}))], kylin)
    assert _codes(report) == [("wheel.tag", severity)]
    assert _one(report, "wheel.tag")["kind"] == kind


def test_a_pure_wheel_has_no_finding(put: Put, kylin: TargetProfile) -> None:
    assert audit([put("pkg-1.0-py3-none-any.whl", wheel({"pkg/a.py": b"x = 1\n"}))], kylin).findings == ()


def test_a_musl_wheel_is_an_error(put: Put, make: Make, kylin: TargetProfile) -> None:
    elf = make(soname="x.so", needed=["libc.musl-aarch64.so.1"]).build()
    report = audit([put("pkg-1.0-cp311-cp311-musllinux_1_2_aarch64.whl", wheel({"x.so": elf}))], kylin)
    assert ("wheel.musl", "error") in _codes(report)


def test_files_for_another_machine_than_the_name_says(put: Put, make: Make, kylin: TargetProfile) -> None:
    members = {"a.so": make(soname="a.so").build(), "pkg/b.so": make(soname="b.so", machine=62).build()}
    report = audit([put(NAME, wheel(members))], kylin)
    assert ("wheel.machine", "error") in _codes(report)
    assert _one(report, "wheel.machine")["names"] == "pkg/b.so"
    assert ("arch.machine", "error") in _codes(report)


RECORDS: dict[str, tuple[Any, str, str, str]] = {
    "changed": (lambda: wheel({"a.py": b"b"}, record={"a.py": b"a"}), "error", "changed", "a.py"),
    "missing": (lambda: wheel({"a.py": b"a"}, record={"a.py": b"a", "b.py": b"b"}), "error", "missing", "b.py"),
    "extra": (lambda: wheel({"a.py": b"a", "b.py": b"b"}, record={"a.py": b"a"}), "warning", "extra", "b.py"),
    "unhashed": (lambda: wheel({"a.py": b"a"}, record={}, extra="a.py,,"), "warning", "unhashed", "a.py"),
}


@pytest.mark.parametrize("case", RECORDS)
def test_record_against_the_contents(put: Put, kylin: TargetProfile, case: str) -> None:
    content, severity, kind, names = RECORDS[case]
    report = audit([put("pkg-1.0-py3-none-any.whl", content())], kylin)
    assert _codes(report) == [("wheel.record", severity)]
    said = _one(report, "wheel.record")
    assert (said["kind"], said["names"]) == (kind, names)


def test_signatures_of_record_need_no_hash(put: Put, kylin: TargetProfile) -> None:
    members = {"a.py": b"a", f"{INFO}/RECORD.jws": b"signed"}
    path = put("pkg-1.0-py3-none-any.whl", wheel(members, record={"a.py": b"a"}))
    assert audit([path], kylin).findings == ()


@pytest.mark.parametrize("record", [None, b"\xff\xfe", b'"' * 200_000])
def test_a_wheel_without_a_readable_record(put: Put, kylin: TargetProfile, record: bytes | None) -> None:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("a.py", b"a")
        if record is not None:
            archive.writestr(f"{INFO}/RECORD", record)
    report = audit([put("pkg-1.0-py3-none-any.whl", stream.getvalue())], kylin)
    assert _codes(report)[0] == ("wheel.record", "error")


@pytest.mark.parametrize(
    ("line", "foul"),
    [
        (b"#!/opt/hostedtoolcache/Python/3.11/bin/python3", True),
        (b"#!/usr/bin/python3.8", True),
        (b"#!python", False),
        (b"#! /bin/sh -e", False),
        (b"#!/usr/bin/env python3", False),
        (b"\x7fELFxxxx", False),
        (b"", False),
    ],
)
def test_scripts_with_an_interpreter_of_elsewhere(put: Put, kylin: TargetProfile, line: bytes, foul: bool) -> None:
    path = put("pkg-1.0-py3-none-any.whl", wheel({"pkg-1.0.data/scripts/tool": line + b"\nrest\n"}))
    found: list[Finding] = [f for f in audit([path], kylin).findings if f.code == "wheel.shebang"]
    assert [(each.severity, each.path) for each in found] == (
        [("warning", f"{path}!pkg-1.0.data/scripts/tool")] if foul else []
    )


@pytest.mark.parametrize(
    ("tags", "fits"),
    [
        ("cp311-cp311-any", True),
        ("cp38-abi3-any", True),
        ("py2.py3-none-any", True),
        ("py39-none-any", True),
        ("cp38-cp38-any", False),
        ("cp312-abi3-any", False),
        ("pp310-pypy310_pp73-any", False),
    ],
)
def test_the_python_tag_against_the_private_python(put: Put, kylin: TargetProfile, tags: str, fits: bool) -> None:
    report = audit([put(f"pkg-1.0-{tags}.whl", wheel({"a.py": b""}))], kylin)
    assert _codes(report) == ([] if fits else [("wheel.python", "info")])


def test_wheels_given_together_are_one_folder_of_packages(put: Put, make: Make, kylin: TargetProfile) -> None:
    user = make(soname="x.so", needed=["libdep.so"], runpath="$ORIGIN/../dep/lib").build()
    one = put(NAME, wheel({"pkg/x.so": user}))
    two = put(
        "dep-1.0-py3-none-manylinux_2_28_aarch64.whl", wheel({"dep/lib/libdep.so": make(soname="libdep.so").build()})
    )
    assert "closure.missing" in dict(_codes(audit([one], kylin)))
    assert "closure.missing" not in dict(_codes(audit([one, two], kylin)))


def test_the_private_runtime_can_serve_instead_of_the_target(put: Put, make: Make, kylin: TargetProfile) -> None:
    libc = make(soname="libc.so.6", provides=["GLIBC_2.17", "GLIBC_2.36"]).build()
    runtime = put("rt/lib/sys/libc.so.6", libc).parents[2]
    elf = make(soname="x.so", needed=["libc.so.6"], needs={"libc.so.6": {"GLIBC_2.36": []}}).build()
    path = put("pkg-1.0-cp311-cp311-manylinux_2_36_aarch64.whl", wheel({"pkg/x.so": elf}))
    assert _codes(audit([path], kylin)) == [("glibc.ceiling", "error")]
    assert audit([path], kylin, runtime=runtime).findings == ()


def test_a_name_that_is_no_wheels_is_still_read(put: Put, make: Make, kylin: TargetProfile) -> None:
    report = audit([put("renamed.whl", wheel({"x.so": make(machine=62).build()}))], kylin)
    assert [finding.code for finding in report.findings] == ["arch.machine"]


def test_every_policy_of_the_data_grows() -> None:
    known = policies.load().versions
    assert list(known) == sorted(known)
    for arch in ("x86_64", "aarch64", "riscv64", "loongarch64"):
        tables = [policies.ceilings(policy, arch) for policy in known]
        for family in ("GLIBC", "GLIBCXX", "CXXABI"):
            heights = [number(table[family]) for table in tables]
            assert heights == sorted(heights), (arch, family)
