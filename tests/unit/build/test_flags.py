"""Command lines and cache keys."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.build.conftest import variant

from sampan.build import flags
from sampan.build.pins import engine_pin
from sampan.build.toolchain import BuildTools, Compiler
from sampan.plan.variants import all_variants

PIN = engine_pin()
ARM = PIN.architecture("aarch64")
COMPILER = Compiler(Path("/env/ziglang"), "0.17.1")
TOOLS = BuildTools(Path("/env/bin/cmake"), Path("/env/bin/ninja"))


def _configure(tree: Path = Path("/cache/tree")) -> list[str]:
    chosen = variant("armv8.2-dotprod", "generic+v8_2a+dotprod")
    return flags.configure(PIN, ARM, chosen, compiler=COMPILER, tools=TOOLS, tree=tree)


def test_configure_names_every_tool_and_folder_itself() -> None:
    argv = _configure()
    assert argv[:3] == ["/env/bin/cmake", "-G", "Ninja"]
    assert argv[argv.index("-S") + 1] == "/cache/tree/source"
    assert argv[argv.index("-B") + 1] == "/cache/tree/build"
    assert "-DCMAKE_MAKE_PROGRAM=/env/bin/ninja" in argv
    assert "-DSAMPAN_ZIG=/env/ziglang/zig" in argv


def test_only_the_kernels_get_the_variants_cpu() -> None:
    argv = _configure()
    assert "-DSAMPAN_CPU=generic+v8_2a+dotprod" in argv
    assert "-DCMAKE_C_FLAGS=-g0 -w -mcpu=generic" in argv
    assert "-DCMAKE_CXX_FLAGS=-g0 -w -mcpu=generic" in argv


def test_the_executable_is_static_stripped_and_fit_for_64_kib_pages() -> None:
    linker = next(word for word in _configure() if word.startswith("-DCMAKE_EXE_LINKER_FLAGS="))
    assert linker.split("=", 1)[1].split() == ["-static", "-s", "-Wl,-z,max-page-size=65536"]


def test_every_definition_of_the_pin_reaches_cmake() -> None:
    assert {f"-D{definition}" for definition in PIN.definitions} <= set(_configure())


def test_a_variants_own_definitions_come_last_so_that_they_win() -> None:
    chosen = replace(variant(), cmake=("GGML_LLAMAFILE=OFF",))
    argv = flags.configure(PIN, ARM, chosen, compiler=COMPILER, tools=TOOLS, tree=Path("/t"))
    assert argv[-1] == "-DGGML_LLAMAFILE=OFF"


def test_the_same_inputs_give_the_same_key() -> None:
    first, second = (flags.variant_key(flags.tree_key(PIN, COMPILER, ARM), variant()) for _ in range(2))
    assert first == second


def test_no_key_depends_on_where_tools_lie() -> None:
    elsewhere = Compiler(Path("/other/ziglang"), "0.17.1")
    assert flags.tree_key(PIN, elsewhere, ARM) == flags.tree_key(PIN, COMPILER, ARM)


@pytest.mark.parametrize(
    "changed",
    [
        flags.tree_key(replace(PIN, sha256="0" * 64), COMPILER, ARM),
        flags.tree_key(PIN, replace(COMPILER, version="0.18.0"), ARM),
        flags.tree_key(PIN, COMPILER, PIN.architecture("x86_64")),
        flags.tree_key(PIN, COMPILER, replace(ARM, floor="cortex_a57")),
        flags.tree_key(replace(PIN, definitions=()), COMPILER, ARM),
        flags.tree_key(replace(PIN, omit=()), COMPILER, ARM),
    ],
)
def test_whatever_changes_the_tree_changes_its_key(changed: dict[str, object]) -> None:
    assert changed != flags.tree_key(PIN, COMPILER, ARM)


def test_the_recipe_is_part_of_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    before = flags.tree_key(PIN, COMPILER, ARM)
    monkeypatch.setattr(flags, "recipe", lambda: {"project.cmake": b"changed"})
    assert flags.tree_key(PIN, COMPILER, ARM) != before


def test_variants_of_one_architecture_share_a_tree_and_differ_in_their_own_key() -> None:
    tree = flags.tree_key(PIN, COMPILER, ARM)
    keys = [str(flags.variant_key(tree, item)) for item in all_variants() if item.arch == "aarch64"]
    assert len(set(keys)) == len(keys) == 3


@pytest.mark.parametrize(
    ("cpus", "memory_gib", "expected"), [(2, 16, 2), (64, 16, 10), (4, 2, 1), (4, 0.5, 1), (1, 64, 1)]
)
def test_no_more_compilers_at_once_than_memory_can_feed(cpus: int, memory_gib: float, expected: int) -> None:
    assert flags.jobs(cpus, int(memory_gib * (1 << 30))) == expected
