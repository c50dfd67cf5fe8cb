"""What the audit says of a program and a CPU, and what happens when that CPU (under qemu-user) runs it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib import resources
from importlib.util import find_spec
from pathlib import Path

import pytest
from tests.integration import isa_programs

from sampan.audit.audit import audit
from sampan.spec.target import CpuFacts, OsFacts, TargetProfile

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(find_spec("ziglang") is None, reason="the compiler (package ziglang) is not installed"),
]
_DATA = tomllib.loads((resources.files("sampan") / "data" / "emulated_cpus.toml").read_text(encoding="utf-8"))
CPUS = {cpu["name"]: cpu for cpu in _DATA["cpu"]}
_PENRYN = ["cmov", "cx8", "fxsr", "lahf_lm", "mmx", "pni", "sse", "sse2", "sse4_1", "ssse3"]
_WESTMERE = [*_PENRYN, "aes", "cx16", "pclmulqdq", "popcnt", "sse4_2"]
_BROADWELL = [
    *_WESTMERE,
    "abm",
    "adx",
    "avx",
    "avx2",
    "bmi1",
    "bmi2",
    "f16c",
    "fma",
    "fsgsbase",
    "movbe",
    "rdrand",
    "xsave",
]
# Not for rehearsals, so that their features stand here: what the survey's probe could execute under this emulator.
CPUS["Penryn"] = {"arch": "x86_64", "qemu": "Penryn", "features": _PENRYN}
CPUS["Westmere"] = {"arch": "x86_64", "qemu": "Westmere", "features": _WESTMERE}
CPUS["Broadwell"] = {"arch": "x86_64", "qemu": "Broadwell", "features": _BROADWELL}
CPUS["EPYC"] = {"arch": "x86_64", "qemu": "EPYC", "features": [*_BROADWELL, "rdseed", "sse4a"]}
CPUS["LA464"] = {"arch": "loongarch64", "qemu": "la464", "features": []}  # qemu 7.2 has no vectors for it
EMULATORS = {
    **{arch: one["program"] for arch, one in _DATA["qemu"].items()},
    "loongarch64": "qemu-loongarch64-static",
}
CLEAN, SIGILL = "clean", "illegal instruction"

# What happens is given for each pair, so that a change of the emulator cannot move the audit's verdict unseen.
RUNS: dict[tuple[str, str], str] = {
    ("a64-plain", "cortex-a57"): CLEAN,
    ("a64-lse-constructor", "cortex-a57"): SIGILL,
    ("a64-lse-constructor", "cortex-a76"): CLEAN,
    ("a64-lse-main", "cortex-a57"): SIGILL,
    ("a64-lse-main", "a64fx"): CLEAN,
    ("a64-lse-outline", "cortex-a57"): CLEAN,
    ("a64-lse-outline", "cortex-a76"): CLEAN,
    ("a64-dotprod-main", "cortex-a57"): SIGILL,
    ("a64-dotprod-main", "cortex-a76"): CLEAN,
    ("a64-dotprod-main", "a64fx"): SIGILL,
    ("a64-dotprod-asked", "cortex-a57"): CLEAN,
    ("a64-dotprod-asked", "cortex-a76"): CLEAN,
    ("a64-dotprod-flag", "cortex-a57"): CLEAN,
    ("a64-dotprod-flag", "a64fx"): CLEAN,
    ("a64-fp16-main", "cortex-a57"): SIGILL,
    ("a64-fp16-main", "cortex-a76"): CLEAN,
    ("a64-fp16-constructor", "cortex-a57"): SIGILL,
    ("a64-fp16-constructor", "cortex-a76"): CLEAN,
    ("a64-rdm-main", "cortex-a57"): SIGILL,
    ("a64-rdm-main", "cortex-a76"): CLEAN,
    ("a64-rcpc-main", "cortex-a57"): SIGILL,
    ("a64-rcpc-main", "cortex-a76"): CLEAN,
    ("a64-rcpc-main", "a64fx"): SIGILL,
    ("a64-i8mm-main", "cortex-a76"): SIGILL,
    ("a64-bf16-flag", "cortex-a76"): CLEAN,
    ("a64-sve-constructor", "cortex-a76"): SIGILL,
    ("a64-sve-constructor", "a64fx"): CLEAN,
    ("a64-aes-main", "cortex-a57"): CLEAN,
    ("a64-dotprod-unused", "cortex-a57"): CLEAN,
    ("x86-plain", "Nehalem"): CLEAN,
    ("x86-popcnt-main", "Nehalem"): CLEAN,
    ("x86-avx2-main", "Nehalem"): SIGILL,
    ("x86-avx2-main", "IvyBridge"): SIGILL,
    ("x86-avx2-main", "Haswell"): CLEAN,
    ("x86-avx2-asked", "Nehalem"): CLEAN,
    ("x86-avx2-asked", "Haswell"): CLEAN,
    ("x86-avx2-flag", "Nehalem"): CLEAN,
    ("x86-fma-constructor", "Nehalem"): SIGILL,
    ("x86-fma-constructor", "Haswell"): CLEAN,
    ("x86-bmi2-main", "IvyBridge"): SIGILL,
    ("x86-bmi2-main", "Haswell"): CLEAN,
    ("x86-avx512-main", "Haswell"): SIGILL,
    ("x86-avx2-unused", "Nehalem"): CLEAN,
    ("x86-fma-constructor", "IvyBridge"): SIGILL,
    ("x86-avx2-flag", "IvyBridge"): CLEAN,
    ("x86-avx2-flag", "Haswell"): CLEAN,
    ("x86-bmi2-main", "Nehalem"): SIGILL,
    ("x86-sse41-main", "Penryn"): CLEAN,
    ("x86-sse42-constructor", "Penryn"): SIGILL,
    ("x86-sse42-constructor", "Westmere"): CLEAN,
    ("x86-popcnt-main", "Penryn"): SIGILL,
    ("x86-aes-main", "Nehalem"): SIGILL,
    ("x86-aes-main", "Westmere"): CLEAN,
    ("x86-avx-main", "Westmere"): SIGILL,
    ("x86-avx-main", "SandyBridge"): CLEAN,
    ("x86-avx2-main", "SandyBridge"): SIGILL,
    ("x86-avx2-flag", "SandyBridge"): CLEAN,
    ("x86-f16c-main", "SandyBridge"): SIGILL,
    ("x86-f16c-main", "IvyBridge"): CLEAN,
    ("x86-adx-constructor", "Haswell"): SIGILL,
    ("x86-adx-constructor", "Broadwell"): CLEAN,
    ("x86-sse4a-main", "Broadwell"): SIGILL,
    ("x86-sse4a-main", "EPYC"): CLEAN,
    ("x86-avx2-main", "EPYC"): CLEAN,
    ("x86-avx512-main", "EPYC"): SIGILL,
    ("la-plain", "LA464"): CLEAN,
    ("la-lsx-main", "LA464"): SIGILL,
    ("la-lasx-constructor", "LA464"): SIGILL,
    ("la-lsx-unused", "LA464"): CLEAN,
}


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A minute and a half of compiling the first time, seconds afterwards."""
    return isa_programs.build(tmp_path_factory.mktemp("isa"))


def profile(cpu: str) -> TargetProfile:
    """A machine with that CPU, whose features are all known."""
    arch, features = CPUS[cpu]["arch"], tuple(CPUS[cpu]["features"])
    return TargetProfile(cpu, arch, OsFacts("linux", "Linux"), CpuFacts(cpu, features), 4096)


def codes(program: Path, cpu: str) -> dict[str, str]:
    """Severity by code, of the rules on instructions."""
    return {f.code: f.severity for f in audit([program], profile(cpu)).findings if f.code.startswith("isa.")}


@pytest.mark.parametrize(("name", "cpu"), RUNS)
def test_the_verdict_is_what_happens(programs: Path, name: str, cpu: str) -> None:
    emulator = EMULATORS[CPUS[cpu]["arch"]]
    if shutil.which(emulator) is None:
        pytest.skip(f"{emulator} (package qemu-user-static) is not on this machine")
    if (
        cpu == "LA464"
        and b"version 7." not in subprocess.run([emulator, "--version"], capture_output=True, check=False).stdout
    ):
        pytest.skip(f"this {emulator} may have vectors for {cpu}: only version 7 is known to have none")
    ran = subprocess.run([emulator, "-cpu", CPUS[cpu]["qemu"], programs / name], capture_output=True, check=False)
    happened = {0: CLEAN, -4: SIGILL, 132: SIGILL}[ran.returncode]
    said = SIGILL if codes(programs / name, cpu).get("isa.start") == "error" else CLEAN
    assert (said, happened) == (RUNS[name, cpu], RUNS[name, cpu])


@pytest.mark.parametrize(
    ("name", "cpu", "expected"),
    [
        ("a64-plain", "cortex-a57", {"isa.guarded": "info"}),
        ("a64-dotprod-flag", "cortex-a57", {"isa.guarded": "info"}),
        ("a64-dotprod-asked", "cortex-a57", {"isa.guarded": "info"}),
        ("a64-lse-outline", "cortex-a57", {"isa.guarded": "info"}),
        ("a64-dotprod-unused", "cortex-a57", {"isa.unguarded": "warning"}),
        ("a64-dotprod-unused", "cortex-a76", {}),
        ("a64-dotprod-main", "cortex-a76", {}),
        ("x86-avx2-asked", "Nehalem", {"isa.guarded": "info"}),
        ("x86-avx2-flag", "Nehalem", {"isa.guarded": "info"}),
        ("x86-avx2-unused", "Nehalem", {"isa.unguarded": "warning"}),
        ("x86-plain", "Nehalem", {}),
    ],
)
def test_each_class_has_its_finding(programs: Path, name: str, cpu: str, expected: dict[str, str]) -> None:
    found = codes(programs / name, cpu)
    if name.startswith("a64"):
        found.pop("isa.guarded", None)  # the unwinder that zig links has some, see test_the_unwinder_is_excused
        expected = {code: severity for code, severity in expected.items() if code != "isa.guarded"}
    assert found == expected


@pytest.mark.parametrize(
    ("name", "features", "expected"),
    [
        ("la-plain", (), {}),
        ("la-lsx-main", (), {"isa.start": "error"}),
        ("la-lsx-main", ("lsx",), {}),
        ("la-lasx-constructor", ("lsx",), {"isa.start": "error"}),
        ("la-lsx-unused", (), {"isa.unguarded": "warning"}),
    ],
)
def test_loongarch_vectors_are_judged(
    programs: Path, name: str, features: tuple[str, ...], expected: dict[str, str]
) -> None:
    target = TargetProfile("la", "loongarch64", OsFacts("linux", "Linux"), CpuFacts("LA464", features), 16384)
    found = audit([programs / name], target).findings
    assert {one.code: one.severity for one in found if one.code.startswith("isa.")} == expected


def test_a_call_through_a_pointer_is_only_warned_of(programs: Path) -> None:
    """What the documents say: such a program may die, and the audit cannot know."""
    assert codes(programs / "a64-dotprod-pointer", "cortex-a57")["isa.unguarded"] == "warning"


def test_a_class_of_cpus_is_only_warned_of(programs: Path) -> None:
    """A generic profile knows the least that its CPUs have, not what they lack."""
    cpu = CpuFacts("any", ("asimd", "fp"), features_known=False)
    target = TargetProfile("any", "aarch64", OsFacts("linux", "Linux"), cpu, 4096)
    found = audit([programs / "a64-dotprod-main"], target).findings
    assert ("isa.start", "warning") in [(finding.code, finding.severity) for finding in found]


def test_the_finding_names_the_place(programs: Path) -> None:
    found = audit([programs / "a64-lse-constructor"], profile("cortex-a57")).findings
    values = dict(next(finding for finding in found if finding.code == "isa.start").values)
    assert values["features"] == "atomics ×1"
    assert values["root"] == ".init_array"
    data = (programs / "a64-lse-constructor").read_bytes()
    assert int.from_bytes(data[int(values["offset"], 16) :][:4], "little") & 0x3F208C00 == 0x38200000
