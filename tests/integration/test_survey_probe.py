"""The real probe, built by the workshop's compiler: natively, and on emulated CPUs that differ from the claims."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from tests.fakes.surveys import LARGEST, pretended, printed_block, run, shell

from sampan.build import probe as builder
from sampan.edge.process import ProcessRunner
from sampan.edge.progress import SilentProgress
from sampan.errors import MissingToolError
from sampan.flow import probing, surveys
from sampan.flow.tools import Tools, workshop_tools
from sampan.plan.variants import runnable
from sampan.survey import cpuinfo, features, pasted, probe, script
from sampan.survey.machine import survey_this

pytestmark = pytest.mark.integration
QEMU = {"aarch64": "qemu-aarch64-static", "x86_64": "qemu-x86_64-static", "loongarch64": "qemu-loongarch64-static"}
Program = Callable[[str], Path]


@pytest.fixture(scope="module")
def tools() -> Tools:
    try:
        builder.compiler()
    except MissingToolError as error:
        pytest.skip(f"no compiler: {error}")
    return workshop_tools(SilentProgress())


@pytest.fixture(scope="module")
def program(tools: Tools) -> Program:
    return lambda arch: builder.build(arch, probe.sources(), runner=tools.runner, store=tools.store)


def emulated(path: Path, arch: str, cpu: str) -> dict[str, str]:
    if shutil.which(QEMU[arch]) is None:
        pytest.skip(f"no {QEMU[arch]} here")
    done = subprocess.run([QEMU[arch], "-cpu", cpu, path], capture_output=True, text=True, check=True, timeout=60)
    outcome = probe.printed(done.stdout)
    assert tuple(outcome) == probe.names(arch)
    return outcome


def ran(outcome: dict[str, str]) -> set[str]:
    assert {"hung", "died", "untried"}.isdisjoint(outcome.values())
    return {name for name, state in outcome.items() if state == "ran"}


def test_this_machine_executes_what_it_claims(tools: Tools) -> None:
    cpu = probing.probed(survey_this(), tools).cpu
    assert cpu.probe is not None
    assert (cpu.probe.false_claims, cpu.probe.hung, cpu.probe.unclear) == ((), (), ())
    claimed = features.current() & set(probe.names(survey_this().arch))
    assert claimed <= set(cpu.probe.ran)
    assert len(claimed) > 10


@pytest.mark.parametrize(
    ("arch", "cpu", "has", "lacks"),
    [
        ("aarch64", "cortex-a57", "fp asimd aes crc32", "atomics asimddp fphp asimdrdm lrcpc sve i8mm bf16"),
        ("aarch64", "cortex-a76", "atomics asimddp fphp asimdhp asimdrdm lrcpc", "fcma jscvt sve i8mm bf16 asimdfhm"),
        ("aarch64", "a64fx", "atomics fcma sve", "asimddp sve2"),
        ("aarch64", "max", "asimddp sve2 i8mm bf16 flagm2 frint sha3 sm4", ""),
        ("x86_64", "Nehalem", "sse4_2 popcnt cx16 lahf_lm", "avx aes f16c fma avx2 movbe bmi1 abm xsave"),
        ("x86_64", "IvyBridge", "avx f16c aes xsave rdrand", "fma avx2 bmi1 bmi2 movbe abm"),
        ("x86_64", "Haswell-noTSX", "avx avx2 fma bmi1 bmi2 movbe abm", "adx avx512f gfni sha_ni"),
        ("x86_64", "Dhyana", "avx2 fma sse4a adx", "avx512f gfni"),
        ("loongarch64", "la464-loongarch-cpu", "cpucfg fpu lam", ""),
    ],
)
def test_emulated_processors(program: Program, arch: str, cpu: str, has: str, lacks: str) -> None:
    found = ran(emulated(program(arch), arch, cpu))
    assert set(has.split()) <= found
    assert found.isdisjoint(lacks.split())


@pytest.mark.parametrize(
    ("recorded", "cpu", "false", "best"),
    [
        ("kunpeng-920", "cortex-a57", {"atomics", "asimddp", "fphp", "jscvt"}, "armv8.0"),
        ("kunpeng-920", "cortex-a76", {"jscvt", "fcma", "asimdfhm", "dcpop"}, "armv8.2-dotprod-fp16"),
        ("hygon-c86-7285", "Nehalem", {"avx", "avx2", "fma", "sse4a", "abm"}, "x86-64-v2"),
        ("xeon-e5-2680-v4", "Haswell-noTSX", {"adx"}, "x86-64-v3"),
    ],
)
def test_a_recorded_machine_that_claims_more_than_the_processor_has(
    program: Program, recorded: str, cpu: str, false: set[str], best: str
) -> None:
    text = (Path(__file__).parents[1] / f"data/cpuinfo/{recorded}.txt").read_text(encoding="utf-8")
    arch = "aarch64" if cpu.startswith("cortex") else "x86_64"
    found = probe.applied(cpuinfo.parse(text, arch), emulated(program(arch), arch, cpu))
    assert found.probe is not None
    assert false <= set(found.probe.false_claims)
    assert max(runnable(arch, found.features), key=lambda variant: variant.rank).name == best


@pytest.mark.parametrize("name", ["dash", "bash", "busybox"])
def test_the_whole_script_on_a_pretended_kunpeng_with_a_lesser_processor(
    tmp_path: Path, tools: Tools, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    root, folder = pretended(tmp_path / "root", "kunpeng-920"), tmp_path / "tmp"
    folder.mkdir()
    _needs_binfmt(builder.build("aarch64", probe.sources(), runner=tools.runner, store=tools.store))
    told = probing.survey_script(tools)
    monkeypatch.setattr(script, "text", lambda: told)
    output = run(shell(name), root, env={"QEMU_CPU": "cortex-a57", "TMPDIR": str(folder)})
    assert len(printed_block(output).encode()) <= LARGEST
    assert list(folder.iterdir()) == []
    profile = pasted.profile(output, name="far", where="-")
    assert profile.cpu.probe is not None
    assert {"atomics", "asimddp", "fphp", "asimdhp", "asimdrdm"} <= set(profile.cpu.probe.false_claims)
    assert [variant.name for variant in runnable("aarch64", profile.cpu.features)] == ["armv8.0"]


def _needs_binfmt(path: Path) -> None:
    try:
        subprocess.run([path], capture_output=True, check=True)
    except OSError as error:
        pytest.skip(f"arm64 programs cannot be run here: {error}")


def test_an_instruction_that_hangs_is_ended(tools: Tools, tmp_path: Path) -> None:
    arch = survey_this().arch
    wrong = {"x86_64": "1: jmp 1b", "aarch64": "1: b 1b"}.get(arch)
    if wrong is None:
        pytest.skip(f"no endless loop known for {arch}")
    fault = {"x86_64": "mov 0, %rax", "aarch64": "mov x1, #0; ldr x1, [x1]"}[arch]
    sources = dict(probe.sources())
    sources[f"{arch}.h"] += f'TRY(endless, "{wrong}")\nTRY(nowhere, "{fault}")\n'
    path = builder.build(arch, sources, runner=tools.runner, store=tools.store)
    outcome = probe.printed(ProcessRunner().run([str(path)], timeout=30).output)
    assert (outcome["endless"], outcome["nowhere"]) == ("hung", "died")


@dataclass(frozen=True)
class Mounted:
    """Folders that allow new files but no programs, and one that allows both."""

    noexec: Path
    good: Path


@pytest.fixture
def mounted(tmp_path: Path) -> Iterator[Mounted]:
    noexec, good = tmp_path / "noexec", tmp_path / "good"
    noexec.mkdir()
    good.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "noexec", "none", noexec], capture_output=True, check=False)
    if done.returncode:
        pytest.skip(f"nothing can be mounted here: {done.stderr.decode()}")
    try:
        yield Mounted(noexec, good)
    finally:
        subprocess.run(["umount", noexec], check=True)


def test_where_programs_may_not_start_the_next_folder_is_taken(
    tools: Tools, mounted: Mounted, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = probing.survey_script(tools)
    assert "/tmp /dev/shm" in told
    told = told.replace(" /tmp /dev/shm", f" {mounted.good} /dev/shm")
    monkeypatch.setattr(script, "text", lambda: told)
    output = run(shell("dash"), env={"TMPDIR": str(mounted.noexec)})
    profile = pasted.profile(output, name="x", where="-")
    assert profile.cpu.probe is not None
    assert [*mounted.noexec.iterdir(), *mounted.good.iterdir()] == []
    direct = probing.probed(surveys.here(), tools)
    assert replace(profile.cpu, allowed=None) == replace(direct.cpu, allowed=None)


def test_the_program_is_the_same_whenever_it_is_made(tools: Tools, tmp_path: Path, program: Program) -> None:
    known = program("aarch64").read_bytes()
    for name, text in probe.sources().items():
        (tmp_path / name).write_text(text)
    from ziglang import __file__ as package  # type: ignore[import-untyped]

    argv = [str(Path(package).parent / "zig"), "cc", *builder.flags("aarch64"), "probe.c", "-o", "again"]
    subprocess.run(argv, cwd=tmp_path, check=True, env={**os.environ, "ZIG_LOCAL_CACHE_DIR": str(tmp_path / "cache")})
    assert (tmp_path / "again").read_bytes() == known
    assert len(known) < 4096
