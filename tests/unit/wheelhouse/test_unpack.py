"""Unpacking wheels: checked, safe, trimmed, accounted for."""

from __future__ import annotations

import csv
import stat
import zipfile
from email.message import Message
from pathlib import Path

import pytest
from tests.unit.wheelhouse.conftest import wheel

from sampan.errors import BadInputError, ExitCode
from sampan.wheelhouse.own import digest, files, place_own
from sampan.wheelhouse.unpack import licence_of, unpack


def _found(app: Path) -> set[str]:
    return {path.relative_to(app).as_posix() for path in app.rglob("*") if path.is_file()}


def test_files_metadata_and_a_true_record_arrive_and_scripts_do_not(tmp_path: Path) -> None:
    path = wheel(
        tmp_path,
        "demo",
        {
            "demo/__init__.py": b"",
            "demo/py.typed": b"",
            "demo/core.pyx": b"x",
            "demo/core.pyi": b"x",
            "demo/tests/test_core.py": b"x",
            "demo-1.0.data/scripts/run": b"#!python",
            "demo-1.0.data/platlib/demo/extra.py": b"x",
            "demo-1.0.data/data/share/man": b"x",
            "demo-1.0.dist-info/licenses/tests/LICENSE.c": b"MIT",
        },
    )
    made = unpack(path, tmp_path / "app", "f" * 64)
    info = "demo-1.0.dist-info"
    assert _found(tmp_path / "app") == {
        "demo/__init__.py",
        "demo/py.typed",
        "demo/extra.py",
        f"{info}/METADATA",
        f"{info}/WHEEL",
        f"{info}/entry_points.txt",
        f"{info}/licenses/tests/LICENSE.c",
        f"{info}/RECORD",
    }
    rows = list(csv.reader((tmp_path / "app" / info / "RECORD").read_text().splitlines()))
    assert {row[0] for row in rows} == _found(tmp_path / "app")
    assert (made.name, made.version, made.licence) == ("demo", "1.0", "MIT")
    assert stat.S_IMODE((tmp_path / "app/demo/__init__.py").stat().st_mode) == 0o644


def test_only_the_lexer_that_tracebacks_need_is_kept(tmp_path: Path) -> None:
    folder = "pygments/lexers"
    path = wheel(
        tmp_path, "pygments", {f"{folder}/__init__.py": b"", f"{folder}/python.py": b"", f"{folder}/php.py": b""}
    )
    unpack(path, tmp_path / "app", "f" * 64)
    assert sorted(item.name for item in (tmp_path / "app" / folder).iterdir()) == ["__init__.py", "python.py"]


def test_a_wheel_that_lies_about_its_contents_is_refused(tmp_path: Path) -> None:
    path = wheel(tmp_path, "demo", {"demo.py": b"evil"}, record={"demo.py": b"good"})
    with pytest.raises(BadInputError) as caught:
        unpack(path, tmp_path / "app", "f" * 64)
    assert caught.value.key == "wheelhouse.bad-wheel"
    assert caught.value.exit_code is ExitCode.BAD_INPUT
    assert "demo.py" in str(caught.value)


@pytest.mark.parametrize("data", [b"", b"PK\x03\x04 cut short", b"no zip"])
def test_a_damaged_file_is_named(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "demo-1.0-py3-none-any.whl"
    path.write_bytes(data)
    with pytest.raises(BadInputError) as caught:
        unpack(path, tmp_path / "app", "f" * 64)
    assert caught.value.key == "wheelhouse.bad-wheel"
    assert path.name in str(caught.value)


def test_a_truncated_wheel_is_named(tmp_path: Path) -> None:
    path = wheel(tmp_path, "demo", {"demo.py": bytes(5000)})
    path.write_bytes(path.read_bytes()[:3000])
    with pytest.raises(BadInputError):
        unpack(path, tmp_path / "app", "f" * 64)


def test_a_wheel_without_metadata_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "demo-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("demo.py", "x")
    with pytest.raises(BadInputError):
        unpack(path, tmp_path / "app", "f" * 64)


@pytest.mark.parametrize("member", ["../evil.py", "demo/../../evil.py", "/etc/evil.py", "demo\\..\\evil.py"])
def test_a_path_that_leads_out_is_refused(tmp_path: Path, member: str) -> None:
    path = wheel(tmp_path / "w", "demo", {member: b"x"})
    with pytest.raises(BadInputError):
        unpack(path, tmp_path / "app", "f" * 64)
    assert not list(tmp_path.rglob("evil.py"))
    assert not Path("/etc/evil.py").exists()


def test_two_wheels_with_the_same_file_are_refused(tmp_path: Path) -> None:
    unpack(wheel(tmp_path, "one", {"shared.py": b"1"}), tmp_path / "app", "f" * 64)
    with pytest.raises(BadInputError) as caught:
        unpack(wheel(tmp_path, "two", {"shared.py": b"2"}), tmp_path / "app", "f" * 64)
    assert caught.value.key == "wheelhouse.twice"


def _metadata(**fields: str) -> Message:
    message = Message()
    for name, value in fields.items():
        message[name.replace("_", "-")] = value
    return message


@pytest.mark.parametrize(
    ("fields", "licence"),
    [
        ({"License_Expression": "MIT", "Classifier": "License :: OSI Approved :: BSD License"}, "MIT"),
        ({"Classifier": "License :: OSI Approved :: BSD License", "License": "text"}, "BSD License"),
        ({"License": "Apache 2"}, "Apache 2"),
        ({"License": "first line\nand a whole text"}, None),
        ({}, None),
    ],
)
def test_the_licence_is_read_as_precisely_as_it_is_given(fields: dict[str, str], licence: str | None) -> None:
    assert licence_of(_metadata(**fields)) == licence


def test_sampans_own_files_come_without_caches_and_with_their_licence(tmp_path: Path) -> None:
    made = place_own(tmp_path, files())
    found = _found(tmp_path)
    assert {"sampan/__main__.py", "sampan/data/runtime.toml", "sampan/data/messages/core.toml"} <= found
    assert not any("__pycache__" in path for path in found)
    (licence,) = [path for path in found if path.endswith("licenses/LICENSE")]
    assert "Apache License" in (tmp_path / licence).read_text()
    assert made.name == "sampan"


def test_a_changed_source_changes_the_key() -> None:
    one = (("sampan/a.py", b"1"), ("sampan/b.py", b"2"))
    assert digest(one) == digest(one)
    assert len({digest(one), digest(one[:1]), digest((("sampan/a.py", b"12"), ("sampan/b.py", b"")))}) == 3
