"""The launcher, compiled for real and run where this machine can run it."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from sampan.build.check import faults
from sampan.build.launcher import build
from sampan.edge.process import ProcessRunner
from sampan.edge.store import DiskStore
from sampan.errors import BuildError, IncompatibleError
from sampan.spec.layout import PYTHON

pytestmark = pytest.mark.integration

ARCHITECTURES = ("aarch64", "x86_64")
# Stands for the private loader: says what it was given.
LOADER = """#!/bin/sh
printf 'self %s\\n' "$0"
for word in "$@"; do printf 'word %s\\n' "$word"; done
env | sed 's/^/env /'
exit 7
"""


@pytest.fixture(scope="module")
def launcher(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The launcher for this machine."""
    if platform.machine() not in ARCHITECTURES:
        pytest.skip(f"no launcher for {platform.machine()}")
    return build(platform.machine(), runner=ProcessRunner(), store=DiskStore(tmp_path_factory.mktemp("store")))


def _runtime(folder: Path, launcher: Path) -> Path:
    for name, text in {"lib/sys/ld.so": LOADER, f"libexec/python{PYTHON}": "stands for Python\n"}.items():
        path = folder / name
        path.parent.mkdir(parents=True)
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)
    (folder / "bin").mkdir()
    shutil.copy(launcher, folder / "bin/python3")
    return folder


def _bundle(root: Path, launcher: Path) -> Path:
    _runtime(root / "runtime", launcher)
    shutil.copy(launcher, root / "sampan")
    return root


@dataclass(frozen=True)
class Seen:
    """What the stand-in loader saw."""

    code: int
    words: list[str]
    environment: dict[str, str]
    errors: str


def _run(path: Path | str, *words: str, cwd: Path | None = None, env: Mapping[str, str] | None = None) -> Seen:
    surroundings = {"PATH": os.environ["PATH"], **(env or {})}
    done = subprocess.run(
        [str(path), *words], cwd=cwd, env=surroundings, capture_output=True, encoding="utf-8", check=False
    )
    lines = done.stdout.splitlines()
    variables_seen = (line.removeprefix("env ").partition("=") for line in lines if line.startswith("env "))
    return Seen(
        done.returncode,
        [line.removeprefix("word ") for line in lines if line.startswith("word ")],
        {name: value for name, _, value in variables_seen},
        done.stderr,
    )


def _loader_words(runtime: Path) -> list[str]:
    python = str(runtime / f"libexec/python{PYTHON}")
    libraries = ["--inhibit-cache", "--library-path", str(runtime / "lib/sys")]
    return [*libraries, "--argv0", str(runtime / "bin/python3"), python]


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_it_is_small_static_and_the_same_bytes_from_any_folder(arch: str, tmp_path: Path) -> None:
    first, second = (build(arch, runner=ProcessRunner(), store=DiskStore(tmp_path / name)) for name in ("a", "b b"))
    assert first.read_bytes() == second.read_bytes()
    assert faults(first, arch, max_bytes=32 << 10) == []


def test_an_unknown_architecture_is_refused(tmp_path: Path) -> None:
    with pytest.raises(IncompatibleError):
        build("loongarch64", runner=ProcessRunner(), store=DiskStore(tmp_path))


def test_a_compiler_error_is_quoted_and_nothing_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sampan.build.launcher._sources", lambda: {"launcher.c": b"int start(void) { return gone; }"})
    with pytest.raises(BuildError, match="undeclared identifier 'gone'"):
        build("x86_64", runner=ProcessRunner(), store=DiskStore(tmp_path))
    assert list((tmp_path / "made/launcher").iterdir()) == []


def test_beside_a_runtime_it_runs_sampan(launcher: Path, tmp_path: Path) -> None:
    root = _bundle(tmp_path / "bundle-1", launcher)
    seen = _run(root / "sampan", "serve", "--port", "8080")
    assert seen.code == 7  # the Python's own exit code comes through
    assert seen.words == [*_loader_words(root / "runtime"), "-P", "-m", "sampan", "serve", "--port", "8080"]
    assert seen.environment["SAMPAN_BUNDLE"] == str(root)


def test_inside_a_runtime_it_is_the_python(launcher: Path, tmp_path: Path) -> None:
    root = _bundle(tmp_path / "bundle-1", launcher)
    seen = _run(root / "runtime/bin/python3", "-c", "print(1)", "two words", "", "汉字")
    assert seen.words == [*_loader_words(root / "runtime"), "-c", "print(1)", "two words", "", "汉字"]


def test_a_runtime_under_another_name_is_a_python_without_a_bundle(launcher: Path, tmp_path: Path) -> None:
    runtime = _runtime(tmp_path / "tree-in-a-store", launcher)
    seen = _run(runtime / "bin/python3", "-V", env={"SAMPAN_BUNDLE": "/stale"})
    assert seen.words == [*_loader_words(runtime), "-V"]
    assert "SAMPAN_BUNDLE" not in seen.environment


def test_a_bundle_whose_folder_is_called_bin_is_still_a_bundle(launcher: Path, tmp_path: Path) -> None:
    root = _bundle(tmp_path / "bin", launcher)
    assert "-m" in _run(root / "sampan").words


@pytest.mark.parametrize("place", ["a b/船 板", "percent%41 $HOME 'quoted'", "-n"])
def test_the_place_may_have_any_name(place: str, launcher: Path, tmp_path: Path) -> None:
    root = _bundle(tmp_path / place, launcher)
    seen = _run(root / "sampan", "status")
    assert seen.words == [*_loader_words(root / "runtime"), "-P", "-m", "sampan", "status"]


def test_links_to_it_work_from_anywhere(launcher: Path, tmp_path: Path) -> None:
    root = _bundle(tmp_path / "prefix/releases/3", launcher)
    (tmp_path / "prefix/current").symlink_to("releases/3")
    (tmp_path / "local").mkdir()
    (tmp_path / "local/anything").symlink_to(tmp_path / "prefix/current/sampan")
    for called in (tmp_path / "prefix/current/sampan", tmp_path / "local/anything"):
        assert _run(called).words == [*_loader_words(root / "runtime"), "-P", "-m", "sampan"]
    assert _run("./sampan", cwd=root).words[:-3] == _loader_words(root / "runtime")


def test_nothing_of_the_hosts_loader_python_or_locale_gets_through(launcher: Path, tmp_path: Path) -> None:
    root = _bundle(tmp_path / "b", launcher)
    foreign = {
        **dict.fromkeys(("LD_LIBRARY_PATH", "LD_PRELOAD", "LD_AUDIT", "LD_DEBUG"), "/host"),
        **dict.fromkeys(("PYTHONHOME", "PYTHONPATH", "PYTHONSTARTUP", "PYTHONINSPECT", "PYTHONUSERBASE"), "/host"),
        **dict.fromkeys(("GCONV_PATH", "LOCPATH", "SAMPAN_BUNDLE"), "/host"),
    }
    kept = {"LANG": "zh_CN.UTF-8", "HTTP_PROXY": "http://p", "PYTHONUNBUFFERED": "1", "QEMU_CPU": "x"}
    seen = _run(root / "sampan", env={**foreign, **kept})
    assert "/host" not in seen.environment.values()
    own = {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONNOUSERSITE": "1", "PYTHONUTF8": "1", "SAMPAN_BUNDLE": str(root)}
    assert kept.items() | own.items() <= seen.environment.items()


def test_thousands_of_words_and_variables_come_through(launcher: Path, tmp_path: Path) -> None:
    root = _bundle(tmp_path / "b", launcher)
    words = [f"word-{number}" for number in range(4000)]
    seen = _run(root / "sampan", *words, env={f"NAME_{number}": "x" * 50 for number in range(2000)})
    assert seen.words[-4000:] == words
    assert sum(name.startswith("NAME_") for name in seen.environment) == 2000


@pytest.mark.parametrize("missing", ["lib/sys/ld.so", f"libexec/python{PYTHON}"])
def test_an_incomplete_folder_is_said_in_two_languages(missing: str, launcher: Path, tmp_path: Path) -> None:
    root = _bundle(tmp_path / "b", launcher)
    (root / "runtime" / missing).unlink()
    seen = _run(root / "sampan", "serve")
    assert seen.code == 127
    english, chinese = seen.errors.splitlines()
    assert english.startswith("sampan: cannot start: the folder is incomplete")
    assert "目录不完整" in chinese
    for line in (english, chinese):
        assert line.endswith(str(root / "runtime" / missing))


def test_without_any_runtime_it_says_what_it_looked_for(launcher: Path, tmp_path: Path) -> None:
    lonely = Path(shutil.copy(launcher, tmp_path / "sampan"))
    seen = _run(lonely)
    assert seen.code == 127
    assert str(tmp_path / "runtime/lib/sys/ld.so") in seen.errors


def test_a_loader_that_may_not_be_executed_is_no_missing_file(launcher: Path, tmp_path: Path) -> None:
    root = _bundle(tmp_path / "b", launcher)
    (root / "runtime/lib/sys/ld.so").chmod(0o644)  # even root may execute only what has an x bit
    seen = _run(root / "sampan")
    assert seen.code == 127
    assert "noexec" in seen.errors
    assert "没有执行权限" in seen.errors


def test_a_loader_for_another_machine_is_said(launcher: Path, tmp_path: Path) -> None:
    root = _bundle(tmp_path / "b", launcher)
    (root / "runtime/lib/sys/ld.so").write_bytes(b"no executable of any kind")
    seen = _run(root / "sampan")
    assert seen.code == 127
    assert "CPU architecture" in seen.errors


def test_a_long_path_works(launcher: Path, tmp_path: Path) -> None:
    root = _bundle(_long(tmp_path, 4000), launcher)
    assert _run(root / "sampan").words[:-3] == _loader_words(root / "runtime")


def test_a_path_longer_than_the_kernel_allows_is_said(launcher: Path, tmp_path: Path) -> None:
    """The launcher's own path still fits into PATH_MAX (4096), the loader's does not."""
    root = _long(tmp_path, 4080)
    shutil.copy(launcher, root / "sampan")
    seen = _run("./sampan", cwd=root)
    assert seen.code == 127
    assert "too long" in seen.errors
    assert "路径过长" in seen.errors


def _long(start: Path, length: int) -> Path:
    """A new folder below ``start`` whose path has ``length`` characters."""
    missing = length - len(str(start))
    whole, rest = divmod(missing, 100)
    folder = start.joinpath(*["d" * 99] * (whole - 1), "e" * (99 + rest))
    folder.mkdir(parents=True)
    return folder
