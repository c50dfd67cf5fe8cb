"""The probe: what it finds becomes facts, and nothing that died is planned with."""

from __future__ import annotations

import os
import subprocess

import pytest
from tests.fakes.surveys import make_block
from typer.testing import CliRunner

from sampan.cli.main import build_app
from sampan.errors import BadInputError, ExitCode
from sampan.plan.variants import all_variants, runnable
from sampan.spec import codec
from sampan.spec.target import CpuFacts, ProbeFacts, TargetProfile
from sampan.survey import data, pasted, probe, script

ARM = "ab=0201b700;pg=65536;hw=917fff;hx=0;ci=0x48;cp=0xd01;"  # Kunpeng 920 with lrcpc claimed besides


def states(arch: str, **other: str) -> str:
    """All ran, but for those named."""
    return "".join(other.get(name, "r") for name in probe.names(arch))


def read(value: str) -> TargetProfile:
    return pasted.profile(make_block(f"{ARM}pr={value};"), name="far", where="-")


def test_false_claims_leave_the_features_and_so_the_plan() -> None:
    profile = read(f"1,{states('aarch64', asimddp='i', fphp='h', sve='i')}")
    assert profile.cpu.probe is not None
    assert (profile.cpu.probe.illegal, profile.cpu.probe.hung) == (("asimddp", "sve"), ("fphp",))
    assert profile.cpu.probe.false_claims == ("asimddp", "fphp")
    assert {"bf16", "i8mm"} <= set(profile.cpu.probe.unclaimed)
    assert "asimddp" not in profile.cpu.features
    assert "bf16" not in profile.cpu.features
    assert [variant.name for variant in runnable("aarch64", profile.cpu.features)] == ["armv8.0"]
    without = pasted.profile(make_block(ARM), name="far", where="-")
    assert len(runnable("aarch64", without.cpu.features)) == 3
    assert without.cpu.probe is None


def test_a_death_that_says_nothing_takes_nothing_away() -> None:
    profile = read(f"1,{states('aarch64', asimddp='d', sve='u')}")
    assert profile.cpu.probe is not None
    assert profile.cpu.probe.unclear == ("asimddp", "sve")
    assert "asimddp" in profile.cpu.features


def test_the_profile_comes_back_from_json() -> None:
    profile = read(f"1,{states('aarch64', asimddp='i')}")
    assert codec.from_json(TargetProfile, codec.to_json(profile), where="-") == profile


@pytest.mark.parametrize(("value", "kept"), [("0", "not done"), ("2,1", "2,1")])
def test_what_was_not_done_or_is_of_a_newer_form_is_kept(value: str, kept: str) -> None:
    profile = read(value)
    assert (profile.cpu.probe, profile.extra) == (None, {"survey_probe": kept})


def test_a_longer_table_of_a_newer_script_is_read_as_far_as_it_is_known() -> None:
    assert read(f"1,{states('aarch64')}ri").cpu.probe == read(f"1,{states('aarch64')}").cpu.probe


@pytest.mark.parametrize("value", ["1,", "1,rx", "1,rrr.r"])
def test_a_field_without_sense(value: str) -> None:
    with pytest.raises(BadInputError) as caught:
        read(value)
    assert caught.value.key == "survey.block-field"


@pytest.mark.parametrize("output", ["", "Killed", "sampan-probe 2 x86_64\navx ran\n"])
def test_output_of_something_else(output: str) -> None:
    with pytest.raises(ValueError):
        probe.printed(output)


def test_unknown_features_are_no_claims() -> None:
    cpu = probe.applied(CpuFacts(model="?", features_known=False), {"avx": "ran", "fma": "illegal"})
    assert cpu.probe == ProbeFacts(ran=("avx",), illegal=("fma",))


def test_the_tables_name_what_the_kernel_names_and_all_that_variants_need() -> None:
    kernel = data.table("hwcap-aarch64.toml")
    known = {"aarch64": {*kernel["hwcap"], *kernel["hwcap2"]}, "x86_64": {*script.x86_flags()}}
    for arch, words in known.items():
        names = probe.names(arch)
        assert len(set(names)) == len(names) > 30
        assert set(names) <= words
    for variant in all_variants():
        if variant.arch in known:
            assert set(variant.requires) <= set(probe.names(variant.arch)), variant.name
    assert probe.names("loongarch64")[:4] == ("cpucfg", "lam", "fpu", "lsx")


def test_places_in_the_tables_are_for_ever() -> None:
    places = {arch: (probe.names(arch)[7], probe.names(arch)[18]) for arch in ("aarch64", "x86_64")}
    assert places == {"aarch64": ("atomics", "asimddp"), "x86_64": ("ssse3", "avx")}


# A stand-in for the program: a script of our own, so that no compiler is needed here.
STAND_IN = b"#!/bin/sh\necho 'sampan-probe 1 x'\necho 'atomics illegal'\necho 'fp ran'\necho 'sve2 ran'\n"
PROGRAMS = script.Programs(
    {"aarch64": STAND_IN, "x86_64": STAND_IN}, {"aarch64": "zig a", "x86_64": "zig b"}, "zig 1"
)


def test_an_officer_can_read_what_it_does() -> None:
    told = script.with_probe(PROGRAMS)
    assert "writes no file" not in told
    assert "writes only in its part" in told
    for text in probe.sources().values():
        assert all(f"# {line}".rstrip() in told for line in text.splitlines())
    assert "# zig a\n" in told
    removed = script.text().splitlines()
    assert [line for line in removed if line not in told.splitlines()] == removed[2:5]
    done = subprocess.run(["sh", "-n"], input=told.encode(), capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("words", [["hygon", "--probe"], ["--list", "--probe"], ["--read", "-", "--probe"]])
def test_where_no_instruction_can_be_executed(words: list[str]) -> None:
    done = CliRunner().invoke(build_app(), ["survey", *words, "--json"], input="")
    assert (done.exit_code, '"survey.probe-where"' in done.output) == (ExitCode.USAGE, True)


def test_a_bundle_says_where_the_probe_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, "SAMPAN_BUNDLE", "/opt/x")
    monkeypatch.setattr("sampan.cli.entry.find_spec", lambda _: None)
    done = CliRunner().invoke(build_app(), ["survey", "--probe", "--json"])
    assert (done.exit_code, '"survey.probe-workshop"' in done.output) == (ExitCode.USAGE, True)
