"""The runtime tree: what is placed where, what is refused, what is never written."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Callable
from importlib import resources
from pathlib import Path

import pytest
from tests.fakes.debian_archive import Archive, Content, deb
from tests.unit.runtime.conftest import FakeRunner, compiled_module

from sampan.edge.net import NetFetcher
from sampan.edge.progress import SilentProgress
from sampan.edge.store import DiskStore
from sampan.errors import BadInputError, BuildError, VerificationError
from sampan.runtime import tree
from sampan.runtime.deb import opened
from sampan.runtime.facts import architecture, facts
from sampan.runtime.finish import check_closure, compile_tree, normalise
from sampan.runtime.layout import folder_writer, place_own, place_package
from sampan.spec.artefacts import RuntimeTree
from sampan.spec.layout import python_command

STDLIB = "usr/lib/python3.11"
TRIPLET = "aarch64-linux-gnu"
SYSCONFIG = (
    b"        deb_build = os.environ.get('DEB_PYTHON_INSTALL_LAYOUT', 'posix_local')\n"
    b"        if deb_build in ('deb', 'deb_system'):\n            prefix_scheme = 'deb_system'\n"
    b"        else:\n            prefix_scheme = 'posix_local'\n"
)


def _contents() -> dict[str, dict[str, Content]]:
    """Every package of the data file with just what the layout takes from it, and some that it must not take."""
    files: dict[str, dict[str, Content]] = {}
    for package, libraries in facts().packages.items():
        files[package] = {f"usr/share/doc/{package}/copyright": package.encode()}
        for soname in libraries:
            if soname == "LOADER":
                files[package][f"lib/{TRIPLET}/ld-linux-aarch64.so.1"] = b"loader"
            else:
                files[package][f"usr/lib/{TRIPLET}/{soname}.9.9"] = soname.encode()
                files[package][f"usr/lib/{TRIPLET}/{soname}"] = f"{soname}.9.9"
    files["python3.11-minimal"]["usr/bin/python3.11"] = b"python"
    del files["libgomp1"]["usr/share/doc/libgomp1/copyright"]
    files["libgomp1"]["usr/share/doc/libgomp1"] = "gcc-12-base"
    files["libpython3.11-stdlib"] |= {
        f"{STDLIB}/os.py": b"import sys\n",
        f"{STDLIB}/sysconfig.py": SYSCONFIG,
        f"{STDLIB}/json/__init__.py": b"",
        f"{STDLIB}/test/test_os.py": b"",
        f"{STDLIB}/idlelib/x.py": b"",
        f"{STDLIB}/config-3.11-{TRIPLET}/libpython3.11.a": b"",
        f"{STDLIB}/sitecustomize.py": "/etc/python3.11/sitecustomize.py",
        f"{STDLIB}/lib-dynload/_ssl.cpython-311-{TRIPLET}.so": b"ssl",
        f"{STDLIB}/lib-dynload/_curses.cpython-311-{TRIPLET}.so": b"curses",
        f"{STDLIB}/_sysconfigdata__{TRIPLET}.py": b"",
        f"{STDLIB}/_sysconfigdata__linux_{TRIPLET}.py": f"_sysconfigdata__{TRIPLET}.py",
        "etc/python3.11/sitecustomize.py": b"raise SystemExit",
        "usr/share/man/man1/python3.11.1": b"",
    }
    return files


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    made = Archive(tmp_path / "mirror")
    for package, entries in _contents().items():
        made.add(package, "3.11.2-6", entries)
    made.publish()
    return made


Make = Callable[..., Path]


@pytest.fixture
def make(
    archive: Archive, runner: FakeRunner, fetcher: NetFetcher, store: DiskStore, monkeypatch: pytest.MonkeyPatch
) -> Make:
    """``tree.make`` without reading versions: the libraries here are no ELF."""

    def described(folder: Path, *_: object) -> RuntimeTree:
        return RuntimeTree("aarch64", str(folder), "3.11.2", "2.36", "3.4.30", ())

    def run(stub: bytes = b"elf") -> Path:
        launcher = archive.root / "launcher"
        launcher.write_bytes(stub)
        made = tree.make(
            "aarch64",
            launcher=launcher,
            runner=runner,
            fetcher=fetcher,
            store=store,
            progress=SilentProgress(),
            sources=lambda: (archive.source,),
        )
        return Path(made.path)

    monkeypatch.setattr(tree, "describe", described)
    return run


def test_the_tree_holds_what_the_bundle_needs_and_nothing_else(
    make: Make, runner: FakeRunner, store: DiskStore
) -> None:
    folder = make()
    found = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    licences = {f"share/licences/{name}" for name in facts().packages if name != "libgomp1"}
    libraries = {f"lib/sys/{name}" for names in facts().packages.values() for name in names if name != "LOADER"}
    assert found == licences | libraries | {
        "bin/python3",
        "libexec/python3.11",
        "lib/sys/ld.so",
        "pyvenv.cfg",
        "lib/python3.11/os.py",
        "lib/python3.11/sysconfig.py",
        "lib/python3.11/sitecustomize.py",
        "lib/python3.11/json/__init__.py",
        f"lib/python3.11/_sysconfigdata__{TRIPLET}.py",
        f"lib/python3.11/lib-dynload/_ssl.cpython-311-{TRIPLET}.so",
        "lib/python3.11/site-packages/sampan-app.pth",
    }
    assert not any(path.is_symlink() for path in folder.rglob("*"))
    assert (folder / "lib/sys/libc.so.6").read_bytes() == b"libc.so.6"
    assert (folder / "bin/python3").read_bytes() == b"elf"


def test_the_applications_folder_is_found_by_a_relative_path(
    make: Make, runner: FakeRunner, store: DiskStore
) -> None:
    folder = make()
    site = folder / "lib/python3.11/site-packages"
    line = (site / "sampan-app.pth").read_text().strip()
    assert (site / line).resolve() == (folder.parent / "app").resolve()


def test_debians_folders_are_patched_out_and_the_modes_are_fixed(
    make: Make, runner: FakeRunner, store: DiskStore
) -> None:
    old = os.umask(0o077)
    try:
        folder = make()
    finally:
        os.umask(old)
    text = (folder / "lib/python3.11/sysconfig.py").read_text()
    assert "posix_local" not in text
    assert "DEB_PYTHON" not in text
    executable = {"bin/python3", "libexec/python3.11", "lib/sys/ld.so"}
    for path in folder.rglob("*"):
        wanted = 0o755 if path.is_dir() or path.relative_to(folder).as_posix() in executable else 0o644
        assert stat.S_IMODE(path.stat().st_mode) == wanted, path


def test_the_trees_own_python_compiles_it_apart_from_the_host(
    make: Make, runner: FakeRunner, store: DiskStore
) -> None:
    make()
    argv = runner.calls[-1]
    assert argv[0].endswith("/lib/sys/ld.so")
    assert "--inhibit-cache" in argv
    assert "-I" in argv
    assert argv[-2].endswith("compile_tree.py")


def test_another_launcher_makes_another_tree(make: Make) -> None:
    first = make()
    assert make() == first
    assert make(b"other") != first


def test_a_failing_compiler_leaves_no_tree(make: Make, runner: FakeRunner, store: DiskStore) -> None:
    runner.returncode = 1
    with pytest.raises(BuildError) as caught:
        make()
    assert caught.value.key == "runtime.compile"
    assert list((store.root / "made" / "runtime").iterdir()) == []


@pytest.mark.parametrize(
    ("package", "entries", "key"),
    [
        ("libssl3", {"usr/share/doc/libssl3/copyright": b"x"}, "runtime.no-library"),
        ("libffi8", {f"lib/{TRIPLET}/libffi.so.8": b"x"}, "runtime.no-licence"),
        (
            "libpython3.11-stdlib",
            {"usr/share/doc/libpython3.11-stdlib/copyright": b"x", f"{STDLIB}/sysconfig.py": b"all is new"},
            "runtime.patch",
        ),
    ],
)
def test_a_package_that_changed_is_refused(
    tmp_path: Path, package: str, entries: dict[str, Content], key: str
) -> None:
    path = tmp_path / "x.deb"
    path.write_bytes(deb(entries))
    with opened(path) as contents, pytest.raises(VerificationError) as caught:
        place_package(package, contents, facts(), architecture("aarch64"), folder_writer(tmp_path / "tree"))
    assert caught.value.key == key


@pytest.mark.parametrize("data", [b"", b"!<arch>\n", b"not a package at all", deb({"a": bytes(9000)})[:250]])
def test_a_damaged_package_is_named(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "x.deb"
    path.write_bytes(data)
    with pytest.raises(BadInputError) as caught, opened(path) as contents:
        [contents.read(name) for name in contents.files()]
    assert caught.value.key == "runtime.bad-deb"
    assert str(path) in str(caught.value)


def test_paths_that_lead_out_of_the_tree_are_never_taken(tmp_path: Path) -> None:
    path = tmp_path / "x.deb"
    evil: dict[str, Content] = {
        f"{STDLIB}/../../../../evil.py": b"x",
        f"{STDLIB}/link.py": "../../../../../etc/passwd",
    }
    path.write_bytes(deb({"usr/share/doc/python3.11-minimal/copyright": b"x", **evil}))
    with opened(path) as contents:
        place_package(
            "python3.11-minimal", contents, facts(), architecture("aarch64"), folder_writer(tmp_path / "tree")
        )
    written = sorted(item.relative_to(tmp_path).as_posix() for item in tmp_path.rglob("*") if item.is_file())
    assert written == ["tree/share/licences/python3.11-minimal", "x.deb"]


def test_own_files_tell_python_nothing_of_the_host(tmp_path: Path) -> None:
    place_own(facts(), b"stub", folder_writer(tmp_path))
    assert "home" not in (tmp_path / "pyvenv.cfg").read_text()
    compile((tmp_path / "lib/python3.11/sitecustomize.py").read_text(), "sitecustomize.py", "exec")


def test_a_library_that_is_needed_and_absent_is_named(tmp_path: Path) -> None:
    data = compiled_module().read_bytes()
    module = tmp_path / "lib/python3.11/lib-dynload/x.so"
    module.parent.mkdir(parents=True)
    module.write_bytes(data)
    (tmp_path / "lib/sys").mkdir()
    with pytest.raises(VerificationError) as caught:
        check_closure(tmp_path)
    assert caught.value.key == "runtime.needed"
    assert caught.value.values["file"] == "lib/python3.11/lib-dynload/x.so"


def test_compiling_gives_equal_bytes_wherever_the_folder_lies(tmp_path: Path) -> None:
    """With this machine's own Python in place of the private one."""
    script = str(resources.files("sampan") / "data" / "compile_tree.py")
    compiled = []
    for name in ("a", "b/c"):
        folder = tmp_path / name
        (folder / "pkg").mkdir(parents=True)
        (folder / "pkg" / "m.py").write_text("X = {'a', 'b', 'c'}\ndef f(): return {1, 2} | X\n")
        (folder / "bad.py").write_text("print 'two'\n")
        os.utime(folder / "pkg" / "m.py", (len(name), len(name)))
        done = subprocess.run(
            [sys.executable, "-I", "-B", script, str(folder)], capture_output=True, text=True, check=True
        )
        assert "bad.py" in done.stdout
        (made,) = folder.rglob("*.pyc")
        compiled.append(made.read_bytes())
    assert compiled[0] == compiled[1]
    assert int.from_bytes(compiled[0][4:8], "little") == 0b01  # hash-based, unchecked


def test_the_python_command_is_one_line_of_the_loader() -> None:
    words = python_command("/b/runtime", "3.11.2")
    assert words[0] == "/b/runtime/lib/sys/ld.so"
    assert words[-1] == "/b/runtime/libexec/python3.11"
    assert words[words.index("--argv0") + 1] == "/b/runtime/bin/python3"


def test_compile_names_the_folder_and_what_was_said(tmp_path: Path, runner: FakeRunner) -> None:
    runner.returncode = 127
    with pytest.raises(BuildError) as caught:
        compile_tree(tmp_path, tmp_path, runner=runner, progress=SilentProgress())
    assert str(tmp_path) in str(caught.value)


def test_normalise_keeps_what_is_executable(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("")
    (tmp_path / "a").chmod(0o700)
    (tmp_path / "b").write_text("")
    (tmp_path / "b").chmod(0o666)
    normalise(tmp_path)
    assert [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in "ab"] == [0o755, 0o644]
