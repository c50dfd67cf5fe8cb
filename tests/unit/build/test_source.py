"""The source is unpacked safely, whole or not at all; licence texts are found in it."""

from __future__ import annotations

import tarfile
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.build.conftest import TOP, archive

from sampan.build.pins import Licence, engine_pin
from sampan.build.source import licence_text, unpack
from sampan.errors import BadInputError, BuildError, ExitCode

PIN = replace(engine_pin(), top=TOP, omit=("docs",), changes={})
FILES = {"CMakeLists.txt": b"project(x)", "src/a.c": b"int a;", "docs/long.md": b"x" * 5000}


def _odd(name: str, kind: bytes, link: str = "") -> tarfile.TarInfo:
    member = tarfile.TarInfo(f"{TOP}/{name}")
    member.type, member.linkname = kind, link
    return member


def test_the_wanted_part_is_unpacked_without_what_is_omitted(tmp_path: Path) -> None:
    unpack(archive(tmp_path / "s.tar.gz", FILES), PIN, tmp_path / "source")
    found = {
        str(path.relative_to(tmp_path / "source")) for path in (tmp_path / "source").rglob("*") if path.is_file()
    }
    assert found == {"CMakeLists.txt", "src/a.c"}
    assert (tmp_path / "source/src/a.c").read_bytes() == b"int a;"


def test_what_is_there_already_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    unpack(tmp_path / "there is no archive", PIN, tmp_path / "source")
    assert list((tmp_path / "source").iterdir()) == []


def test_what_an_interrupted_run_left_is_replaced(tmp_path: Path) -> None:
    half = tmp_path / "source.partial"
    (half / "src").mkdir(parents=True)
    (half / "src/a.c").write_bytes(b"int")
    (half / "stray.c").write_bytes(b"int stray;")
    unpack(archive(tmp_path / "s.tar.gz", FILES), PIN, tmp_path / "source")
    assert (tmp_path / "source/src/a.c").read_bytes() == b"int a;"
    assert not (tmp_path / "source/stray.c").exists()
    assert not half.exists()


def _refused(path: Path, tmp_path: Path) -> BadInputError:
    with pytest.raises(BadInputError) as caught:
        unpack(path, PIN, tmp_path / "source")
    assert caught.value.key == "build.archive"
    assert caught.value.exit_code == ExitCode.BAD_INPUT
    assert not (tmp_path / "source").exists()
    return caught.value


@pytest.mark.parametrize("keep", [0.3, 0.9])
def test_an_archive_cut_short_is_refused(keep: float, tmp_path: Path) -> None:
    path = archive(tmp_path / "s.tar.gz", {**FILES, "big.c": bytes(range(256)) * 400})
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * keep)])
    _refused(path, tmp_path)


def test_a_file_that_is_no_archive_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "s.tar.gz"
    path.write_bytes(b"<html>404</html>" * 100)
    _refused(path, tmp_path)


def test_an_archive_of_something_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "s.tar.gz"
    with tarfile.open(path, "w:gz") as opened:
        opened.addfile(tarfile.TarInfo("other-1.0/README"))
    assert TOP in _refused(path, tmp_path).message


@pytest.mark.parametrize(
    "member",
    [
        _odd("../../../escaped", tarfile.REGTYPE),
        _odd("src/link", tarfile.SYMTYPE, "/etc/passwd"),
        _odd("src/hard", tarfile.LNKTYPE, f"{TOP}/src/a.c/../../../../etc/passwd"),
        _odd("src/fifo", tarfile.FIFOTYPE),
        _odd("src/device", tarfile.CHRTYPE),
    ],
    ids=lambda member: Path(member.name).name,
)
def test_nothing_leads_outside_or_is_special(member: tarfile.TarInfo, tmp_path: Path) -> None:
    (tmp_path / "deep/er").mkdir(parents=True)
    path = archive(tmp_path / "s.tar.gz", FILES, member)
    with pytest.raises(BadInputError, match=Path(member.name).name):
        unpack(path, PIN, tmp_path / "deep/er/source")
    assert not list(tmp_path.rglob("escaped"))


def test_a_whole_licence_file_travels_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "LICENSE").write_text("MIT\n© someone\n", encoding="utf-8")
    assert licence_text(Licence("L", "source", "LICENSE"), tmp_path) == "MIT\n© someone\n"


def test_a_licence_in_a_comment_ends_with_the_comment(tmp_path: Path) -> None:
    (tmp_path / "a.h").write_text(
        "/* docs */\nint a;\n/*\nFree for all.\n\nNo warranty.\n*/\nint b;\n", encoding="utf-8"
    )
    licence = Licence("L", "source", "a.h", start="Free for all.")
    assert licence_text(licence, tmp_path) == "Free for all.\n\nNo warranty.\n"


def test_a_licence_in_line_comments_ends_with_them(tmp_path: Path) -> None:
    (tmp_path / "a.cpp").write_text("// Copyright A\n//\n// Free.\n\n// art\nint a;\n", encoding="utf-8")
    licence = Licence("L", "source", "a.cpp", start="// Copyright A")
    assert licence_text(licence, tmp_path) == "Copyright A\n\nFree.\n"


@pytest.mark.parametrize("start", [None, "Never written"])
def test_a_licence_that_is_not_there_stops_the_build(start: str | None, tmp_path: Path) -> None:
    if start:
        (tmp_path / "a.h").write_text("int a;\n", encoding="utf-8")
    with pytest.raises(BuildError) as caught:
        licence_text(Licence("LICENSE-a", "source", "a.h", start), tmp_path)
    assert caught.value.key == "build.licence"
    assert "LICENSE-a" in caught.value.message
