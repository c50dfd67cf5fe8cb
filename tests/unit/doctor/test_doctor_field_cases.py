"""Every kind of failure from the field gives the right first finding, however a terminal or a blog mangled it."""

from __future__ import annotations

from functools import cache

import pytest
from tests.unit.doctor.field_texts import CHINESE, SAMPLES, Sample
from tests.unit.doctor.mangled import MANGLES, in_chinese

from sampan import i18n
from sampan.doctor import diagnose, facts, knowledge
from sampan.doctor.conditions import Fact
from sampan.doctor.model import Diagnosis, Finding
from sampan.survey import known

EACH = pytest.mark.parametrize("sample", SAMPLES, ids=[sample.name for sample in SAMPLES])


@cache
def facts_of(target: str) -> dict[str, Fact]:
    return facts.of_profile(known.load(target), target) if target else {}


def first(sample: Sample, text: str) -> Finding:
    found = diagnose.of_text(text, facts_of(sample.target))
    assert found.findings, f"nothing found in {text!r}"
    return found.findings[0]


@EACH
def test_the_first_finding_is_the_cause(sample: Sample) -> None:
    found = diagnose.of_text(sample.text, facts_of(sample.target))
    assert [one.code for one in found.findings][:1] == [sample.first]
    assert found.findings[0].role == "cause"
    assert set(sample.others) <= {one.code for one in found.findings}
    for one in found.findings:
        for line in one.evidence:
            assert line.text in sample.text
            assert line.text.splitlines()[0] == sample.text.splitlines()[line.line - 1].strip("\r")


def test_every_report_has_its_text() -> None:
    """A report from the field is counted once, however many texts are of its kind."""
    reports = {sample.reports[0] for sample in SAMPLES if sample.reports}
    assert len(reports) >= 68
    assert len({sample.name for sample in SAMPLES}) == len(SAMPLES) >= 100


@pytest.mark.parametrize("name", MANGLES)
def test_it_is_found_however_the_text_was_mangled(name: str) -> None:
    wrong = []
    for sample in SAMPLES:
        found = diagnose.of_text(MANGLES[name](sample.text), facts_of(sample.target)).findings
        if [one.code for one in found][:1] != [sample.first]:
            wrong.append((sample.name, [one.code for one in found]))
    assert wrong == []


def test_it_is_found_in_every_chinese_wording() -> None:
    wrong, tried = [], 0
    for sample in SAMPLES:
        for text in in_chinese(sample.text):
            tried += 1
            found = diagnose.of_text(text, facts_of(sample.target)).findings
            if [one.code for one in found][:1] != [sample.first]:
                wrong.append((sample.name, text, [one.code for one in found]))
    assert wrong == []
    assert tried >= 80


@pytest.mark.parametrize(("text", "code"), CHINESE)
@pytest.mark.parametrize("encoding", ["utf-8", "gb18030", "utf-16"])
def test_the_same_message_in_a_chinese_locale(text: str, code: str, encoding: str) -> None:
    found = diagnose.of_text(f"正在启动服务\n{text}\n".encode(encoding))
    assert found.findings[0].code == code
    assert found.findings[0].evidence[0].text == text


def found_for(text: str, **known_facts: str) -> Diagnosis:
    return diagnose.of_text(text, {name: Fact(value, "test") for name, value in known_facts.items()})


def test_versions_are_gathered_into_one_finding_with_the_highest_of_each_namespace() -> None:
    sample = next(sample for sample in SAMPLES if sample.name == "seven-versions")
    found = diagnose.of_text(sample.text, facts_of(sample.target)).findings
    assert [one.code for one in found] == ["loader.version"]
    assert found[0].values["needs"] == "CXXABI_1.3.11, GLIBC_2.27, GLIBCXX_3.4.25"
    assert found[0].times == 7
    assert "2.17" in found[0].cause


MAP = "x: /tmp/o/libext_server.so: failed to map segment from shared object: Operation not permitted"


@pytest.mark.parametrize(
    ("known_facts", "cause", "word"),
    [
        ({"noexec_tmp": "yes", "kysec": "absent"}, "noexec", "findmnt"),
        ({"noexec_tmp": "no", "noexec_prefix": "no", "kysec": "warning"}, "kysec", "getstatus"),
        (
            {"noexec_tmp": "no", "noexec_prefix": "no", "kysec": "off", "fapolicyd": "active"},
            "fapolicyd",
            "fapolicyd",
        ),
    ],
)
def test_one_text_with_several_causes_is_decided_by_the_machine(
    known_facts: dict[str, str], cause: str, word: str
) -> None:
    (finding,) = found_for(MAP, **known_facts).findings
    assert [(one.name, one.decided) for one in finding.causes] == [(cause, True)]
    assert word in finding.prove
    assert finding.confidence == "sure"


def test_where_nothing_is_known_every_cause_and_the_deciding_fact_are_named() -> None:
    (finding,) = found_for(MAP).findings
    assert {"noexec", "kysec", "fapolicyd"} <= {one.name for one in finding.causes}
    assert not any(one.decided for one in finding.causes)
    assert finding.confidence != "sure"
    assert "findmnt" in finding.prove


EXEC = "bge.service: Failed at step EXEC spawning /opt/bge/sampan: {}"


@pytest.mark.parametrize(
    ("detail", "known_facts", "cause"),
    [
        ("No such file or directory", {}, "missing"),
        ("Exec format error", {}, "wrong-format"),
        ("Permission denied", {"noexec_prefix": "yes"}, "noexec"),
        ("Permission denied", {"noexec_prefix": "no", "selinux": "enforcing", "kysec": "absent"}, "selinux"),
        ("Permission denied", {"noexec_prefix": "no", "selinux": "absent", "kysec": "on"}, "kysec"),
    ],
)
def test_the_causes_of_203_are_told_apart(detail: str, known_facts: dict[str, str], cause: str) -> None:
    finding = found_for(EXEC.format(detail), **known_facts).findings[0]
    assert finding.code in {"systemd.exec", "loader.wrong-architecture"}
    if finding.code == "systemd.exec":
        assert [one.name for one in finding.causes] == [cause]


@pytest.mark.parametrize(
    ("driver", "capability", "cause"),
    [("535.1", "7.0", "compressed"), ("560.2", "6.1", "ptx"), ("575.0", "7.5", "other")],
)
def test_the_driver_decides_why_a_kernel_image_is_invalid(driver: str, capability: str, cause: str) -> None:
    text = "CUDA error: device kernel image is invalid"
    (finding,) = found_for(text, driver=driver, compute_capability=capability).findings
    assert [one.name for one in finding.causes] == [cause]


def test_a_text_may_tell_the_deciding_fact_itself() -> None:
    text = f"Exec control     : warning\n{MAP}\n"
    (finding,) = found_for(text, noexec_tmp="no", noexec_prefix="no").findings
    assert [one.name for one in finding.causes] == ["kysec"]
    assert "-:1" in finding.causes[0].decided_by


def test_the_faulting_library_offset_and_instruction_class_are_computed() -> None:
    text = (
        "traps: llama[9] trap invalid opcode ip:7f215ce3d997 sp:7ffd01 error:0 in libllama.so[7f215cdeb000+8f000]\n"
        "Code: 00 11 <62> f1 7c 48 10\n"
    )
    finding = found_for(text).findings[0]
    assert finding.values["offset"] == "0x52997"
    assert finding.values["libraries"] == "libllama.so"
    assert "AVX-512" in finding.what


def test_newer_kernels_print_the_offset_themselves() -> None:
    text = "traps: llama[9] trap invalid opcode ip:7f21 sp:7f error:0 in libggml.so[2f997,7f00+8f000]"
    assert found_for(text).findings[0].values["offset"] == "0x2f997"


def test_independent_second_causes_are_kept() -> None:
    text = "".join(
        sample.text for sample in SAMPLES if sample.name in {"seven-versions", "port", "truncated-gguf", "mlock"}
    )
    codes = [one.code for one in diagnose.of_text(text).known]
    assert set(codes) == {"loader.version", "serve.port-taken", "gguf.truncated", "memory.mlock"}
    assert codes[-1] == "memory.mlock"  # a warning comes after failures


def test_red_herrings_are_named_as_such() -> None:
    text = "<jemalloc>: Invalid conf pair: lg_chunk:21\n<jemalloc>: Unsupported system page size\n"
    by_code = {one.code: one for one in diagnose.of_text(text).findings}
    assert by_code["page.jemalloc-conf"].role == "red-herring"
    assert by_code["page.jemalloc-conf"].because == "page.jemalloc"


def test_a_lock_limit_is_not_called_out_of_memory() -> None:
    sample = next(sample for sample in SAMPLES if sample.name == "mlock")
    assert [one.code for one in diagnose.of_text(sample.text).findings] == ["memory.mlock"]


def test_known_without_a_fix_is_said_so() -> None:
    sample = next(sample for sample in SAMPLES if sample.name == "paddle-arm-crash")
    finding = first(sample, sample.text)
    assert finding.status == "no-fix"
    assert "none" in finding.fix.lower()


def test_what_no_case_knows_is_not_invented() -> None:
    text = "INFO start\nFATAL: the flux capacitor is empty (code 88)\n"
    found = diagnose.of_text(text)
    assert found.findings == ()
    assert [line.line for line in found.unknown] == [2]


def test_the_limit_of_processes_decides_what_stopped_threads() -> None:
    line = "OpenBLAS blas_thread_init: pthread_create failed for thread 90 of 128: Resource temporarily unavailable\n"
    near = found_for(f"{line}OpenBLAS blas_thread_init: RLIMIT_NPROC 4096 current, 4096 max\n").findings[0]
    far = found_for(f"{line}OpenBLAS blas_thread_init: RLIMIT_NPROC 1029364 current, 1029364 max\n").findings[0]
    assert [cause.name for cause in near.causes] == ["process-limit"]
    assert [cause.name for cause in far.causes] == ["address-space"]


def test_a_case_that_the_target_excludes_is_not_found() -> None:
    text = ">>> import onnxruntime\nIllegal instruction\n"
    codes = [one.code for one in diagnose.of_text(text, facts_of("kylin-v10-sp3-kunpeng920")).findings]
    assert codes == ["cpu.illegal-instruction"]


def test_findings_speak_chinese() -> None:
    i18n.use("zh")
    try:
        finding = diagnose.of_text("<jemalloc>: Unsupported system page size").findings[0]
    finally:
        i18n.use("en")
    for text in (finding.what, finding.cause, finding.fix, finding.avoid):
        assert any("\u4e00" <= letter <= "\u9fff" for letter in text)
    assert "{" not in finding.what


def test_every_topic_of_the_field_has_cases() -> None:
    topics = {case.topic for case in knowledge.cases().values()}
    assert {
        "loader",
        "cpu",
        "page",
        "memory",
        "cuda",
        "ascend",
        "build",
        "pip",
        "gguf",
        "paddle",
        "systemd",
    } <= topics
