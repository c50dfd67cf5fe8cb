"""Instructions: what counts as found, what leads to it, what guards it, and what that means for a CPU."""

from __future__ import annotations

import dataclasses
import random
import struct
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.audit.a64_file import (
    BASE,
    FMOV_HALF,
    HEADERS,
    LDADD,
    NOP,
    NOT_CODE,
    RET,
    SDOT,
    b,
    bl,
    cbz,
    flag_into,
    program,
    store_flag,
    write,
)

from sampan.audit import rules
from sampan.audit.closure import Closure
from sampan.audit.facts import ElfFacts
from sampan.audit.families import instructions
from sampan.audit.instructions import knowledge
from sampan.audit.instructions.census import census
from sampan.audit.instructions.facts import GUARDED, START, UNGUARDED, CodeFacts, Use
from sampan.audit.world import World
from sampan.spec.artefacts import Finding
from sampan.spec.target import CpuFacts, OsFacts, TargetProfile

NOWHERE = (NOP,) * 12  # so far that data there is no neighbour


def classes(folder: Path, words: Sequence[int], **more: Sequence[tuple[str, int, int]]) -> dict[str, str]:
    """Class by feature, of a program that begins with the first word."""
    uses = census(write(folder, words, **more), "aarch64", program=True).uses
    return {use.feature: use.reach for use in uses}


def test_what_the_entry_calls_is_reached_at_start(tmp_path: Path) -> None:
    found = census(write(tmp_path, [bl(2), RET, NOP, SDOT, RET]), "aarch64", program=True)
    (use,) = found.uses
    assert (use.feature, use.reach, use.count, use.root) == ("asimddp", START, 1, "entry")
    assert (use.address, use.offset) == (BASE + HEADERS + 12, HEADERS + 12)
    assert found.code_bytes == 20


def test_what_nothing_leads_to_is_unguarded(tmp_path: Path) -> None:
    assert classes(tmp_path, [RET, NOP, SDOT, RET]) == {"asimddp": UNGUARDED}


def test_a_library_has_no_entry(tmp_path: Path) -> None:
    path = write(tmp_path, [SDOT, RET])
    assert [use.reach for use in census(path, "aarch64", program=False).uses] == [UNGUARDED]


def test_a_branch_on_a_flag_guards(tmp_path: Path) -> None:
    words = [*flag_into(0, 0), cbz(2), SDOT, RET]
    assert classes(tmp_path, words) == {"asimddp": GUARDED}


def test_what_follows_the_guarded_part_is_not_guarded(tmp_path: Path) -> None:
    words = [*flag_into(0, 0), cbz(2), FMOV_HALF, SDOT, RET]
    assert classes(tmp_path, words) == {"asimdhp": GUARDED, "asimddp": START}


def test_a_guarded_call_does_not_lead_to_its_function(tmp_path: Path) -> None:
    words = [*flag_into(0, 0), cbz(2), bl(3), RET, NOP, SDOT, RET]
    assert classes(tmp_path, words) == {"asimddp": GUARDED}


def test_a_test_within_a_loop_guards_as_well(tmp_path: Path) -> None:
    """Two tests of one flag that lead to the same code, and a way back from behind it to both."""
    words = [*flag_into(0, 0), cbz(3), SDOT, RET, *flag_into(0, 6), cbz(-9), b(-6)]
    assert classes(tmp_path, words) == {"asimddp": GUARDED}


def test_a_flag_that_is_set_behind_the_branch_keeps_from_running_twice_only(tmp_path: Path) -> None:
    words = [*flag_into(0, 0), cbz(2), RET, *store_flag(5), SDOT, RET]
    assert classes(tmp_path, words) == {"asimddp": START}


def test_a_guard_of_a_static_variable_is_no_test_of_the_cpu(tmp_path: Path) -> None:
    words = [*flag_into(0, 0, acquire=True), cbz(2), SDOT, RET]
    assert classes(tmp_path, words) == {"asimddp": START}


def test_a_branch_on_an_argument_guards_nothing(tmp_path: Path) -> None:
    assert classes(tmp_path, [cbz(2), SDOT, RET]) == {"asimddp": START}


def test_bytes_among_bytes_that_are_no_code_are_data(tmp_path: Path) -> None:
    assert classes(tmp_path, [RET, *NOWHERE, NOT_CODE, SDOT, NOT_CODE]) == {}
    assert classes(tmp_path, [RET, *NOWHERE, NOT_CODE, *NOWHERE, SDOT, RET]) == {"asimddp": UNGUARDED}


def test_what_mapping_symbols_call_data_is_data(tmp_path: Path) -> None:
    words = [RET, NOP, SDOT, NOP, LDADD, RET]
    marks = (("$x", 0, 0), ("$d", 2, 0), ("$x", 3, 0))
    assert classes(tmp_path, words, symbols=marks) == {"atomics": UNGUARDED}


def test_the_name_of_a_variant_guards_and_the_function_is_named(tmp_path: Path) -> None:
    words = [RET, NOP, SDOT, RET, FMOV_HALF, RET]
    path = write(tmp_path, words, symbols=(("gemm_dotprod", 2, 2), ("other", 4, 2)))
    found = {use.feature: (use.reach, use.function) for use in census(path, "aarch64", program=True).uses}
    assert found == {"asimddp": (GUARDED, "gemm_dotprod"), "asimdhp": (UNGUARDED, "other")}


def test_a_variant_that_the_start_calls_is_not_excused_by_its_name(tmp_path: Path) -> None:
    words = [bl(2), RET, SDOT, RET]
    assert classes(tmp_path, words, symbols=(("gemm_dotprod", 2, 2),)) == {"asimddp": START}


@pytest.mark.parametrize(("word", "feature"), [(0x04E0E3E0, "sve"), (0xD9200908, "mte"), (0xD503447F, "sme")])
def test_the_unwinder_is_excused(tmp_path: Path, word: int, feature: str) -> None:
    """CNTD, STG and SMSTOP ZA: in every libgcc or libunwind, run only for frames that need them."""
    assert classes(tmp_path, [word, RET]) == {feature: GUARDED}


def test_loongarch_vectors_are_found(tmp_path: Path) -> None:
    jirl_ra, bl_2, vadd, xvadd = 0x4C000020, 0x54000800, 0x700A0C41, 0x740A0C41
    path = tmp_path / "program"
    path.write_bytes(program([bl_2, jirl_ra, vadd, jirl_ra, xvadd, jirl_ra], machine=258))
    found = {use.feature: use.reach for use in census(path, "loongarch64", program=True).uses}
    assert found == {"lsx": START, "lasx": UNGUARDED}


X86 = {
    "avx2": ("c5edfed1", "avx2"),
    "avx512": ("62f16d48fec1", "avx512f"),
    "popcnt": ("f3480fb8c1", "popcnt"),
    "crc32": ("f2480f38f1c1", "sse4_2"),
    "fma": ("c4e27598d0", "fma"),
    "bmi2": ("c4e2f3f5c0", "bmi2"),
    "sse3": ("f20f7cc1", "pni"),
    "ssse3": ("660f3800c1", "ssse3"),
    "cmpxchg16b": ("480fc70f", "cx16"),
    "vnni": ("62f26d4850c1", "avx512_vnni"),
    "amx": ("c4e27b49c0", "amx_tile"),
    "rep bsf": ("f3480fbcc1", ""),
    "sse2": ("660ffec1", ""),
}


@pytest.mark.parametrize("name", X86)
def test_x86_features_have_the_kernels_names(tmp_path: Path, name: str) -> None:
    code, feature = X86[name]
    data = bytes.fromhex(code) + b"\xc3"
    data += b"\x90" * (-len(data) % 4)
    path = tmp_path / "program"
    path.write_bytes(program(struct.unpack(f"<{len(data) // 4}I", data), machine=62))
    assert {use.feature for use in census(path, "x86_64", program=True).uses} == ({feature} if feature else set())


def test_x86_a_branch_on_a_flag_guards(tmp_path: Path) -> None:
    """cmpb $0, flag(%rip); je +4; vpaddd; ret"""
    data = bytes.fromhex("803df90f000000" + "7404" + "c5edfed1" + "c3" + "9090")
    path = tmp_path / "program"
    path.write_bytes(program(struct.unpack(f"<{len(data) // 4}I", data), machine=62))
    assert [use.reach for use in census(path, "x86_64", program=True).uses] == [GUARDED]


def use(feature: str, reach: str, address: int = 0x1000) -> Use:
    """One instruction."""
    return Use(feature, reach, 1, address, address, "f", "main" if reach == START else "")


def judge(path: str, uses: Sequence[Use], *, known: bool = True, bundle: str | None = None) -> list[Finding]:
    """The findings for an ARMv8.0 CPU."""
    facts = ElfFacts(64, True, "EM_AARCH64", "ELFOSABI_SYSV", "shared", code=CodeFacts(tuple(uses)))
    cpu = CpuFacts("D2000", ("asimd", "fp"), features_known=known)
    target = TargetProfile("d2000", "aarch64", OsFacts("kylin", "Kylin"), cpu, 65536)
    data = rules.load()
    world = World(target, data.arch["aarch64"], data, {path: facts}, {path: path.lstrip("/")}, bundle=bundle)
    return list(instructions.judge(path, world, Closure({})))


def test_one_finding_a_class_with_all_features() -> None:
    uses = [use("atomics", START, 0x2000), use("asimddp", START), use("asimdhp", UNGUARDED), use("sve", GUARDED)]
    found = judge("/x.so", [*uses, use("fp", START)])
    assert [(one.code, one.severity) for one in found] == [
        ("isa.start", "error"),
        ("isa.unguarded", "warning"),
        ("isa.guarded", "info"),
    ]
    values = dict(found[0].values)
    assert (values["features"], values["address"], values["root"]) == ("atomics ×1, asimddp ×1", "0x1000", "main")


def test_a_class_of_cpus_gives_no_error() -> None:
    assert [one.severity for one in judge("/x.so", [use("atomics", START)], known=False)] == ["warning"]


def test_what_the_cpu_has_is_no_finding() -> None:
    assert judge("/x.so", [use("fp", START)]) == []


def test_a_well_known_dispatcher_excuses_what_the_start_does_not_reach() -> None:
    found = judge("/lib/libcrypto.so.3", [use("sha3", UNGUARDED), use("sm4", START)])
    assert [one.code for one in found] == ["isa.start", "isa.guarded"]
    assert "OPENSSL_armcap_P" in dict(found[1].values)["root"]


ENGINE = "/b/engine/llama.cpp/armv8.2-dotprod/llama-server"


def test_a_variant_of_the_bundle_may_use_what_it_declares() -> None:
    assert judge(ENGINE, [use("asimddp", START), use("atomics", UNGUARDED), use("sve", GUARDED)], bundle="/b") == []


def test_a_variant_of_the_bundle_may_use_nothing_else() -> None:
    (found,) = judge(ENGINE, [use("asimddp", START), use("i8mm", UNGUARDED)], bundle="/b")
    assert (found.code, found.severity) == ("isa.variant", "error")
    assert dict(found.values)["features"] == "i8mm ×1"


@pytest.mark.parametrize(
    "name", ["__aarch64_ldadd4_acq_rel", "sgemm_kernel_HASWELL", "foo_avx512", "BYTE_add_AVX512_SKX"]
)
def test_names_of_variants_are_known(name: str) -> None:
    assert knowledge.load().variant(f"{name}+0x10")


@pytest.mark.parametrize("name", ["main", "memcpy", "save_all", "resolve", "__aarch64_have_lse"])
def test_other_names_are_not(name: str) -> None:
    assert not knowledge.load().variant(name)


WHOLE = program([bl(2), RET, *flag_into(0, 2), cbz(2), SDOT, RET] * 40, symbols=(("$x", 0, 0), ("f", 0, 2)))


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_damage_is_survived(data: st.DataObject) -> None:
    """Whatever the numbers in the tables say, the census ends and raises nothing."""
    broken = bytearray(WHOLE[: data.draw(st.integers(0, len(WHOLE)))])
    rng = random.Random(data.draw(st.integers(0, 1 << 30)))
    places = [*range(64 + 56), *range(len(WHOLE) - 64 * 4 - 96, len(WHOLE))]
    for _ in range(data.draw(st.integers(0, 8))):
        place = rng.choice(places)
        if place < len(broken):
            broken[place] = rng.choice((0, 1, 0x7F, 0xFF, rng.randrange(256)))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "broken"
        path.write_bytes(bytes(broken) or b"\0")
        for arch in ("aarch64", "x86_64", "loongarch64"):
            assert dataclasses.is_dataclass(census(path, arch, program=True))
