"""The build with the real tools: variants in one tree, killed and gone on with, two at a time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.integration.build_parts import VARIANTS, archive, build, files

from sampan.errors import BuildError

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parents[2]


def _process(store: Path, source: Path) -> subprocess.Popen[str]:
    argv = [sys.executable, "-m", "tests.integration.build_parts", str(store), str(source)]
    return subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def _tree(store: Path) -> Path:
    (tree,) = (store / "scratch/engine").iterdir()
    return tree


def _objects(store: Path) -> dict[str, int]:
    """Finished objects and when they were written."""
    folder = store / "scratch/engine"
    return {path.name: path.stat().st_mtime_ns for path in folder.rglob("*.c.o")} if folder.is_dir() else {}


def test_variants_differ_in_their_kernels_alone(tmp_path: Path) -> None:
    source = archive(tmp_path / "s.tar.gz", files())
    built = build(tmp_path / "store", source, *VARIANTS[:2])
    low, high = (Path(item.path).read_bytes() for item in built.variants)
    assert low != high
    log = (_tree(tmp_path / "store") / "build.log").read_text(encoding="utf-8")
    assert "kernel.c.o" in log
    assert "main.c.o" not in log


def test_going_back_to_a_variant_gives_the_same_bytes(tmp_path: Path) -> None:
    source = archive(tmp_path / "s.tar.gz", files())
    first = build(tmp_path / "a", source, *VARIANTS)
    again = build(tmp_path / "b", source, *reversed(VARIANTS))
    assert {item.name: item.sha256 for item in first.variants} == {item.name: item.sha256 for item in again.variants}


def test_the_place_of_the_store_may_have_spaces_and_any_letters(tmp_path: Path) -> None:
    source = archive(tmp_path / "s.tar.gz", files())
    plain = build(tmp_path / "store", source).variants[0].sha256
    assert build(tmp_path / "缓 存 (1)", source).variants[0].sha256 == plain


def test_a_compiler_error_is_quoted_with_its_file_and_line(tmp_path: Path) -> None:
    source = archive(tmp_path / "s.tar.gz", {**files(), "main.c": "void _start(void) {\n    gone();\n}\n"})
    with pytest.raises(BuildError, match=r"main\.c:2:5: error: .*'gone'"):
        build(tmp_path / "store", source)
    assert not list((tmp_path / "store/made/engine").rglob("llama-server"))


def test_an_undefined_symbol_is_named(tmp_path: Path) -> None:
    source = archive(tmp_path / "s.tar.gz", {**files(), "kernel.c": "int other(void) { return 0; }\n"})
    with pytest.raises(BuildError, match="undefined symbol: kernel"):
        build(tmp_path / "store", source)


def test_a_configuration_error_is_quoted(tmp_path: Path) -> None:
    wrong = files()["CMakeLists.txt"] + 'message(FATAL_ERROR "no such option")\n'
    source = archive(tmp_path / "s.tar.gz", {**files(), "CMakeLists.txt": wrong})
    with pytest.raises(BuildError, match="no such option"):
        build(tmp_path / "store", source)


def test_a_killed_build_goes_on_where_it_stopped(tmp_path: Path) -> None:
    source, store = archive(tmp_path / "s.tar.gz", files(parts=12)), tmp_path / "store"
    clean = build(tmp_path / "clean", source).variants[0].sha256
    running = _process(store, source)
    end = time.monotonic() + 60
    while len(_objects(store)) < 4 and running.poll() is None and time.monotonic() < end:
        time.sleep(0.02)
    running.send_signal(signal.SIGKILL)
    running.communicate()
    assert running.returncode == -signal.SIGKILL
    done = _objects(store)
    assert 4 <= len(done) < 12, "it was killed in the middle"
    assert not list((store / "made/engine").glob("[!.]*"))

    assert build(store, source).variants[0].sha256 == clean
    kept = [name for name, written in done.items() if _objects(store)[name] == written]
    assert len(kept) >= len(done) - 2 - (os.cpu_count() or 1)  # those in flight are compiled again
    assert list((store / "made/engine").glob(".*")) == []


def test_a_half_written_object_and_source_are_made_again(tmp_path: Path) -> None:
    late, store = tmp_path / "late.h", tmp_path / "store"
    source = archive(tmp_path / "s.tar.gz", {**files(), "main.c": f'#include "{late}"\n' + files()["main.c"]})
    with pytest.raises(BuildError, match=r"'.*late\.h' file not found"):
        build(store, source)
    tree = _tree(store)
    half = tree / "build/CMakeFiles/llama-server.dir/main.c.o"
    half.write_bytes(b"\x7fELF\x02\x01\x01")  # as a compiler leaves it that dies while writing
    (tree / "source").rename(tree / "source.partial")
    (tree / "source.partial/main.c").write_text("int cut", encoding="utf-8")

    late.write_text("/* nothing */\n", encoding="utf-8")
    assert build(store, source).variants[0].sha256 == build(tmp_path / "clean", source).variants[0].sha256
    assert not (tree / "source.partial").exists()


def test_two_processes_share_one_build(tmp_path: Path) -> None:
    source, store = archive(tmp_path / "s.tar.gz", files(parts=4)), tmp_path / "store"
    both = [_process(store, source) for _ in range(2)]
    outputs = [running.communicate(timeout=120) for running in both]
    assert [running.returncode for running in both] == [0, 0], outputs
    assert outputs[0][0] == outputs[1][0]
    assert sum(path.is_dir() for path in (store / "made/engine").iterdir()) == 1
