"""Building what a plan asks for: from the store where it is there, going on where it stopped."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.fakes.fetchers import OneFileFetcher
from tests.unit.build.conftest import TOP, Builder, archive, elf, plan, variant

from sampan.build import engine
from sampan.build.pins import Licence, engine_pin
from sampan.build.toolchain import BuildTools, Compiler
from sampan.edge.progress import SilentProgress
from sampan.edge.store import DiskStore
from sampan.errors import BuildError, IncompatibleError
from sampan.spec.artefacts import EngineBuild
from sampan.spec.plan import Plan, Variant
from sampan.spec.ports import Completed

LOW, HIGH = variant(), variant("armv8.2-dotprod", "generic+v8_2a+dotprod")
FILES = {"CMakeLists.txt": b"project(x)", "LICENSE": b"MIT"}


@pytest.fixture(autouse=True)
def small_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pin for an archive of our own; a compiler that only has licences."""
    (tmp_path / "ziglang").mkdir()
    (tmp_path / "ziglang/COPYRIGHT").write_text("free\n", encoding="utf-8")
    licences = (Licence("LICENSE-engine", "source", "LICENSE"), Licence("LICENSE-libc", "compiler", "COPYRIGHT"))
    pin = replace(engine_pin(), top=TOP, licences=licences, changes={})
    monkeypatch.setattr(engine, "engine_pin", lambda: pin)
    monkeypatch.setattr(engine, "find_compiler", lambda: Compiler(tmp_path / "ziglang", "0.17.1"))
    monkeypatch.setattr(engine, "find_build_tools", lambda: BuildTools(Path("/env/cmake"), Path("/env/ninja")))


def _build(builder: Builder, tmp_path: Path, *variants: Variant, made: Plan | None = None) -> EngineBuild:
    source = tmp_path / "s.tar.gz"
    fetcher = OneFileFetcher(source if source.exists() else archive(source, FILES))
    store = DiskStore(tmp_path / "store")
    asked = made or plan(*variants)
    return engine.build(asked, runner=builder, fetcher=fetcher, store=store, progress=SilentProgress())


def _made(tmp_path: Path) -> list[Path]:
    return list((tmp_path / "store/made/engine").rglob("llama-server"))


def test_each_variant_becomes_an_executable_of_its_own(builder: Builder, tmp_path: Path) -> None:
    built = _build(builder, tmp_path, LOW, HIGH)
    assert [item.name for item in built.variants] == ["armv8.0", "armv8.2-dotprod"]
    assert len({item.path for item in built.variants}) == 2
    for item in built.variants:
        assert Path(item.path).stat().st_mode & 0o777 == 0o755
        assert item.size_bytes == len(elf())
    assert built.compiler == "zig 0.17.1"
    assert built.arch == "aarch64"


def test_all_variants_go_through_one_tree(builder: Builder, tmp_path: Path) -> None:
    _build(builder, tmp_path, LOW, HIGH)
    assert len(list((tmp_path / "store/scratch/engine").iterdir())) == 1
    cpus = [word for call in builder.calls for word in call if word.startswith("-DSAMPAN_CPU=")]
    assert cpus == ["-DSAMPAN_CPU=generic", "-DSAMPAN_CPU=generic+v8_2a+dotprod"]


def test_what_was_built_is_neither_built_nor_fetched_again(builder: Builder, tmp_path: Path) -> None:
    first = _build(builder, tmp_path, LOW)
    calls = len(builder.calls)
    second = engine.build(
        plan(LOW),
        runner=builder,
        fetcher=OneFileFetcher(None),
        store=DiskStore(tmp_path / "store"),
        progress=SilentProgress(),
    )
    assert second == first
    assert len(builder.calls) == calls


def test_one_more_variant_builds_only_that_one(builder: Builder, tmp_path: Path) -> None:
    _build(builder, tmp_path, LOW)
    _build(builder, tmp_path, LOW, HIGH)
    assert builder.ninja_calls() == 2


def test_the_licences_travel(builder: Builder, tmp_path: Path) -> None:
    built = _build(builder, tmp_path, LOW)
    texts = {Path(path).name: Path(path).read_text(encoding="utf-8") for path in built.licences}
    assert texts == {"LICENSE-engine": "MIT", "LICENSE-libc": "free\n"}


def test_a_failed_compilation_keeps_the_tree_and_gives_nothing(builder: Builder, tmp_path: Path) -> None:
    ok = Completed(("cmake",), 0, "")
    builder.answers = [ok, Completed(("ninja",), 1, "/t/a.cpp:1:1: error: no such thing\n")]
    with pytest.raises(BuildError, match="no such thing"):
        _build(builder, tmp_path, LOW)
    assert _made(tmp_path) == []
    assert len(list((tmp_path / "store/scratch/engine").glob("*/source/CMakeLists.txt"))) == 1
    assert len(_build(builder, tmp_path, LOW).variants) == 1


def test_an_interrupted_build_leaves_nothing_that_looks_finished(builder: Builder, tmp_path: Path) -> None:
    builder.answers = [Completed(("cmake",), 0, ""), KeyboardInterrupt()]
    with pytest.raises(KeyboardInterrupt):
        _build(builder, tmp_path, LOW)
    assert [path.name for path in (tmp_path / "store/made/engine").iterdir()] == []
    assert len(_build(builder, tmp_path, LOW).variants) == 1


def test_a_finished_variant_survives_the_failure_of_the_next(builder: Builder, tmp_path: Path) -> None:
    ok = Completed(("x",), 0, "")
    builder.answers = [ok, ok, ok, Completed(("ninja",), 1, "a.c:1:1: error: x")]
    with pytest.raises(BuildError):
        _build(builder, tmp_path, LOW, HIGH)
    assert len(_made(tmp_path)) == 1
    before = builder.ninja_calls()
    _build(builder, tmp_path, LOW, HIGH)
    assert builder.ninja_calls() == before + 1


def test_a_fresh_folder_that_cannot_be_configured_is_an_error_at_once(builder: Builder, tmp_path: Path) -> None:
    builder.answers = [Completed(("cmake",), 1, "CMake Error: no compiler\n")]
    with pytest.raises(BuildError, match="no compiler"):
        _build(builder, tmp_path, LOW)
    assert len(builder.calls) == 1


def test_a_folder_that_a_killed_run_left_unusable_is_made_anew_once(builder: Builder, tmp_path: Path) -> None:
    _build(builder, tmp_path, LOW)
    tree = next((tmp_path / "store/scratch/engine").iterdir())
    (tree / "build/CMakeCache.txt").write_text("half", encoding="utf-8")
    builder.answers = [Completed(("cmake",), 1, "CMake Error: broken cache\n")]
    assert len(_build(builder, tmp_path, HIGH).variants) == 1
    assert not (tree / "build/CMakeCache.txt").exists()


def test_a_changed_recipe_file_in_the_tree_is_written_again(builder: Builder, tmp_path: Path) -> None:
    _build(builder, tmp_path, LOW)
    recipe = next((tmp_path / "store/scratch/engine").glob("*/recipe/project.cmake"))
    whole = recipe.read_bytes()
    recipe.write_bytes(whole[:50])
    _build(builder, tmp_path, HIGH)
    assert recipe.read_bytes() == whole


def test_an_executable_that_needs_more_than_a_kernel_is_not_kept(builder: Builder, tmp_path: Path) -> None:
    builder.executable = elf(segments=[(1, 0x10000), (3, 1)])
    with pytest.raises(BuildError, match="PT_INTERP"):
        _build(builder, tmp_path, LOW)
    assert _made(tmp_path) == []


def test_a_plan_for_another_engine_is_refused(builder: Builder, tmp_path: Path) -> None:
    with pytest.raises(IncompatibleError) as caught:
        _build(builder, tmp_path, made=plan(LOW, engine="onnxruntime"))
    assert caught.value.key == "build.engine"


def test_a_plan_for_an_unknown_architecture_is_refused(builder: Builder, tmp_path: Path) -> None:
    strange = variant(arch="riscv64")
    with pytest.raises(IncompatibleError) as caught:
        _build(builder, tmp_path, made=plan(strange, arch="riscv64"))
    assert caught.value.key == "build.architecture"
    assert builder.calls == []
