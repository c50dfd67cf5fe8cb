"""Symbols over the whole load scope, rivals of one name, the target's libraries beside carried ones, plug-ins."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sampan.audit.audit import audit
from sampan.spec.artefacts import AuditReport
from sampan.spec.target import CpuFacts, LibcFacts, OsFacts, TargetProfile

Put = Callable[[str, bytes], Path]
Make = Callable[..., Any]
LOADER = "/lib/ld-linux-aarch64.so.1"


def _found(report: AuditReport) -> list[tuple[str, str, str]]:
    return [(finding.code, finding.severity, finding.path) for finding in report.findings]


def _value(report: AuditReport, name: str) -> str:
    return dict(report.findings[0].values)[name]


@pytest.fixture
def bundle(put: Put, make: Make) -> Path:
    """A private runtime whose Python gives ``PyInit`` and whose libc gives ``puts``."""
    libc = make(soname="libc.so.6", provides=["GLIBC_2.36"], exports={"puts": "GLIBC_2.36", "old": "GLIBC_2.36"})
    put("b-1/plan.json", b"{}")
    put("b-1/runtime/lib/sys/libc.so.6", libc.build())
    put("b-1/runtime/lib/sys/ld.so", make(soname="ld-linux-aarch64.so.1", exports={"__tls_get_addr": ""}).build())
    python = make(
        kind=2,
        interpreter=LOADER,
        needed=["libc.so.6"],
        needs={"libc.so.6": {"GLIBC_2.36": ["puts"]}},
        exports={"PyInit": "", "PyLong": ""},
    )
    return put("b-1/runtime/libexec/python3.11", python.build()).parents[2]


def _module(make: Make, *undefined: str, **more: Any) -> bytes:
    data: bytes = make(undefined=undefined, **more).build()
    return data


def test_a_module_sees_pythons_symbols_the_loaders_and_those_of_pythons_libraries(
    bundle: Path, put: Put, make: Make, kylin: TargetProfile
) -> None:
    put("b-1/app/m.so", _module(make, "PyInit", "puts", "__tls_get_addr"))
    assert audit([bundle], kylin).findings == ()


def test_a_symbol_that_nobody_gives_is_named(bundle: Path, put: Put, make: Make, kylin: TargetProfile) -> None:
    put("b-1/app/m.so", _module(make, "PyInit", "PyGone", "cblas_dgemm"))
    report = audit([bundle], kylin)
    assert _found(report) == [("closure.symbols", "error", "app/m.so")]
    assert (_value(report, "symbols"), _value(report, "count")) == ("PyGone, cblas_dgemm", "2")


def test_a_module_elsewhere_is_judged_in_the_bundles_python(
    bundle: Path, put: Put, make: Make, kylin: TargetProfile
) -> None:
    path = put("elsewhere/m.so", _module(make, "PyInit", "PyGone"))
    assert _value(audit([path], kylin, bundle=bundle), "symbols") == "PyGone"
    assert _value(audit([put("b-1/app/m.so", path.read_bytes())], kylin), "symbols") == "PyGone"
    (bundle / "runtime/libexec/python3.11").unlink()
    assert audit([path], kylin, bundle=bundle).findings == ()  # whose symbols it would see is not known


def test_a_library_of_the_module_gives_it_symbols(bundle: Path, put: Put, make: Make, kylin: TargetProfile) -> None:
    put("b-1/app/libs/libblas.so", make(soname="libblas.so", exports={"cblas_dgemm": ""}).build())
    module = _module(make, "cblas_dgemm", needed=["libblas.so"], runpath="$ORIGIN/libs")
    put("b-1/app/m.so", module)
    assert audit([bundle], kylin).findings == ()
    put("b-1/app/other.so", _module(make, "cblas_dgemm"))  # which does not load it
    assert _found(audit([bundle], kylin)) == [("closure.symbols", "error", "app/other.so")]


def test_a_program_does_not_see_pythons_symbols(bundle: Path, put: Put, make: Make, kylin: TargetProfile) -> None:
    put("b-1/engine/tool", make(kind=2, undefined=["PyInit"]).build())
    assert _found(audit([bundle], kylin)) == [("closure.symbols", "error", "engine/tool")]


def test_a_library_that_leans_on_its_loader_is_judged_in_its_company(
    bundle: Path, put: Put, make: Make, kylin: TargetProfile
) -> None:
    put("b-1/app/libleaf.so", _module(make, "helper", soname="libleaf.so"))
    put("b-1/app/m.so", make(needed=["libleaf.so"], runpath="$ORIGIN", exports={"helper": ""}).build())
    assert audit([bundle], kylin).findings == ()


def test_the_version_is_there_but_the_symbol_is_not(bundle: Path, put: Put, make: Make, kylin: TargetProfile) -> None:
    needs = {"libc.so.6": {"GLIBC_2.36": ["puts", "arc4random"]}}
    put("b-1/app/m.so", make(needed=["libc.so.6"], needs=needs).build())
    report = audit([bundle], kylin)
    assert _found(report) == [("closure.symbols", "error", "app/m.so")]
    assert _value(report, "symbols") == "arc4random@GLIBC_2.36 (libc.so.6)"


def test_carried_libraries_are_judged_on_the_bare_target_too(put: Put, make: Make, kylin: TargetProfile) -> None:
    put("s/libv.so.1", make(soname="libv.so.1", provides=["V_1"], exports={"f": "V_1"}).build())
    needs = {"libv.so.1": {"V_1": ["f", "g"]}, "libc.so.6": {"GLIBC_2.17": ["puts"]}}
    elf = make(needed=["libv.so.1", "libc.so.6"], needs=needs, undefined=["PyInit"], runpath="$ORIGIN")
    report = audit([put("s/x.so", elf.build())], kylin)
    assert [finding.code for finding in report.findings] == ["closure.symbols"]
    assert _value(report, "symbols") == "g@V_1 (libv.so.1)"  # PyInit may be of the target's Python: not judged


def test_a_definition_without_a_version_serves_every_wish(put: Put, make: Make, kylin: TargetProfile) -> None:
    put("s/libv.so.1", make(soname="libv.so.1", provides=["V_1"], exports={"f": ""}).build())
    elf = make(needed=["libv.so.1"], needs={"libv.so.1": {"V_1": ["f"]}}, runpath="$ORIGIN")
    assert audit([put("s/x.so", elf.build())], kylin).findings == ()


def test_two_libraries_of_one_name_in_one_python(bundle: Path, put: Put, make: Make, kylin: TargetProfile) -> None:
    for package, extra in (("a", b""), ("b", b"")):
        put(f"b-1/app/{package}/libv.so", make(soname="libv.so", data=extra).build())
        put(f"b-1/app/{package}/m.so", _module(make, "PyInit", needed=["libv.so"], runpath="$ORIGIN"))
    assert audit([bundle], kylin).findings == ()  # the same bytes
    put("b-1/app/b/libv.so", make(soname="libv.so", data=b"another build").build())
    report = audit([bundle], kylin)
    assert _found(report) == [
        ("closure.duplicate", "warning", "app/a/m.so"),
        ("closure.duplicate", "warning", "app/b/m.so"),
    ]
    assert (_value(report, "own"), _value(report, "other")) == ("app/a/libv.so", "app/b/libv.so")


CXX = {"needed": ["libstdc++.so.6"], "needs": {"libstdc++.so.6": {"GLIBCXX_3.4.30": ["f"]}}}


def _libstdcxx(make: Make) -> bytes:
    data: bytes = make(
        soname="libstdc++.so.6", provides=["GLIBCXX_3.4.24", "GLIBCXX_3.4.30"], exports={"f": "GLIBCXX_3.4.30"}
    ).build()
    return data


def test_a_carried_libstdcxx_competes_with_the_targets(put: Put, make: Make, kylin: TargetProfile) -> None:
    put("s/lib/libstdc++.so.6", _libstdcxx(make))
    path = put("s/x.so", make(**CXX, runpath="$ORIGIN/lib").build())
    report = audit([path], kylin)
    assert _found(report) == [("closure.contested", "warning", str(path))]
    assert _value(report, "highest") == "GLIBCXX_3.4.30"
    program = put("s/p", make(**CXX, kind=2, interpreter=LOADER, runpath="$ORIGIN/lib").build())
    assert audit([program], kylin).findings == ()  # it starts with its own


def test_a_carried_libstdcxx_that_is_new_to_nobody_competes_without_harm(
    put: Put, make: Make, kylin: TargetProfile
) -> None:
    put("s/lib/libstdc++.so.6", _libstdcxx(make))
    elf = make(needed=["libstdc++.so.6"], needs={"libstdc++.so.6": {"GLIBCXX_3.4.24": []}}, runpath="$ORIGIN/lib")
    assert audit([put("s/x.so", elf.build())], kylin).findings == ()


def test_a_carried_libstdcxx_out_of_reach_leaves_the_targets(put: Put, make: Make, kylin: TargetProfile) -> None:
    put("s/lib/libstdc++.so.6", _libstdcxx(make))
    site = put("s/x.so", make(**CXX).build()).parent
    assert _found(audit([site], kylin)) == [
        ("glibcxx.ceiling", "error", f"{site}/x.so"),
        ("closure.unreached", "info", f"{site}/x.so"),
    ]


def test_a_python_beside_the_modules_hands_down_its_rpath(put: Put, make: Make, kylin: TargetProfile) -> None:
    """As in a conda environment: modules without a search path find its lib folder."""
    put("env/lib/libstdc++.so.6", _libstdcxx(make))
    put("env/bin/python3.11", make(kind=2, interpreter=LOADER, rpath="$ORIGIN/../lib").build())
    site = put("env/lib/python3.11/site-packages/x.so", make(**CXX).build()).parents[3]
    assert [finding.code for finding in audit([site], kylin).findings] == ["closure.contested"]
    put("env/bin/python3.11", make(kind=2, interpreter=LOADER).build())
    assert "glibcxx.ceiling" in [finding.code for finding in audit([site], kylin).findings]


def test_files_that_a_text_names_are_listed_as_opened_later(put: Put, make: Make, kylin: TargetProfile) -> None:
    put("s/libprovider_x.so", make(soname="libprovider_x.so").build())
    put("s/libneeded.so", make(soname="libneeded.so").build())
    texts = b"\0libprovider_x.so\0libneeded.so\0libabsent.so\0%s/libdata.so.bak\0"
    site = put("s/libx.so", make(needed=["libneeded.so"], runpath="$ORIGIN", data=texts).build()).parent
    report = audit([site], kylin)
    assert _found(report) == [("closure.dlopen", "info", f"{site}/libx.so")]
    assert _value(report, "libraries") == "libprovider_x.so"


def test_backends_whose_names_are_composed_are_listed(put: Put, make: Make, kylin: TargetProfile) -> None:
    for name in ("libggml-cpu-armv8.0.so", "libggml-base.so", "libother.so"):
        put(f"s/{name}", make(soname=name).build())
    elf = make(soname="libggml.so", needed=["libggml-base.so"], runpath="$ORIGIN", data=b"\0libggml-\0")
    report = audit([put("s/libggml.so", elf.build()).parent], kylin)
    assert [finding.code for finding in report.findings] == ["closure.dlopen"]
    assert _value(report, "libraries") == "libggml-cpu-armv8.0.so"


def test_the_loader_prefers_the_folder_for_the_cpu(put: Put, make: Make) -> None:
    features = ("cx16", "lahf_lm", "pni", "popcnt", "sse4_1", "sse4_2", "ssse3")
    cpu, libc = CpuFacts("x", features), LibcFacts("2.34", "3.4.28", "1.3.12")
    target = TargetProfile("x", "x86_64", OsFacts("x", "X"), cpu, 4096, libc)
    put("s/libv.so", make(machine=62, soname="libv.so", provides=["V_1"], exports={"f": "V_1"}).build())
    put("s/glibc-hwcaps/x86-64-v2/libv.so", make(machine=62, soname="libv.so", provides=["V_0"]).build())
    elf = make(machine=62, needed=["libv.so"], needs={"libv.so": {"V_1": ["f"]}}, runpath="$ORIGIN")
    path = put("s/x.so", elf.build())
    report = audit([path], target)
    assert [finding.code for finding in report.findings] == ["closure.version"]
    assert "x86-64-v2" in _value(report, "server")
    assert audit([path], replace(target, cpu=CpuFacts("x", features[1:]))).findings == ()
    assert audit([path], replace(target, libc=LibcFacts("2.32", "3.4.28", "1.3.12"))).findings == ()


def test_libraries_that_a_survey_names_count_as_the_targets(put: Put, make: Make, kylin: TargetProfile) -> None:
    needs = {"libgomp.so.1": {"GOMP_4.5": ["a"], "OMP_4.5": ["b"]}}
    path = put("x.so", make(needed=["libgomp.so.1"], needs=needs).build())
    late = replace(kylin, libc=replace(kylin.libc, glibc="2.34"))
    assert [finding.code for finding in audit([path], late).findings] == ["closure.unstated"]
    surveyed = replace(late, libraries=("libgomp.so.1",))
    assert audit([path], surveyed).findings == ()
    needs["libgomp.so.1"]["GOMP_5.0"] = ["c"]
    path = put("x.so", make(needed=["libgomp.so.1"], needs=needs).build())
    report = audit([path], surveyed)
    assert [finding.code for finding in report.findings] == ["gomp.ceiling"]
    assert (_value(report, "have"), _value(report, "highest")) == ("GOMP_4.5", "GOMP_5.0")


def test_cxxabi_follows_from_libstdcxx_where_the_profile_does_not_say(
    put: Put, make: Make, kylin: TargetProfile
) -> None:
    elf = make(needed=["libstdc++.so.6"], needs={"libstdc++.so.6": {"CXXABI_1.3.13": ["f"]}})
    report = audit([put("x.so", elf.build())], replace(kylin, libc=LibcFacts("2.28", "3.4.24")))
    assert [finding.code for finding in report.findings] == ["cxxabi.ceiling"]
    assert _value(report, "have") == "CXXABI_1.3.11"
