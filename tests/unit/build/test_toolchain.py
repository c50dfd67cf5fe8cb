"""Tools come from this environment's packages and from nowhere else."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from sampan.build import toolchain
from sampan.edge.store import DiskStore
from sampan.errors import ExitCode, MissingToolError


def test_the_workshops_own_packages_have_the_tools() -> None:
    assert toolchain.find_compiler().zig.is_file()
    tools = toolchain.find_build_tools()
    assert tools.cmake.is_file()
    assert tools.ninja.is_file()


@pytest.mark.parametrize("package", ["ziglang", "cmake", "ninja"])
def test_a_missing_package_is_named_with_the_way_to_get_it(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == package else find(name))
    with pytest.raises(MissingToolError) as caught:
        toolchain.find_compiler()
        toolchain.find_build_tools()
    assert caught.value.key == "build.tool"
    assert caught.value.exit_code == ExitCode.MISSING_TOOL
    assert package in caught.value.message
    assert "sampan[workshop]" in caught.value.hint


def test_a_package_without_its_program_counts_as_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolchain, "_package_folder", lambda _: tmp_path)
    with pytest.raises(MissingToolError):
        toolchain.find_compiler()


def test_the_users_compiler_settings_do_not_reach_the_build(tmp_path: Path) -> None:
    compiler = toolchain.Compiler(tmp_path, "0.17.1")
    laid_over = toolchain.environment(DiskStore(tmp_path), compiler)
    for name in ("CFLAGS", "CXXFLAGS", "LDFLAGS", "CPATH", "LIBRARY_PATH", "CMAKE_TOOLCHAIN_FILE"):
        assert laid_over[name] == ""
    assert laid_over["SOURCE_DATE_EPOCH"] == "0"
    assert Path(laid_over["ZIG_GLOBAL_CACHE_DIR"]).is_relative_to(tmp_path)
