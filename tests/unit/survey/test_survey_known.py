"""The known targets, and how a target is named."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.fakes.machines import AARCH64, auxv, library, write

from sampan.errors import BadInputError, ExitCode, UsageError
from sampan.plan.variants import runnable
from sampan.spec import codec
from sampan.spec.target import TargetProfile
from sampan.survey import data, known
from sampan.survey.resolve import closest, resolve

PROMISED = {
    "kylin-v10-sp1-kunpeng920",
    "kylin-v10-sp2-kunpeng920",
    "kylin-v10-sp3-kunpeng920",
    "kylin-v10-phytium-d2000",
    "phytium-d3000",
    "uos-20",
    "openeuler-20.03",
    "openeuler-22.03",
    "kylin-v11",
    "centos-7-x86-64",
    "debian-10-aarch64",
    "generic-aarch64",
    "generic-x86-64",
    "hygon",
    "zhaoxin",
}


def test_all_promised_targets_are_known() -> None:
    assert set(known.names()) >= PROMISED


@pytest.mark.parametrize("name", known.names())
def test_every_profile_is_whole_and_says_where_its_facts_come_from(name: str) -> None:
    profile = known.load(name)
    assert profile.name == name
    assert codec.from_json(TargetProfile, codec.to_json(profile), where=name) == profile
    facts = {source.fact for source in profile.sources}
    assert {"cpu.features", "page_size"} <= facts
    assert profile.libc.glibc is None or "libc.glibc" in facts
    assert {source.check for source in profile.sources} <= {"V", "R"}
    assert all(len(source.where) > 12 for source in profile.sources)
    assert runnable(profile.arch, profile.cpu.features, features_known=profile.cpu.features_known)
    assert set(known.about(name)) == {"en", "zh"}


@pytest.mark.parametrize("name", known.names())
def test_no_fact_is_invented_about_the_single_machine(name: str) -> None:
    profile = known.load(name)
    assert (profile.memory_bytes, profile.cpu_quota, profile.cpu.cores, profile.os.kernel) == (None,) * 4


@pytest.mark.parametrize(
    ("name", "variants"),
    [
        ("kylin-v10-sp3-kunpeng920", ["armv8.0", "armv8.2-dotprod", "armv8.2-dotprod-fp16"]),
        ("kylin-v10-phytium-d2000", ["armv8.0"]),
        ("uos-20", ["armv8.0", "armv8.2-dotprod", "armv8.2-dotprod-fp16"]),
        ("hygon", ["x86-64-v2", "x86-64-v3"]),
        ("zhaoxin", ["x86-64-v2"]),
        ("generic-x86-64", ["x86-64-v2", "x86-64-v3", "x86-64-v4"]),
    ],
)
def test_a_target_gets_the_variants_that_it_can_run(name: str, variants: list[str]) -> None:
    profile = known.load(name)
    found = runnable(profile.arch, profile.cpu.features, features_known=profile.cpu.features_known)
    assert [variant.name for variant in found] == variants


def test_kylin_v10_has_a_new_glibc_with_an_old_libstdcxx_and_large_pages() -> None:
    profile = known.load("kylin-v10-sp2-kunpeng920")
    assert (profile.libc.glibc, profile.libc.glibcxx, profile.page_size) == ("2.28", "3.4.24", 65536)
    assert profile.os.name == "Kylin Linux Advanced Server"
    assert profile.os.version == "V10 (Sword)"


def test_every_system_and_cpu_is_used_or_based_upon_or_recognised() -> None:
    systems, cpus = data.table("systems.toml"), data.table("cpus.toml")
    profiles = [data.table(f"profiles/{name}.toml") for name in known.names()]
    used = {profile["system"] for profile in profiles} | {entry.get("based_on") for entry in systems.values()}
    assert set(systems) <= used
    taken = {profile["cpu"] for profile in profiles}
    assert all(name in taken or "part" in entry for name, entry in cpus.items())


def test_a_misspelt_target_gets_a_suggestion() -> None:
    with pytest.raises(UsageError) as caught:
        resolve("kylin-v10-sp3-kunpeng902")
    assert caught.value.key == "target.unknown"
    assert caught.value.exit_code == ExitCode.USAGE
    assert str(caught.value.values["known"]).startswith("kylin-v10-sp3-kunpeng920")


@pytest.mark.parametrize(
    ("typed", "first"),
    [
        ("kylin-v10-sp3", "kylin-v10-sp3-kunpeng920"),
        ("Kylin_V10_SP3_Kunpeng920", "kylin-v10-sp3-kunpeng920"),
        ("d2000", "kylin-v10-phytium-d2000"),
        ("thiss", "this"),
    ],
)
def test_the_closest_name_comes_first(typed: str, first: str) -> None:
    assert closest(typed)[0] == first


def test_without_any_likeness_all_names_are_given() -> None:
    assert set(closest("qqqqqq")) == {*known.names(), "this"}


def test_a_profile_file_is_read_back(tmp_path: Path) -> None:
    profile = known.load("hygon")
    path = tmp_path / "surveyed.json"
    path.write_text(codec.to_json(profile), encoding="utf-8")
    assert resolve(str(path)) == profile


def test_a_missing_profile_file(tmp_path: Path) -> None:
    with pytest.raises(BadInputError) as caught:
        resolve(str(tmp_path / "none.json"))
    assert caught.value.key == "file.missing"


def test_a_cut_profile_file(tmp_path: Path) -> None:
    path = tmp_path / "cut.json"
    path.write_text(codec.to_json(known.load("hygon"))[:200], encoding="utf-8")
    with pytest.raises(BadInputError) as caught:
        resolve(str(path))
    assert (caught.value.key, caught.value.exit_code) == ("artefact.json", ExitCode.BAD_INPUT)


def test_this_machine_is_surveyed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = write(tmp_path, {"bin/sh": library([], machine=AARCH64), "proc/self/auxv": auxv(page_size=16384)})
    from sampan.survey import machine

    monkeypatch.setattr("sampan.survey.resolve.survey_this", lambda: machine.survey_this(root))
    assert (resolve("this").name, resolve("this").page_size) == ("this", 16384)


def test_a_file_that_is_no_profile_is_not_called_an_unknown_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("pasted.txt").write_text("@01 sampan1.01.00000000 #00000000")
    with pytest.raises(BadInputError) as caught:
        resolve("pasted.txt")
    assert caught.value.key == "target.no-profile"
    assert "--read pasted.txt" in caught.value.hint
