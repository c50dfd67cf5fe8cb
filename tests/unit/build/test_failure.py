"""A failed build says which, why and what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from sampan.build.failure import explain, first_errors
from sampan.errors import BuildError, ExitCode, FilesystemError, SampanError
from sampan.spec.ports import Completed

COMPILE = """\
[7/44] Building CXX object src/a.cpp.o
FAILED: [code=1] src/a.cpp.o
zig c++ -O3 -c a.cpp
/t/a.cpp:3:10: warning: unused variable 'x'
/t/a.cpp:4:5: error: use of undeclared identifier 'foo'
    4 |     foo();
      |     ^~~
/t/a.h:9:10: fatal error: 'gone.h' file not found
ninja: build stopped: subcommand failed.
"""
CONFIGURE = """\
-- The C compiler identification is unknown
CMake Error at CMakeLists.txt:2 (project):
  The CMAKE_C_COMPILER:

    /env/zig

  is not a full path to an existing compiler tool.
"""


def _explain(output: str, tmp_path: Path, code: int = 1) -> SampanError:
    done = Completed(("ninja",), code, output)
    return explain(done, step="armv8.0", log=tmp_path / "build.log", tree=tmp_path)


def test_the_first_compiler_errors_are_quoted_and_warnings_are_not(tmp_path: Path) -> None:
    error = _explain(COMPILE, tmp_path)
    assert isinstance(error, BuildError)
    assert error.key == "build.failed"
    assert error.exit_code == ExitCode.BUILD_FAILED
    assert "a.cpp:4:5: error: use of undeclared identifier 'foo'" in error.message
    assert "'gone.h' file not found" in error.message
    assert "unused variable" not in error.message
    assert str(tmp_path / "build.log") in error.message
    assert str(tmp_path) in error.hint


def test_cmakes_reason_follows_its_place() -> None:
    assert first_errors(CONFIGURE) == [
        "CMake Error at CMakeLists.txt:2 (project): The CMAKE_C_COMPILER: /env/zig "
        "is not a full path to an existing compiler tool."
    ]


def test_without_a_known_error_the_last_lines_are_shown() -> None:
    assert first_errors("one\ntwo\n\nthree\nfour\n") == ["two", "three", "four"]


def test_silence_is_said() -> None:
    assert first_errors("") == ["(no output)"]


@pytest.mark.parametrize(
    "output",
    [
        "LLVM ERROR: IO failure on output stream: No space left on device",
        "/t/a.c:1:1: error: unable to write file: NoSpaceLeft",
        "fatal: Disk quota exceeded",
    ],
)
def test_a_full_disk_is_recognised(output: str, tmp_path: Path) -> None:
    error = _explain(output, tmp_path)
    assert isinstance(error, FilesystemError)
    assert error.key == "disk.full"
    assert error.exit_code == ExitCode.FILESYSTEM
    assert str(tmp_path) in error.message


@pytest.mark.parametrize(
    ("output", "code"),
    [
        ("FAILED: a.o\nKilled\nninja: build stopped", 1),
        ("LLVM ERROR: out of memory", 1),
        ("error: OutOfMemory", 1),
        ("terminate called after throwing std::bad_alloc", 1),
        ("", -9),
        ("", 137),
    ],
)
def test_a_compiler_ended_from_outside_points_at_memory(output: str, code: int, tmp_path: Path) -> None:
    error = _explain(output, tmp_path, code)
    assert isinstance(error, BuildError)
    assert error.key == "build.killed"


def test_a_file_whose_name_speaks_of_kills_is_no_lack_of_memory(tmp_path: Path) -> None:
    error = _explain("[3/9] Building Killed.cpp.o\n/t/Killed.cpp:1:1: error: expected ';'\n", tmp_path)
    assert error.key == "build.failed"
