"""A tiny engine of C alone, built by the real tools through the real code in seconds; also run as a process.

``python -m tests.integration.build_parts STORE ARCHIVE FILES`` builds it, so that a test can kill that.
"""

from __future__ import annotations

import hashlib
import io
import sys
import tarfile
from dataclasses import replace
from pathlib import Path
from unittest import mock

from tests.fakes.fetchers import OneFileFetcher

from sampan.build import engine
from sampan.build.pins import EnginePin, engine_pin
from sampan.edge.process import ProcessRunner
from sampan.edge.progress import SilentProgress
from sampan.edge.store import DiskStore
from sampan.plan.variants import all_variants
from sampan.spec.artefacts import EngineBuild
from sampan.spec.plan import EngineSettings, Plan, Variant

TOP = "tiny-1.0"
VARIANTS = tuple(variant for variant in all_variants() if variant.arch == "aarch64")
# The recipe gives the target ggml-cpu of the project ggml the variant's -mcpu. No libc: building it takes a minute.
_PROJECT = """\
cmake_minimum_required(VERSION 3.20)
project(ggml C)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
add_compile_options(-ffreestanding)
add_library(ggml-cpu STATIC kernel.c)
file(GLOB PARTS CONFIGURE_DEPENDS part*.c)
add_executable(llama-server main.c ${PARTS})
target_link_libraries(llama-server PRIVATE ggml-cpu)
target_link_options(llama-server PRIVATE -nostdlib)
"""
_KERNEL = """\
#ifdef __ARM_FEATURE_DOTPROD
int kernel(int a) { return a * 3 + 1; }
#else
int kernel(int a) { return a * 5 + 2; }
#endif
"""
_MAIN = "int kernel(int);\nvoid _start(void) { kernel(1); for (;;) { } }\n"


def files(parts: int = 0) -> dict[str, str]:
    """The source; each part takes about half a second to compile."""
    made = {"CMakeLists.txt": _PROJECT, "kernel.c": _KERNEL, "main.c": _MAIN}
    for part in range(parts):
        lines = [f"int f{part}_{n}(int a) {{ return a % {n + 2} ? a / {n + 3} : a * {n}; }}" for n in range(2500)]
        made[f"part{part:02}.c"] = "\n".join(lines) + "\n"
    return made


def archive(path: Path, contents: dict[str, str]) -> Path:
    """Write the source's archive."""
    with tarfile.open(path, "w:gz") as opened:
        for name, text in contents.items():
            member = tarfile.TarInfo(f"{TOP}/{name}")
            member.size = len(text)
            opened.addfile(member, io.BytesIO(text.encode()))
    return path


def pin_of(source: Path) -> EnginePin:
    """The real pin with that archive for its source."""
    digest = hashlib.sha256(source.read_bytes()).hexdigest()
    return replace(
        engine_pin(),
        top=TOP,
        sha256=digest,
        omit=(),
        definitions=("CMAKE_BUILD_TYPE=Release",),
        licences=(),
        changes={},
    )


def build(store: Path, source: Path, *variants: Variant) -> EngineBuild:
    """Build the archive with the real compiler into a store of its own."""
    settings = EngineSettings(512, 512, 512, 1, True, 1, True)
    chosen = variants or VARIANTS[:1]
    plan = Plan("n", 1, "t", "aarch64", 65536, "llama.cpp", chosen, "embedding", "m", "q8_0", settings, (), 0, None)
    with mock.patch.object(engine, "engine_pin", lambda: pin_of(source)):
        return engine.build(
            plan,
            runner=ProcessRunner(),
            fetcher=OneFileFetcher(source),
            store=DiskStore(store),
            progress=SilentProgress(),
        )


if __name__ == "__main__":
    print(build(Path(sys.argv[1]), Path(sys.argv[2])).variants[0].sha256)
