from __future__ import annotations

import pytest

from sampan.plan.variants import all_variants
from sampan.rehearse import cpu
from sampan.spec.target import CpuFacts, OsFacts, TargetProfile
from sampan.survey import known

AVX512 = frozenset({"avx512f", "avx512bw", "avx512vl", "avx512dq", "avx512cd", "avx512_vnni"})
HASWELL = next(item.features for item in cpu.table().cpus if item.name == "Haswell")


def target(arch: str, *features: str, is_known: bool = True) -> TargetProfile:
    facts = CpuFacts("some CPU", tuple(sorted(features)), is_known)
    return TargetProfile("some-target", arch, OsFacts("linux", "Linux"), facts, 4096)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("kylin-v10-sp3-kunpeng920", "cortex-a76"),
        ("kylin-v10-phytium-d2000", "cortex-a57"),
        ("phytium-d3000", "cortex-a76"),
        ("generic-aarch64", "cortex-a57"),
        ("generic-x86-64", "Nehalem"),
        ("hygon", "Haswell"),
        ("zhaoxin", "IvyBridge"),
    ],
)
def test_every_known_target_gets_the_cpu_of_its_class(name: str, expected: str) -> None:
    found = cpu.emulated(known.load(name))
    assert found is not None
    assert found.name == expected
    assert found.exceeds == () or not known.load(name).cpu.features_known


def test_what_differs_from_kunpeng_is_said() -> None:
    found = cpu.emulated(known.load("kylin-v10-sp3-kunpeng920"))
    assert found is not None
    assert (found.adds, found.exceeds) == (("lrcpc",), ())
    assert found.lacks == ("asimdfhm", "fcma", "jscvt")


def test_no_cpu_has_what_the_target_could_not_run() -> None:
    without_dotprod = target("aarch64", "fp", "asimd", "crc32", "atomics", "asimdrdm", "fphp", "asimdhp")
    found = cpu.emulated(without_dotprod)
    assert found is not None
    assert found.name == "cortex-a57"


def test_features_that_are_only_a_floor_get_the_floor() -> None:
    rich = target("aarch64", *next(item.features for item in cpu.table().cpus if item.name == "cortex-a76"))
    poor = target("aarch64", *rich.cpu.features, is_known=False)
    names = [found.name for found in (cpu.emulated(rich), cpu.emulated(poor)) if found]
    assert names == ["cortex-a76", "cortex-a57"]


def test_an_architecture_without_a_table_has_no_stand_in() -> None:
    assert cpu.emulated(target("loongarch64", "lsx")) is None


def test_a_native_cpu_shows_only_what_the_target_has() -> None:
    machine = HASWELL | AVX512 | {"constant_tsc"}
    profile = target("x86_64", *HASWELL)
    assert cpu.exceeds(profile, machine)
    found = cpu.native(profile, machine)
    assert found.exceeds == tuple(sorted(AVX512))
    assert found.shown == HASWELL | {"constant_tsc"}
    assert not cpu.exceeds(target("x86_64", *machine), machine)


def test_the_maximal_cpu_is_not_in_the_table() -> None:
    assert not {"max", "host"} & {item.name for item in cpu.table().cpus}
    assert all(item.hwcap for item in cpu.table().cpus)


def test_whatever_a_variant_requires_is_decisive() -> None:
    for variant in all_variants():
        assert set(variant.requires) <= cpu.table().decisive[variant.arch], variant.name


def test_every_architecture_has_exactly_one_floor() -> None:
    for arch in cpu.table().program:
        assert sum(item.floor for item in cpu.table().cpus if item.arch == arch) == 1


def test_the_registered_pattern_is_that_of_an_elf_header() -> None:
    assert cpu.binfmt_magic("aarch64").startswith(r"\x7f\x45\x4c\x46\x02\x01\x01\x00")
    assert cpu.binfmt_magic("aarch64").endswith(r"\x02\x00\xb7\x00")
    assert cpu.BINFMT_MASK.count("x") == cpu.binfmt_magic("x86_64").count("x") == 20
