"""The survey of the machine that the tests run on, held against what its own tools say."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerDefSection
from tests.fakes.models import MINILM

from sampan.audit.audit import audit
from sampan.plan.planner import make_plan
from sampan.plan.variants import choose
from sampan.spec.target import TargetProfile
from sampan.survey import elf, features, script, verdefs
from sampan.survey.machine import survey_this

pytestmark = pytest.mark.integration


def said(*argv: str) -> str:
    """What a tool of this machine prints; skips where there is none."""
    if shutil.which(argv[0]) is None:
        pytest.skip(f"{argv[0]} is not on this machine")
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout.strip()


def test_page_size_glibc_and_memory_are_those_of_getconf() -> None:
    profile = survey_this()
    assert profile.page_size == int(said("getconf", "PAGESIZE"))
    word = said("getconf", "GNU_LIBC_VERSION").split()[-1]
    assert profile.libc.glibc == word
    assert profile.memory_bytes == os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 1024 * 1024


def test_systemd_is_the_version_that_it_says_itself() -> None:
    if survey_this().systemd is None:
        pytest.skip("no systemd on this machine")
    assert str(survey_this().systemd) == said("systemctl", "--version").split()[1]


def test_our_reader_of_version_definitions_agrees_with_pyelftools() -> None:
    libraries = [
        path
        for folder in ("/lib/x86_64-linux-gnu", "/lib/aarch64-linux-gnu", "/lib64", "/usr/lib64")
        for path in sorted(Path(folder).glob("lib*.so.*"))[:40]
        if elf.kind_of(path)
    ]
    if not libraries:
        pytest.skip("no libraries in the usual folders")
    for path in libraries:
        assert verdefs.exported(path.read_bytes()) == by_pyelftools(path), path


def by_pyelftools(path: Path) -> tuple[str, ...]:
    """All version definitions but the base one."""
    with path.open("rb") as file:
        for section in ELFFile(file).iter_sections():
            if isinstance(section, GNUVerDefSection):
                return tuple(
                    next(iter(names)).name for entry, names in section.iter_versions() if not entry["vd_flags"] & 1
                )
    return ()


def test_a_plan_for_this_machine_has_a_variant_that_it_can_run() -> None:
    plan = make_plan(MINILM, survey_this())
    assert choose(plan.variants, features.current()) == plan.variants[-1]
    assert plan.settings.threads >= 1


def test_what_its_own_programs_need_is_settled() -> None:
    """They run, so every library that is only usual elsewhere is found to be here."""
    here = survey_this()
    if here.libc.glibc is None:
        pytest.skip("this machine has another C library")
    found = (path for path in sorted(Path("/usr/bin").iterdir()) if path.is_file() and path.stat().st_size < 200_000)
    programs = [path for path in found if elf.kind_of(path)][:120]
    by_name = {code: _named(programs, here, code) for code in ("closure.unstated", "closure.missing")}
    assert by_name["closure.unstated"] == set()
    assert by_name["closure.missing"] & set(script.libraries()) == set()
    unsurveyed = replace(here, libraries=None, absent_libraries=())
    assert _named(programs, unsurveyed, "closure.unstated") <= set(here.libraries or ())
    gone = replace(here, libraries=None, absent_libraries=script.libraries())
    assert _named(programs, gone, "closure.missing") & set(script.libraries())


def _named(programs: list[Path], target: TargetProfile, code: str) -> set[str]:
    found = (dict(one.values)["libraries"] for one in audit(programs, target).findings if one.code == code)
    return {name for names in found for name in names.split(", ")}
