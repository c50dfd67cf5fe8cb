"""Files that are no ELF file are not passed over in silence where that would look like a proof."""

from __future__ import annotations

import os
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
