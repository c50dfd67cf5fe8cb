"""Command lines and cache keys, as pure functions of the pin, the tools and the variant."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from importlib import resources
from pathlib import Path

from sampan.build.pins import Architecture, EnginePin
from sampan.build.toolchain import BuildTools, Compiler
from sampan.spec.plan import Variant

# 64 KiB pages (Kylin's arm64 kernels) refuse segments aligned to less. -s: no symbols, no debug information.
LINK_FLAGS = ("-static", "-s", "-Wl,-z,max-page-size=65536")
_RECIPE = ("toolchain.cmake", "project.cmake", "libraries.cpp")
_MEMORY_PER_JOB = 3 << 29  # bytes: the largest unit takes about 1.1 GiB


def recipe() -> dict[str, bytes]:
    """The files of ``data/engine`` that a build tree needs, by name."""
    folder = resources.files("sampan") / "data" / "engine"
    return {name: (folder / name).read_bytes() for name in _RECIPE}


def tree_key(pin: EnginePin, compiler: Compiler, arch: Architecture) -> dict[str, object]:
    """What two builds must have in common to share one tree."""
    return {
        "engine": pin.name,
        "source": pin.sha256,
        "omit": list(pin.omit),
        "compiler": compiler.label,
        "arch": arch.name,
        "target": arch.target,
        "floor": arch.floor,
        "definitions": list(pin.definitions),
        "link": list(LINK_FLAGS),
        "recipe": {name: hashlib.sha256(data).hexdigest() for name, data in recipe().items()},
        "patches": {name: hashlib.sha256(text.encode()).hexdigest() for name, text in pin.changes.items()},
    }


def variant_key(tree: Mapping[str, object], variant: Variant) -> dict[str, object]:
    """What decides the bytes of one executable."""
    return {**tree, "variant": variant.name, "cpu": variant.zig_cpu, "cmake": list(variant.cmake)}


def configure(
    pin: EnginePin, arch: Architecture, variant: Variant, *, compiler: Compiler, tools: BuildTools, tree: Path
) -> list[str]:
    """The ``cmake`` call that sets up, or turns to another variant, the build folder ``tree/build``."""
    flags = f"-g0 -w -mcpu={arch.floor}"
    settings = [
        f"CMAKE_MAKE_PROGRAM={tools.ninja}",
        f"CMAKE_TOOLCHAIN_FILE={tree / 'recipe' / 'toolchain.cmake'}",
        f"CMAKE_PROJECT_INCLUDE={tree / 'recipe' / 'project.cmake'}",
        f"CMAKE_C_FLAGS={flags}",
        f"CMAKE_CXX_FLAGS={flags}",
        f"CMAKE_EXE_LINKER_FLAGS={' '.join(LINK_FLAGS)}",
        f"SAMPAN_ZIG={compiler.zig}",
        f"SAMPAN_TARGET={arch.target}",
        f"SAMPAN_PROCESSOR={arch.name}",
        f"SAMPAN_CPU={variant.zig_cpu}",
        *pin.definitions,
        *variant.cmake,
    ]
    paths = ["-S", str(tree / "source"), "-B", str(tree / "build")]
    return [str(tools.cmake), "-G", "Ninja", *paths, *(f"-D{setting}" for setting in settings)]


def jobs(cpus: int, memory_bytes: int) -> int:
    """How many compilers may run at once: all CPUs, but no more than memory can feed."""
    return max(1, min(cpus, memory_bytes // _MEMORY_PER_JOB))


def compile_target(pin: EnginePin, tools: BuildTools, tree: Path, parallel: int) -> list[str]:
    """The ``ninja`` call that makes the executable."""
    return [str(tools.ninja), "-C", str(tree / "build"), "-j", str(parallel), pin.target]
