"""Files that are no ELF file are not passed over in silence where that would look like a proof."""

from __future__ import annotations

import io
import os
import tarfile
import zipfile
from pathlib import Path

import pytest

from sampan.audit.audit import audit
from sampan.survey import known

TARGET = known.load("kylin-v10-phytium-d2000")
LINKER_TEXT = b"/* GNU ld script */\nGROUP ( /lib64/libc.so.6 /usr/lib64/libc_nonshared.a )\n"
LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n"


def found(*paths: Path) -> dict[str, tuple[str, str]]:
    return {Path(one.path).name: (one.code, one.severity) for one in audit(paths, TARGET).findings}


@pytest.mark.parametrize(
    ("name", "content", "code", "severity"),
    [
        ("libx.so", b"", "file.not-elf", "error"),
        ("libx.so.1.2", LFS, "file.not-elf", "error"),
        ("m.cpython-311-aarch64-linux-gnu.so", b"MZ\x90\0", "file.not-elf", "error"),
        ("x.dll", b"MZ\x90\0", "file.not-elf", "error"),
        ("x.dylib", b"\xcf\xfa\xed\xfe\x0c\0\0\1", "file.not-elf", "error"),
        ("x.rpm", b"\xed\xab\xee\xdb\3\0", "file.unopened", "warning"),
        ("x.7z", b"7z\xbc\xaf\x27\x1c\0\4", "file.unopened", "warning"),
        ("x.jar", b"PK\3\4rest", "file.unopened", "warning"),
    ],
)
def test_a_named_file_that_cannot_be_judged_is_told(
    tmp_path: Path, name: str, content: bytes, code: str, severity: str
) -> None:
    (tmp_path / name).write_bytes(content)
    assert found(tmp_path / name) == {name: (code, severity)}


@pytest.mark.parametrize(
    ("name", "content"), [("libc.so", LINKER_TEXT), ("README", b"text"), ("run.sh", b"#!/bin/sh\n")]
)
def test_texts_are_passed_over(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    assert found(tmp_path / name) == {}


def test_in_a_folder_only_the_name_of_a_library_counts_and_is_a_warning(tmp_path: Path) -> None:
    for name, content in (("libx.so", b""), ("x.dll", b"MZ"), ("log.gz", b"\x1f\x8b\x08"), ("libc.so", LINKER_TEXT)):
        (tmp_path / name).write_bytes(content)
    os.mkfifo(tmp_path / "pipe.so")
    (tmp_path / "broken.so").symlink_to("nowhere")
    assert found(tmp_path) == {"libx.so": ("file.not-elf", "warning")}


def test_in_a_bundle_it_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "libx.so").write_bytes(b"")
    report = audit([tmp_path], TARGET, bundle=tmp_path)
    assert [(one.code, one.severity) for one in report.findings] == [("file.not-elf", "error")]


MEMBERS = {"p/empty.so": b"", "p/lfs.so.1": LFS, "p/mac.so": b"\xcf\xfa\xed\xfe\x0c\0\0\1", "p/libc.so": LINKER_TEXT}
SAID = {("p/empty.so", "empty"), ("p/lfs.so.1", "Git LFS pointer"), ("p/mac.so", "Mach-O (macOS)")}


def wheel(folder: Path, platform: str) -> Path:
    path = folder / f"p-1.0-py3-none-{platform}.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, body in {**MEMBERS, "p-1.0.dist-info/WHEEL": b"Wheel-Version: 1.0\n"}.items():
            archive.writestr(name, body)
    return path


def said_of(path: Path, place: Path) -> dict[tuple[str, str], str]:
    """The member and what it is -> how grave that is."""
    findings = [one for one in audit([place], TARGET).findings if one.code == "file.not-elf"]
    assert all(one.path.startswith(f"{path.name}!") or f"/{path.name}!" in one.path for one in findings)
    return {(one.path.partition("!")[2], dict(one.values)["found"]): one.severity for one in findings}


def test_a_wheels_libraries_that_are_none_are_errors(tmp_path: Path) -> None:
    path = wheel(tmp_path, "manylinux_2_17_aarch64")
    assert said_of(path, path) == dict.fromkeys(SAID, "error")


def test_in_a_wheel_that_only_lies_in_a_folder_they_are_warnings(tmp_path: Path) -> None:
    assert said_of(wheel(tmp_path, "manylinux_2_17_aarch64"), tmp_path) == dict.fromkeys(SAID, "warning")


def test_of_a_wheel_for_another_system_only_that_is_said(tmp_path: Path) -> None:
    path = wheel(tmp_path, "macosx_11_0_arm64")
    assert [one.code for one in audit([path], TARGET).findings if one.code != "wheel.record"] == ["wheel.platform"]


def test_in_a_tar_they_are_warnings(tmp_path: Path) -> None:
    path = tmp_path / "sources.tar"
    with tarfile.open(path, "w") as archive:
        for name, body in MEMBERS.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(body)
            archive.addfile(entry, io.BytesIO(body))
    assert said_of(path, path) == dict.fromkeys(SAID, "warning")
