"""``sampan audit`` as a user meets it: what it prints, what it leaves out, how it ends."""

from __future__ import annotations

import io
import json
import struct
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.unit.audit.gpu_files import Image, container, library
from typer.testing import CliRunner

from sampan import i18n
from sampan.audit import explain
from sampan.cli.main import build_app

TARGET = ("--target", "kylin-v10-sp3-kunpeng920")


@dataclass(frozen=True)
class Done:
    """How the command ended."""

    returncode: int
    stdout: str
    stderr: str


def sampan(*words: str) -> Done:
    """The real command line, in this process: what it imports is loaded once."""
    done = CliRunner().invoke(build_app(), ["audit", *words])
    return Done(done.exit_code, done.stdout, done.stderr)


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SAMPAN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "200")


def elf(machine: int, kind: int = 3) -> bytes:
    """The least ELF file that says what it is for."""
    ident = b"\x7fELF\x02\x01\x01" + bytes(9)
    return ident + struct.pack("<HHIQQQIHHHHHH", kind, machine, 1, 0, 0, 0, 0, 64, 56, 0, 64, 0, 0)


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    """A wheel with one file for the wrong machine and no RECORD."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("pkg/x.so", elf(62))
    path = tmp_path / "pkg-1.0-cp38-cp38-manylinux_2_28_aarch64.whl"
    path.write_bytes(stream.getvalue())
    return path


def test_errors_end_with_4_and_are_named_by_member(wheel: Path) -> None:
    done = sampan(str(wheel), *TARGET)
    assert done.returncode == 4
    assert f"{wheel}!pkg/x.so" in done.stdout
    assert "wheel.python" not in done.stdout, "information is left out"
    assert "1 more of lesser weight" in done.stdout


def test_severities_choose_what_is_printed(wheel: Path) -> None:
    done = sampan(str(wheel), *TARGET, "--min-severity", "info", "--json")
    said = json.loads(done.stdout)
    assert (done.returncode, said["schema"]) == (4, "sampan/audit/1")
    assert "wheel.python" in {finding["code"] for finding in said["findings"]}
    only = json.loads(sampan(str(wheel), *TARGET, "-s", "error", "--json").stdout)
    assert {finding["severity"] for finding in only["findings"]} == {"error"}


@pytest.mark.parametrize(
    ("machine", "words", "code"),
    [(62, (), 0), (62, ("--strict",), 12), (183, ("--strict",), 0)],
)
def test_warnings_show_in_the_exit_code_where_that_is_wanted(
    tmp_path: Path, machine: int, words: tuple[str, ...], code: int
) -> None:
    path = tmp_path / "x.o"
    path.write_bytes(elf(machine, kind=1))  # an object file of another machine is a warning
    assert sampan(str(path), *TARGET, *words).returncode == code


@pytest.mark.parametrize(
    ("card", "codes"),
    [
        ("Tesla T4@535.161.07", []),
        ("7.5", []),
        ("6.1@535", ["gpu.no-kernel-image"]),
        ("Tesla P4", ["gpu.no-kernel-image"]),
    ],
)
def test_a_card_can_be_named(tmp_path: Path, card: str, codes: list[str]) -> None:
    path = tmp_path / "lib.so"
    path.write_bytes(library(container(Image(75)), needed=[b"libcuda.so.1"]))
    done = sampan(str(path), "--target", "generic-x86-64", "--gpu", card, "--json")
    found = [finding["code"] for finding in json.loads(done.stdout)["findings"]]
    assert [code for code in found if code.startswith(("gpu.", "closure."))] == codes


def test_the_saved_report_is_whole(wheel: Path, tmp_path: Path) -> None:
    out = tmp_path / "report.json"
    sampan(str(wheel), *TARGET, "-s", "error", "--out", str(out))
    said = json.loads(out.read_text(encoding="utf-8"))
    assert {finding["severity"] for finding in said["findings"]} == {"error", "info"}


def test_a_code_is_explained_in_both_languages() -> None:
    english = sampan("--explain", "glibc.ceiling")
    i18n.use("zh")
    try:
        chinese = sampan("--explain", "glibc.ceiling")
    finally:
        i18n.use("en")
    assert english.returncode == chinese.returncode == 0
    for word in ("Cause.", "Proof.", "Fix.", "readelf -V FILE"):
        assert word in english.stdout
    for word in ("原因。", "验证。", "修复。", "readelf"):
        assert word in chinese.stdout
    said = json.loads(sampan("--explain", "glibc.ceiling", "--json").stdout)
    assert set(said) == {"schema", "code", "cause", "proof", "fix"}


def test_all_codes_are_listed() -> None:
    assert sampan("--list-codes").stdout.split() == list(explain.codes())


@pytest.mark.parametrize(
    ("words", "code", "part"),
    [
        (("--explain", "glibc.celing"), 2, "glibc.ceiling"),
        ((), 2, "sampan audit"),
        (("/no/such/file", *TARGET), 3, "/no/such/file"),
        (("x", "--min-severity", "loud"), 2, "loud"),
        (("x", *TARGET, "--gpu", "GeForce 256@1.0"), 2, "Tesla P4"),
    ],
)
def test_what_cannot_be_done_is_said(words: tuple[str, ...], code: int, part: str) -> None:
    done = sampan(*words)
    assert done.returncode == code
    assert part in done.stderr
    assert "Traceback" not in done.stderr
