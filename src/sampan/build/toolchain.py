"""The compiler and build tools of this Python environment: never what happens to be on PATH."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from sampan.errors import MissingToolError
from sampan.spec.ports import Store

# What would change or break a build when it is set in the user's environment; an empty value counts as unset.
_FOREIGN = (
    *("CFLAGS", "CXXFLAGS", "CPPFLAGS", "LDFLAGS", "CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "LIBRARY_PATH"),
    *("CMAKE_GENERATOR", "CMAKE_TOOLCHAIN_FILE", "CMAKE_PREFIX_PATH", "NINJAFLAGS"),
    *("CMAKE_C_COMPILER_LAUNCHER", "CMAKE_CXX_COMPILER_LAUNCHER"),
)


@dataclass(frozen=True)
class Compiler:
    """``zig`` of the package ``ziglang``; ``folder`` holds it, its libraries and their licences."""

    folder: Path
    version: str

    @property
    def zig(self) -> Path:
        """The executable."""
        return self.folder / "zig"

    @property
    def label(self) -> str:
        """For people and for cache keys."""
        return f"zig {self.version}"


@dataclass(frozen=True)
class BuildTools:
    """Configures and runs a build."""

    cmake: Path
    ninja: Path


def find_compiler() -> Compiler:
    """Raises MissingToolError ``build.tool`` where the workshop's packages are not installed."""
    folder = _package_folder("ziglang")
    compiler = Compiler(folder, metadata.version("ziglang"))
    _must_exist("ziglang", compiler.zig)
    return compiler


def find_build_tools() -> BuildTools:
    """Raises MissingToolError ``build.tool`` where the workshop's packages are not installed."""
    _package_folder("cmake")
    _package_folder("ninja")
    import cmake  # noqa: PLC0415  (workshop only: this module is imported without it too)
    import ninja  # noqa: PLC0415

    tools = BuildTools(Path(cmake.CMAKE_BIN_DIR) / "cmake", Path(ninja.BIN_DIR) / "ninja")
    _must_exist("cmake", tools.cmake)
    _must_exist("ninja", tools.ninja)
    return tools


def _package_folder(name: str) -> Path:
    spec = importlib.util.find_spec(name)
    places: Iterable[str] = (spec and spec.submodule_search_locations) or ()
    for place in places:
        return Path(place)
    raise MissingToolError("build.tool", package=name)


def _must_exist(package: str, path: Path) -> None:
    if not path.is_file():
        raise MissingToolError("build.tool", package=package)


def environment(store: Store, compiler: Compiler) -> dict[str, str]:
    """Laid over the user's own for every compiler run: nothing of it may reach the result.

    zig keeps its built C libraries in one cache for all builds and architectures.
    """
    cache = str(store.scratch("compiler", {"compiler": compiler.label}))
    return {
        **dict.fromkeys(_FOREIGN, ""),
        "ZIG_GLOBAL_CACHE_DIR": cache,
        "ZIG_LOCAL_CACHE_DIR": cache,
        "SOURCE_DATE_EPOCH": "0",
        "LC_ALL": "C",
        "NINJA_STATUS": "[%f/%t] ",
        "CLICOLOR_FORCE": "0",
    }
