"""The codes that no public file shows: files from a real linker, libraries of a real GCC, archives of real tools.

Each has a clean twin, which differs in that one thing.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from dataclasses import replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest
from tests.integration import isa_programs
from tests.integration.runtime_parts import Parts

from sampan.audit.audit import audit
from sampan.spec.target import CpuFacts, LibcFacts, TargetProfile
from sampan.survey import known

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(find_spec("ziglang") is None, reason="the compiler (package ziglang) is not installed"),
]
D2000 = known.load("kylin-v10-phytium-d2000")
GNU = "aarch64-linux-gnu.2.17"
ALONE = "int f(void) { return 1; }\n"
USER = "int f(void);\nint g(void) { return f(); }\n"
NEW = "void _ZSt21__glibcxx_assert_failPKciS0_S0_(void);\nvoid f(void) { _ZSt21__glibcxx_assert_failPKciS0_S0_(); }\n"
OLD = "void _ZSt17__throw_bad_allocv(void);\nvoid f(void) { _ZSt17__throw_bad_allocv(); }\n"
PLAIN = ("-shared", "-nostdlib")


def _cc(path: Path, source: str, *flags: str | Path, target: str = GNU) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = path.with_suffix(".c")
    text.write_text(source)
    subprocess.run(
        [sys.executable, "-m", "ziglang", "cc", "-target", target, "-O1", text, "-o", path, *flags], check=True
    )
    text.unlink()
    return path


def _codes(path: Path, target: TargetProfile = D2000, bundle: Path | None = None) -> set[str]:
    found = audit([path], target, bundle=bundle).findings
    return {finding.code for finding in found if not finding.code.startswith("isa.")}


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Those of Debian 12, built by GCC 12."""
    return Path(Parts(tmp_path_factory.mktemp("parts") / "store").runtime("aarch64").path) / "lib" / "sys"


@pytest.mark.parametrize(
    ("library", "version", "older", "code"),
    [
        ("libgomp.so.1", "GOMP_5.0", "GOMP_4.5", "gomp.ceiling"),
        ("libgcc_s.so.1", "GCC_14.0.0", "GCC_4.2.0", "gcc.ceiling"),
    ],
)
def test_a_later_gcc_than_the_targets(tmp_path: Path, library: str, version: str, older: str, code: str) -> None:
    surveyed = replace(D2000, libc=replace(D2000.libc, gomp="4.5"))
    for folder, wanted, expected in (("new", version, {code}), ("old", older, set())):
        script = tmp_path / "versions"
        script.write_text(f"{wanted} {{ global: f; }};\n")
        stub = _cc(tmp_path / folder / library, ALONE, *PLAIN, f"-Wl,-soname,{library},--version-script={script}")
        user = _cc(tmp_path / folder / "libuser.so", USER, *PLAIN, stub)
        stub.unlink()
        assert _codes(user, surveyed) - {"tls.static"} == expected


def test_versions_of_a_library_of_which_the_profile_says_nothing(tmp_path: Path) -> None:
    path = _cc(tmp_path / "libf.so", '#include <stdio.h>\nint f(void) { return puts("x"); }\n', "-shared")
    assert _codes(path, replace(D2000, libc=LibcFacts())) == {"ceiling.unknown"}
    assert _codes(path) == set()


@pytest.mark.parametrize(("source", "expected"), [(NEW, {"closure.contested"}), (OLD, set())])
def test_a_carried_libstdcxx_that_the_targets_may_come_before(
    tmp_path: Path, libraries: Path, source: str, expected: set[str]
) -> None:
    shutil.copy(libraries / "libgcc_s.so.1", tmp_path)
    shutil.copy(libraries / "libstdc++.so.6", tmp_path)
    user = _cc(tmp_path / "libuser.so", source, *PLAIN, tmp_path / "libstdc++.so.6", "-Wl,-rpath,$ORIGIN")
    found = [each.code for each in audit([tmp_path], D2000).findings if each.path.endswith(user.name)]
    assert set(found) == expected


@pytest.mark.parametrize(("flags", "expected"), [((), {"closure.unreached"}), (("-Wl,-rpath,$ORIGIN/own",), set())])
def test_a_carried_library_that_no_path_leads_to(
    tmp_path: Path, libraries: Path, flags: tuple[str, ...], expected: set[str]
) -> None:
    (tmp_path / "own").mkdir()
    carried = Path(shutil.copy(libraries / "libz.so.1", tmp_path / "own"))
    source = "const char *zlibVersion(void);\nconst char *f(void) { return zlibVersion(); }\n"
    user = _cc(tmp_path / "libuser.so", source, *PLAIN, carried, *flags)
    found = [each.code for each in audit([tmp_path], D2000).findings if each.path.endswith(user.name)]
    assert set(found) == expected


def test_a_program_of_a_bundle_that_starts_by_the_targets_loader(tmp_path: Path) -> None:
    main = "int main(void) { return 0; }\n"
    program = _cc(tmp_path / "tool", main)
    assert _codes(tmp_path, bundle=tmp_path) >= {"outside.bundle"}
    _cc(program, main, "-static", target="aarch64-linux-musl")
    assert _codes(tmp_path, bundle=tmp_path) == set()


def test_a_name_that_is_no_ascii(tmp_path: Path) -> None:
    path = _cc(tmp_path / "libf.so", ALONE, *PLAIN)
    assert _codes(path) == set()
    assert _codes(path.rename(tmp_path / "lib库.so")) == {"name.non-ascii"}


def test_an_engine_that_uses_more_than_its_variant(tmp_path: Path) -> None:
    """The same program in two folders: the launcher may take the one only where the CPU has dot products."""
    (tmp_path / "programs").mkdir()
    program = isa_programs.build(tmp_path / "programs", ("a64-dotprod-main",)) / "a64-dotprod-main"
    found = {}
    for variant in ("armv8.0", "armv8.2-dotprod"):
        place = tmp_path / variant / "engine" / "llama.cpp" / variant / "llama-server"
        place.parent.mkdir(parents=True)
        shutil.copy(program, place)
        target = replace(D2000, cpu=CpuFacts("any", ("fp", "asimd", "asimddp", "atomics")))
        report = audit([tmp_path / variant], target, bundle=tmp_path / variant)
        found[variant] = {(each.code, each.severity) for each in report.findings if each.code == "isa.variant"}
    assert found == {"armv8.0": {("isa.variant", "error")}, "armv8.2-dotprod": set()}


@cache
def _tar() -> str:
    program = shutil.which("tar")
    said = subprocess.run([program, "--version"], capture_output=True, check=False).stdout if program else b""
    if program is None or b"GNU tar" not in said:
        pytest.skip("GNU tar is not on this machine")
    return program


def _packed(folder: Path, *names: str) -> Path:
    subprocess.run([_tar(), "-Pcf", folder.parent / "a.tar", *names], cwd=folder, check=True)
    return folder.parent / "a.tar"


def test_archives_of_gnu_tar(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    library = _cc(folder / "libf.so", ALONE, *PLAIN)
    (folder / "link").symlink_to("libf.so")
    assert _codes(_packed(folder, "libf.so", "link")) == set()
    shutil.copy(library, tmp_path / "outside.so")
    assert _codes(_packed(folder, "libf.so", "../outside.so")) == {"archive.path"}
    (folder / "far").symlink_to("/etc/passwd")
    assert _codes(_packed(folder, "libf.so", "far")) == {"archive.link"}
    subprocess.run(["mkfifo", folder / "pipe"], check=True)
    assert _codes(_packed(folder, "libf.so", "pipe")) == {"archive.kind"}
    assert _codes(_packed(folder, "libf.so", "libf.so")) == set()  # tar stores the second as a link to the first
    subprocess.run([_tar(), "-rf", _packed(folder, "libf.so"), "libf.so"], cwd=folder, check=True)
    assert _codes(tmp_path / "a.tar") == {"archive.duplicate"}
    whole = _packed(folder, "libf.so").read_bytes()
    (tmp_path / "a.tar").write_bytes(whole[: library.stat().st_size // 2])
    assert _codes(tmp_path / "a.tar") == {"archive.damaged"}


@pytest.mark.parametrize(("megabytes", "expected"), [(200, set()), (600, {"archive.bomb"})])
def test_a_zip_that_unpacks_to_a_thousand_times_its_size(tmp_path: Path, megabytes: int, expected: set[str]) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("libx.so", "w") as member:
        member.write(b"\x7fELF")
        for _ in range(megabytes):
            member.write(bytes(1 << 20))
    assert _codes(path) - {"elf.damaged"} == expected


def test_a_library_that_a_broken_copy_left_empty_and_one_that_is_only_compressed(tmp_path: Path) -> None:
    library = _cc(tmp_path / "libf.so", ALONE, *PLAIN)
    assert _codes(library) == set()
    subprocess.run(["gzip", "-k", library], check=True)
    assert _codes(tmp_path / "libf.so.gz") == {"file.unopened"}
    entry = "int DllMainCRTStartup(void *a, int b, void *c) { return 1; }\n"
    windows = _cc(tmp_path / "f.dll", entry, *PLAIN, target="x86_64-windows-gnu")
    assert _codes(windows) == {"file.not-elf"}
    subprocess.run(["truncate", "-s", "0", library], check=True)
    assert _codes(library) == {"file.not-elf"}


def test_a_wheel_for_another_system(tmp_path: Path) -> None:
    library = _cc(tmp_path / "f.dylib", ALONE, "-shared", target="aarch64-macos")
    named = {"macosx_11_0_arm64": "wheel.platform", "manylinux2014_aarch64": "file.not-elf"}
    for platform, expected in named.items():
        path = tmp_path / f"x-1.0-cp311-cp311-{platform}.whl"
        with zipfile.ZipFile(path, "w") as archive:
            archive.write(library, "x/f.so")
        assert _codes(path) - {"wheel.record"} == {expected}


def test_debugging_information_beside_a_program_is_no_program(tmp_path: Path) -> None:
    tool = shutil.which("objcopy")
    if tool is None:
        pytest.skip("objcopy is not installed")
    if shutil.which("cc") is None:
        pytest.skip("no compiler of this machine")
    (tmp_path / "p.c").write_text("int main(void) { return 0; }\n")
    subprocess.run(["cc", "-g", tmp_path / "p.c", "-o", tmp_path / "p"], check=True)
    subprocess.run([tool, "--only-keep-debug", tmp_path / "p", tmp_path / "p.debug"], check=True)
    assert _codes(tmp_path / "p.debug", known.load("centos-7-x86-64")) == set()
