"""A wheel that pip on the target would refuse is not called clean, whatever it holds."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from sampan.audit.audit import audit
from sampan.survey import known

TARGET = known.load("kylin-v10-phytium-d2000")


def told(path: Path) -> list[str]:
    return [one.severity for one in audit([path], TARGET).findings if one.code == "wheel.platform"]


def wheel(folder: Path, platform: str) -> Path:
    path = folder / f"x-1.0-cp311-cp311-{platform}.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x/__init__.py", "")
    return path


@pytest.mark.parametrize(
    ("platform", "severities"),
    [
        ("win_amd64", ["error"]),
        ("macosx_11_0_arm64", ["error"]),
        ("manylinux_2_17_x86_64.manylinux2014_x86_64", ["error"]),
        ("linux_x86_64", ["error"]),
        ("any", []),
        ("linux_aarch64", []),
        ("manylinux2014_aarch64", []),
        ("win_amd64.manylinux2014_aarch64", []),
    ],
)
def test_the_platforms_of_the_name_decide(tmp_path: Path, platform: str, severities: list[str]) -> None:
    assert told(wheel(tmp_path, platform)) == severities


def test_in_a_folder_it_is_a_warning(tmp_path: Path) -> None:
    wheel(tmp_path, "win_amd64")
    wheel(tmp_path, "manylinux2014_aarch64")
    assert told(tmp_path) == ["warning"]
