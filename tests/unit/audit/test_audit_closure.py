"""The loader's search, simulated: who serves whom in a bundle, in a wheel, on the bare target."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sampan.audit.audit import audit
from sampan.spec.artefacts import AuditReport
from sampan.spec.target import TargetProfile

Put = Callable[[str, bytes], Path]
Make = Callable[..., Any]
LOADER = "/lib/ld-linux-aarch64.so.1"
C = {"needed": ["libc.so.6"], "needs": {"libc.so.6": {"GLIBC_2.36": ["x"]}}}


def _codes(report: AuditReport) -> list[tuple[str, str]]:
    return [(finding.code, finding.path) for finding in report.findings]


def _value(report: AuditReport, name: str) -> str:
    return dict(report.findings[0].values)[name]


@pytest.fixture
def bundle(put: Put, make: Make) -> Path:
    """A bundle with a private runtime of glibc 2.36, a static launcher and a static engine."""
    put("b-1/plan.json", b"{}")
    put("b-1/sampan", make(kind=2, dynamic=False).build())
    put("b-1/engine/llama.cpp/armv8.0/llama-server", make(kind=2, dynamic=False).build())
    libc = make(
        soname="libc.so.6",
        interpreter=LOADER,
        provides=["GLIBC_2.17", "GLIBC_2.36"],
        exports={"a": "GLIBC_2.17", "x": "GLIBC_2.36"},
        needed=["ld-linux-aarch64.so.1"],
    )
    put("b-1/runtime/lib/sys/libc.so.6", libc.build())
    put("b-1/runtime/lib/sys/ld.so", make(soname="ld-linux-aarch64.so.1").build())
    put("b-1/runtime/libexec/python3.11", make(kind=2, interpreter=LOADER, **C).build())
    return put("b-1/README.txt", b"hello").parent


def test_a_bundle_is_served_by_its_own_runtime_whatever_the_target_has(bundle: Path, kylin: TargetProfile) -> None:
    report = audit([bundle], kylin)
    assert report.findings == ()
    assert (report.subject, report.files, report.elf_files) == ("b-1", 7, 5)


def test_the_same_file_alone_does_not_run_on_the_target(put: Put, make: Make, kylin: TargetProfile) -> None:
    assert [code for code, _ in _codes(audit([put("python", make(**C).build())], kylin))] == ["glibc.ceiling"]


def test_a_file_inside_a_bundle_finds_its_bundle(bundle: Path, kylin: TargetProfile) -> None:
    report = audit([bundle / "runtime/libexec/python3.11"], kylin)
    assert report.findings == ()
    assert (report.files, report.elf_files) == (1, 1)


def test_a_bundle_can_be_handed_for_files_elsewhere(bundle: Path, put: Put, make: Make, kylin: TargetProfile) -> None:
    path = put("elsewhere/x.so", make(**C).build())
    assert audit([path], kylin).errors == 1
    assert audit([path], kylin, bundle=bundle).findings == ()


def test_a_bundle_needs_nothing_of_the_target_not_even_its_glibc(
    bundle: Path, put: Put, make: Make, kylin: TargetProfile
) -> None:
    put("b-1/app/x.so", make(needed=["libc.so.6", "libresolv.so.2"]).build())
    report = audit([bundle], kylin)
    assert _codes(report) == [("closure.missing", "app/x.so")]
    assert _value(report, "libraries") == "libresolv.so.2"
    assert _value(report, "searched") == "runtime/lib/sys"


def test_a_version_that_the_bundled_library_lacks(bundle: Path, put: Put, make: Make, kylin: TargetProfile) -> None:
    elf = make(needed=["libc.so.6"], needs={"libc.so.6": {"GLIBC_2.17": ["a"], "GLIBC_2.38": ["strlcpy"]}})
    put("b-1/app/x.so", elf.build())
    report = audit([bundle], kylin)
    assert _codes(report) == [("glibc.ceiling", "app/x.so")]
    assert (_value(report, "server"), _value(report, "have")) == ("runtime/lib/sys/libc.so.6", "GLIBC_2.36")
    assert _value(report, "symbols") == "strlcpy@GLIBC_2.38"


def test_a_version_of_another_family_is_named_too(bundle: Path, put: Put, make: Make, kylin: TargetProfile) -> None:
    put("b-1/runtime/lib/sys/libssl.so.3", make(soname="libssl.so.3", provides=["OPENSSL_3.0.0"]).build())
    put("b-1/app/x.so", make(needed=["libssl.so.3"], needs={"libssl.so.3": {"OPENSSL_3.2.0": ["f"]}}).build())
    report = audit([bundle], kylin)
    assert _codes(report) == [("closure.version", "app/x.so")]
    assert _value(report, "have") == "OPENSSL_3.0.0"


def test_a_program_that_the_target_would_start_leaves_the_bundle(
    bundle: Path, put: Put, make: Make, kylin: TargetProfile
) -> None:
    put("b-1/app/bin/tool", make(kind=2, interpreter=LOADER, needed=["libc.so.6"]).build())
    report = audit([bundle], kylin)
    assert _codes(report) == [("outside.bundle", "app/bin/tool")]
    assert report.errors == 1


def test_the_private_loader_must_be_there(bundle: Path, kylin: TargetProfile) -> None:
    (bundle / "runtime/lib/sys/ld.so").unlink()
    report = audit([bundle], kylin)
    assert _codes(report) == [
        ("closure.missing", "runtime/lib/sys/libc.so.6"),
        ("loader.interpreter", "runtime/libexec/python3.11"),
    ]
    assert dict(report.findings[1].values)["expected"] == "runtime/lib/sys/ld.so"


def test_the_private_loader_must_be_the_programs_own(
    bundle: Path, put: Put, make: Make, kylin: TargetProfile
) -> None:
    put("b-1/runtime/lib/sys/ld.so", make(soname="ld-linux-armhf.so.3").build())
    assert ("loader.interpreter", "runtime/libexec/python3.11") in _codes(audit([bundle], kylin))


@pytest.mark.parametrize("entry", ["/usr/local/lib", "/build/lib", "$ORIGIN/../../.."])
def test_a_search_path_out_of_the_bundle_is_a_warning(
    bundle: Path, put: Put, make: Make, kylin: TargetProfile, entry: str
) -> None:
    put("b-1/app/x.so", make(runpath=f"$ORIGIN:{entry}").build())
    report = audit([bundle], kylin)
    assert [(f.code, f.severity) for f in report.findings] == [("outside.bundle", "warning")]
    assert _value(report, "outside") == entry


def test_a_needed_path_is_an_error(bundle: Path, put: Put, make: Make, kylin: TargetProfile) -> None:
    put("b-1/app/x.so", make(needed=["/usr/lib/libcuda.so.1"]).build())
    report = audit([bundle], kylin)
    assert _codes(report) == [("outside.bundle", "app/x.so")]
    assert report.errors == 1


@pytest.mark.parametrize("tag", ["rpath", "runpath"])
@pytest.mark.parametrize("entry", ["$ORIGIN/../pkg.libs", "${ORIGIN}/../pkg.libs", "/no/such:$ORIGIN/../pkg.libs"])
def test_vendored_libraries_are_found_beside_the_package(
    put: Put, make: Make, kylin: TargetProfile, tag: str, entry: str
) -> None:
    put("site/pkg.libs/libv-1234.so", make(soname="libv-1234.so", provides=["V_1"], exports={"f": "V_1"}).build())
    elf = make(needed=["libv-1234.so"], needs={"libv-1234.so": {"V_1": ["f"]}}, **{tag: entry})
    extension = put("site/pkg/x.so", elf.build())
    expected = ["path.absolute"] if entry.startswith("/") else []
    assert [code for code, _ in _codes(audit([extension], kylin))] == expected  # read although not given
    assert [code for code, _ in _codes(audit([extension.parents[1]], kylin))] == expected


def test_rpath_is_inherited_and_runpath_is_not(put: Put, make: Make, kylin: TargetProfile) -> None:
    put("s/libs/liba.so", make(soname="liba.so", needed=["libb.so"]).build())
    put("s/libs/libb.so", make(soname="libb.so").build())
    site = put("s/pkg/x.so", make(needed=["liba.so"], rpath="$ORIGIN/../libs").build()).parents[1]
    assert audit([site], kylin).findings == ()
    put("s/pkg/x.so", make(needed=["liba.so"], runpath="$ORIGIN/../libs").build())
    assert _codes(audit([site], kylin)) == [("closure.missing", f"{site}/libs/liba.so")]


def test_a_runpath_switches_the_inherited_rpath_off(put: Put, make: Make, kylin: TargetProfile) -> None:
    put("s/libs/liba.so", make(soname="liba.so", needed=["libb.so"], runpath="$ORIGIN/none").build())
    put("s/libs/libb.so", make(soname="libb.so").build())
    site = put("s/pkg/x.so", make(needed=["liba.so"], rpath="$ORIGIN/../libs").build()).parents[1]
    assert _codes(audit([site], kylin)) == [("closure.missing", f"{site}/libs/liba.so")]


def test_a_library_loaded_under_its_soname_serves_later_requests(put: Put, make: Make, kylin: TargetProfile) -> None:
    put("s/libreal.so.1.2", make(soname="libreal.so.1").build())
    put("s/liba.so", make(soname="liba.so", needed=["libreal.so.1"], runpath="$ORIGIN/nowhere").build())
    elf = make(needed=["libreal.so.1.2", "liba.so"], runpath="$ORIGIN")
    assert audit([put("s/x.so", elf.build()).parent], kylin).findings == ()


def test_links_are_followed_within_what_was_given(put: Put, make: Make, kylin: TargetProfile) -> None:
    site = put("s/libv.so.1.2.3", make(soname="libv.so.1").build()).parent
    (site / "libv.so.1").symlink_to("libv.so.1.2.3")
    put("s/x.so", make(needed=["libv.so.1"], runpath="$ORIGIN").build())
    report = audit([site], kylin)
    assert report.findings == ()
    assert report.elf_files == 2


def test_a_library_of_another_architecture_is_passed_over(put: Put, make: Make, kylin: TargetProfile) -> None:
    put("s/one/libv.so", make(machine=62, soname="libv.so").build())
    put("s/two/libv.so", make(soname="libv.so").build())
    path = put("s/x.so", make(needed=["libv.so"], runpath="$ORIGIN/one:$ORIGIN/two").build())
    assert audit([path], kylin).findings == ()
    (path.parent / "two/libv.so").unlink()
    assert [code for code, _ in _codes(audit([path], kylin))] == ["closure.missing"]


def test_libraries_of_this_machine_are_never_the_targets(put: Put, make: Make, kylin: TargetProfile) -> None:
    here = os.path.realpath(put("host/libv.so", make(soname="libv.so").build()).parent)
    path = put("s/x.so", make(needed=["libv.so"], runpath=here).build())
    assert [code for code, _ in _codes(audit([path], kylin))] == ["closure.missing", "path.absolute"]


def test_two_libraries_that_need_one_another_are_no_loop(put: Put, make: Make, kylin: TargetProfile) -> None:
    put("s/liba.so", make(soname="liba.so", needed=["libb.so", "libx.so.1"], runpath="$ORIGIN").build())
    site = put("s/libb.so", make(soname="libb.so", needed=["liba.so"], runpath="$ORIGIN").build()).parent
    assert _codes(audit([site], kylin)) == [("closure.missing", f"{site}/liba.so")]


def test_folders_that_link_to_themselves_are_no_loop(put: Put, make: Make, kylin: TargetProfile) -> None:
    site = put("s/x.so", make().build()).parent
    (site / "loop").symlink_to(site)
    (site / "self").symlink_to("self")
    assert audit([site], kylin).elf_files == 1


def test_a_damaged_library_serves_nobody(put: Put, make: Make, kylin: TargetProfile) -> None:
    site = put("s/libv.so", make(soname="libv.so").build()[:100]).parent
    put("s/x.so", make(needed=["libv.so"], runpath="$ORIGIN").build())
    report = audit([site], kylin)
    assert sorted(_codes(report)) == [("closure.missing", f"{site}/x.so"), ("elf.damaged", f"{site}/libv.so")]


def test_other_pages_matter_inside_a_bundle_too(bundle: Path, put: Put, make: Make, kylin: TargetProfile) -> None:
    put("b-1/app/x.so", make(segments=[(4096, 0)]).build())
    assert _codes(audit([bundle], kylin)) == [("page.alignment", "app/x.so")]
    assert audit([bundle], replace(kylin, page_size=4096)).findings == ()
