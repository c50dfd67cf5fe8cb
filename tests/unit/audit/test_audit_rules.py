"""Every rule is hit by exactly one kind of file, and its clean twin passes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sampan import i18n
from sampan.audit import render
from sampan.audit.audit import audit
from sampan.errors import BadInputError, ExitCode, IncompatibleError
from sampan.spec import codec
from sampan.spec.artefacts import AuditReport, Finding
from sampan.spec.target import LibcFacts, TargetProfile

Put = Callable[[str, bytes], Path]
Make = Callable[..., Any]
LOADER = "/lib/ld-linux-aarch64.so.1"
CLEAN_NEEDS = {"libc.so.6": {"GLIBC_2.17": ["puts"], "GLIBC_2.28": ["fcntl64"]}}

CLEAN: dict[str, dict[str, Any]] = {
    "library": {"soname": "libx.so", "needed": ["libc.so.6"], "needs": CLEAN_NEEDS},
    "static program": {"kind": 2, "dynamic": False},
    "static position-independent program": {"pie": True},
    "program": {"kind": 2, "interpreter": LOADER, "needed": ["libc.so.6"], "needs": CLEAN_NEEDS},
    "program on merged /usr": {"pie": True, "interpreter": f"/usr{LOADER}", "needed": ["libc.so.6"]},
    "GNU ABI": {"osabi": 3},
    "larger alignment than the page": {"segments": [(65536, 0), (1 << 21, 0)]},
    "C++ at the ceiling": {
        "needed": ["libstdc++.so.6", "libgcc_s.so.1"],
        "needs": {"libstdc++.so.6": {"GLIBCXX_3.4.24": ["a"], "CXXABI_1.3.11": ["b"], "CXXABI_TM_1": ["c"]}},
    },
    "too new but weak": {"needed": ["libc.so.6"], "needs": {"libc.so.6": {"GLIBC_2.36": ["x"]}}, "weak": True},
    "library with an interpreter": {"soname": "libc.so.6", "interpreter": "/lib/elsewhere.so.1"},
}

FOUL: dict[str, tuple[dict[str, Any], str, dict[str, str]]] = {
    "other machine": ({"machine": 62}, "arch.machine", {"found": "EM_X86_64, 64-bit, little-endian"}),
    "32 bit": ({"machine": 40, "bits": 32}, "arch.machine", {"found": "EM_ARM, 32-bit, little-endian"}),
    "big endian": ({"little": False}, "arch.machine", {"found": "EM_AARCH64, 64-bit, big-endian"}),
    "FreeBSD": ({"osabi": 9}, "arch.machine", {"found": "EM_AARCH64, 64-bit, little-endian, ELFOSABI_FREEBSD"}),
    "musl program": (
        {"kind": 2, "interpreter": "/lib/ld-musl-aarch64.so.1"},
        "loader.interpreter",
        {"kind": "musl", "expected": LOADER},
    ),
    "program of a build tree": ({"pie": True, "interpreter": "/nix/store/x/ld.so"}, "loader.interpreter", {}),
    "glibc too new": (
        {"needed": ["libc.so.6"], "needs": {"libc.so.6": {"GLIBC_2.33": ["stat"], "GLIBC_2.34": ["dlopen"]}}},
        "glibc.ceiling",
        {"highest": "GLIBC_2.34", "have": "GLIBC_2.28", "symbols": "dlopen@GLIBC_2.34, stat@GLIBC_2.33"},
    ),
    "2.9 is older than 2.10 and 2.28": (
        {"needed": ["libc.so.6"], "needs": {"libc.so.6": {"GLIBC_2.9": ["a"], "GLIBC_2.100": ["b"]}}},
        "glibc.ceiling",
        {"highest": "GLIBC_2.100", "symbols": "b@GLIBC_2.100"},
    ),
    "relative relocations": (
        {"needed": ["libc.so.6"], "needs": {"libc.so.6": {"GLIBC_ABI_DT_RELR": []}}},
        "glibc.ceiling",
        {"highest": "GLIBC_ABI_DT_RELR", "symbols": "-"},
    ),
    "libm too": (
        {"needed": ["libm.so.6"], "needs": {"libm.so.6": {"GLIBC_2.29": ["pow"]}}},
        "glibc.ceiling",
        {"library": "libm.so.6", "server": "kylin:libm.so.6"},
    ),
    "libstdc++ too new": (
        {"needed": ["libstdc++.so.6"], "needs": {"libstdc++.so.6": {"GLIBCXX_3.4.29": ["x"]}}},
        "glibcxx.ceiling",
        {"have": "GLIBCXX_3.4.24"},
    ),
    "C++ ABI too new": (
        {"needed": ["libstdc++.so.6"], "needs": {"libstdc++.so.6": {"CXXABI_1.3.13": ["x"]}}},
        "cxxabi.ceiling",
        {"have": "CXXABI_1.3.11"},
    ),
    "missing libraries": (
        {"needed": ["libc.so.6", "libopenblas.so.0", "libGL.so.1"]},
        "closure.missing",
        {"libraries": "libopenblas.so.0, libGL.so.1"},
    ),
    "4 KiB pages": ({"segments": [(4096, 0)]}, "page.alignment", {"align": "4096", "page": "65536"}),
    "4 KiB pages in a static program": ({"kind": 2, "dynamic": False, "segments": [(4096, 0)]}, "page.alignment", {}),
    "the smallest alignment counts": ({"segments": [(65536, 0), (16384, 0)]}, "page.alignment", {"align": "16384"}),
    "aligned but not congruent": ({"segments": [(65536, 0), (65536, 4096)]}, "page.alignment", {"align": "65536"}),
    "no alignment": ({"segments": [(65536, 0), (0, 0)]}, "page.alignment", {"align": "0"}),
}


@pytest.mark.parametrize("case", CLEAN)
def test_clean_files_have_no_finding(put: Put, make: Make, kylin: TargetProfile, case: str) -> None:
    report = audit([put("f", make(**CLEAN[case]).build())], kylin)
    assert report.findings == ()
    assert (report.files, report.elf_files) == (1, 1)


@pytest.mark.parametrize("case", FOUL)
def test_each_fault_gives_exactly_its_finding(put: Put, make: Make, kylin: TargetProfile, case: str) -> None:
    fields, code, values = FOUL[case]
    path = put("f", make(**fields).build())
    report = audit([path], kylin)
    assert [(finding.code, finding.severity, finding.path) for finding in report.findings] == [
        (code, "error", str(path))
    ]
    assert values.items() <= dict(report.findings[0].values).items()
    assert report.errors == 1


def test_one_finding_a_family_names_all_symbols_up_to_a_limit(put: Put, make: Make, kylin: TargetProfile) -> None:
    names = [f"f{index}" for index in range(10)]
    elf = make(needed=["libc.so.6"], needs={"libc.so.6": {"GLIBC_2.33": names}})
    (finding,) = audit([put("f", elf.build())], kylin).findings
    assert dict(finding.values)["symbols"].endswith("f5@GLIBC_2.33 +4")


def test_an_unknown_ceiling_is_a_warning_not_a_guess(put: Put, make: Make, kylin: TargetProfile) -> None:
    path = put("f", make(needed=["libc.so.6"], needs=CLEAN_NEEDS).build())
    report = audit([path], replace(kylin, libc=LibcFacts()))
    assert [(f.code, f.severity) for f in report.findings] == [("ceiling.unknown", "warning")]
    assert report.errors == 0


def test_private_parts_of_the_targets_glibc_are_not_known(put: Put, make: Make, kylin: TargetProfile) -> None:
    """PaddlePaddle 3.0.0 wants _dl_sym so, and is loaded on Kylin V10 all the same."""
    elf = make(needed=["libc.so.6"], needs={"libc.so.6": {"GLIBC_PRIVATE": ["_dl_sym"]}})
    (finding,) = audit([put("f", elf.build())], kylin).findings
    assert (finding.code, finding.severity) == ("closure.version", "warning")
    assert dict(finding.values)["symbols"] == "_dl_sym@GLIBC_PRIVATE"


def test_a_libstdcxx_that_the_profile_does_not_name_is_not_guessed_at(
    put: Put, make: Make, kylin: TargetProfile
) -> None:
    path = put("f", make(needed=["libstdc++.so.6"]).build())
    report = audit([path], replace(kylin, libc=LibcFacts(glibc="2.28")))
    assert [(finding.code, finding.severity) for finding in report.findings] == [("closure.unstated", "warning")]


def test_an_object_file_of_another_machine_is_a_warning(put: Put, make: Make, kylin: TargetProfile) -> None:
    report = audit([put("x.o", make(kind=1, machine=62).build())], kylin)
    assert [(f.code, f.severity) for f in report.findings] == [("arch.machine", "warning")]


def test_4_kib_alignment_is_right_for_4_kib_pages(put: Put, make: Make, kylin: TargetProfile) -> None:
    path = put("f", make(segments=[(4096, 0)]).build())
    assert audit([path], replace(kylin, page_size=4096)).findings == ()


def test_files_are_known_by_their_magic_not_their_name(put: Put, make: Make, kylin: TargetProfile) -> None:
    put("d/picture.png", make(machine=62).build())
    put("d/lib.so", b"not ELF")
    put("d/empty", b"")
    put("d/\x7fELF", b"\x7fEL")
    report = audit([put("d/text", b"hello").parent], kylin)
    assert [finding.code for finding in report.findings if finding.severity == "error"] == ["arch.machine"]
    assert (report.files, report.elf_files) == (5, 1)


def test_findings_come_worst_first(put: Put, make: Make, kylin: TargetProfile) -> None:
    put("d/a.o", make(kind=1, machine=62).build())
    put("d/z", make(segments=[(4096, 0)]).build())
    report = audit([put("d/m", make(machine=62).build()).parent], kylin)
    assert [finding.severity for finding in report.findings] == ["error", "error", "warning"]


def test_a_file_given_twice_is_judged_once(put: Put, make: Make, kylin: TargetProfile) -> None:
    path = put("d/f", make(machine=62).build())
    report = audit([path, path.parent, path], kylin)
    assert (report.files, report.elf_files, report.errors) == (1, 1, 1)


def test_a_missing_path_is_bad_input(tmp_path: Path, kylin: TargetProfile) -> None:
    with pytest.raises(BadInputError) as caught:
        audit([tmp_path / "gone"], kylin)
    assert caught.value.key == "file.missing"
    assert caught.value.exit_code == ExitCode.BAD_INPUT


def test_an_architecture_without_rules_is_said(tmp_path: Path, kylin: TargetProfile) -> None:
    with pytest.raises(IncompatibleError) as caught:
        audit([tmp_path], replace(kylin, arch="sw_64"))
    assert "sw_64" in caught.value.message
    assert "aarch64" in caught.value.hint


def test_a_report_is_a_value_with_a_json_form(put: Put, make: Make, kylin: TargetProfile) -> None:
    report = audit([put("f", make(machine=62).build())], kylin)
    assert codec.from_json(AuditReport, codec.to_json(report), where="test") == report


@pytest.mark.parametrize("language", i18n.LANGUAGES)
def test_every_finding_reads_as_a_sentence_with_a_fix(
    put: Put, make: Make, kylin: TargetProfile, language: str
) -> None:
    i18n.use(language)
    try:
        for fields, _, _ in FOUL.values():
            report = audit([put("f", make(**fields).build())], kylin)
            for row in render.rows(report):
                assert row.message != row.fix
                assert not row.message.startswith("finding.")
                assert not row.fix.startswith("finding.")
            assert "kylin" in render.summary(report)
    finally:
        i18n.use("en")


def test_messages_name_the_numbers(put: Put, make: Make, kylin: TargetProfile) -> None:
    fields = FOUL["glibc too new"][0]
    row = render.rows(audit([put("f", make(**fields).build())], kylin))[0]
    for word in ("GLIBC_2.34", "dlopen@GLIBC_2.34", "GLIBC_2.28"):
        assert word in row.message


def test_every_code_is_in_both_documents_and_the_catalogue() -> None:
    root = Path(__file__).parents[3]
    codes = {
        key.removeprefix("finding.") for key in i18n.catalogue() if key.startswith("finding.") and key[-4:] != ".fix"
    }
    assert {code for _, code, _ in FOUL.values()} <= codes
    for code in codes:
        assert f"finding.{code}.fix" in i18n.catalogue()
        for name in ("findings.md", "findings.zh-CN.md"):
            assert f"## {code}\n" in (root / "docs" / name).read_text(encoding="utf-8"), (name, code)


def test_render_keeps_what_it_does_not_know() -> None:
    row = render.row(Finding("from.the.future", "info", "x", (("a", "b"),)))
    assert "from.the.future" in row.message
