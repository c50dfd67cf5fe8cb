"""Artefacts: what is written reads back, what is damaged is named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sampan.errors import BadInputError, ExitCode
from sampan.spec import codec
from sampan.spec.artefacts import AuditReport, Finding, Package
from sampan.spec.target import CpuFacts, LibcFacts, OsFacts, Source, TargetProfile

PROFILE = TargetProfile(
    name="kylin",
    arch="aarch64",
    os=OsFacts("kylin", "Kylin Linux Advanced Server", "V10"),
    cpu=CpuFacts("Kunpeng-920", ("asimd", "asimddp"), implementer="0x48"),
    page_size=65536,
    libc=LibcFacts("2.28", "3.4.24", "1.3.11"),
    cpu_quota=4.0,
    sources=(Source("libc.glibc", "V", "package list"),),
)
PACKAGE = Package("/a.tar", "0" * 64, 1, "a", 1, True)


def test_a_value_reads_back_equal() -> None:
    assert codec.from_json(TargetProfile, codec.to_json(PROFILE), where="x") == PROFILE


def test_nested_tuples_read_back() -> None:
    report = AuditReport("a", "b", 1, 1, (Finding("c", "error", "p", (("k", "v"),)),))
    assert codec.from_json(AuditReport, codec.to_json(report), where="x") == report


def test_equal_values_give_equal_bytes_and_the_schema_comes_first() -> None:
    text = codec.to_json(PROFILE)
    assert text == codec.to_json(codec.from_json(TargetProfile, text, where="x"))
    assert next(iter(json.loads(text))) == "schema"


def test_unknown_fields_of_a_newer_version_are_kept() -> None:
    data = codec.to_data(PROFILE) | {"npu": {"name": "310P"}}
    again = codec.from_data(TargetProfile, data, where="x")
    assert codec.to_data(again)["npu"] == {"name": "310P"}


@pytest.mark.parametrize(
    ("change", "key", "named"),
    [
        ({"schema": "sampan/target-profile/9"}, "artefact.schema", "sampan/target-profile/9"),
        ({"page_size": "65536"}, "artefact.fields", "page_size"),
        ({"page_size": None}, "artefact.fields", "page_size"),
        ({"cpu": {"model": 3}}, "artefact.fields", "cpu.model"),
        ({"arch": True}, "artefact.fields", "arch"),
    ],
)
def test_a_wrong_field_is_named(change: dict[str, object], key: str, named: str) -> None:
    with pytest.raises(BadInputError) as caught:
        codec.from_data(TargetProfile, codec.to_data(PROFILE) | change, where="file.json")
    assert caught.value.key == key
    assert caught.value.exit_code == ExitCode.BAD_INPUT
    assert named in caught.value.message
    assert "file.json" in caught.value.message


def test_a_missing_field_is_named() -> None:
    data = codec.to_data(PACKAGE)
    del data["sha256"]
    with pytest.raises(BadInputError) as caught:
        codec.from_data(Package, data, where="x")
    assert "sha256" in caught.value.message


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"a": 1}', "\x00"])
def test_what_is_no_artefact_is_refused(text: str) -> None:
    with pytest.raises(BadInputError):
        codec.from_json(Package, text, where="x")


def test_a_missing_or_unreadable_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInputError) as caught:
        codec.load(Package, tmp_path / "none.json")
    assert caught.value.key == "file.missing"
    (tmp_path / "latin.json").write_bytes(b"\xff\xfe")
    with pytest.raises(BadInputError) as caught:
        codec.load(Package, tmp_path / "latin.json")
    assert caught.value.key == "artefact.binary"
