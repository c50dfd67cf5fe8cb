"""Markers, tags and the lock: all of the target, nothing of this machine."""

from __future__ import annotations

from importlib import metadata

import pytest
from packaging.requirements import Requirement
from tests.unit.wheelhouse.conftest import runtime

from sampan.errors import BadInputError
from sampan.wheelhouse.lock import lock_text, pinned
from sampan.wheelhouse.target import environment, platforms, tags

HASH = "--hash=sha256:" + "a" * 64


def test_the_runtimes_glibc_is_the_ceiling() -> None:
    assert tags(runtime())[0] == "cp311-cp311-manylinux_2_36_aarch64"
    names = list(platforms("aarch64", "2.28"))
    assert names[0] == "manylinux_2_28_aarch64"
    assert names[-3:] == ["manylinux_2_17_aarch64", "manylinux2014_aarch64", "linux_aarch64"]
    assert not any("x86" in tag or "musl" in tag for tag in tags(runtime()))


def test_old_names_exist_for_x86_only() -> None:
    assert "manylinux1_x86_64" in set(platforms("x86_64", "2.36"))
    assert "manylinux2010_x86_64" in set(platforms("x86_64", "2.36"))
    assert not any(name.startswith(("manylinux1_", "manylinux2010_")) for name in platforms("aarch64", "2.36"))


def test_a_closer_wheel_stands_before_a_looser_one() -> None:
    order = {tag: rank for rank, tag in enumerate(tags(runtime()))}
    chain = [
        "cp311-cp311-manylinux_2_28_aarch64",
        "cp311-cp311-manylinux2014_aarch64",
        "cp311-abi3-manylinux2014_aarch64",
        "cp39-abi3-manylinux2014_aarch64",
        "py3-none-manylinux2014_aarch64",
        "py3-none-any",
    ]
    assert sorted(chain, key=order.__getitem__) == chain
    assert len(set(tags(runtime()))) == len(tags(runtime()))


def test_markers_are_judged_for_the_target() -> None:
    text = (
        f"one==1.0 ; sys_platform == 'win32' \\\n    {HASH}\n"
        f"two==2.0 ; platform_machine == 'aarch64' and python_full_version >= '3.11' \\\n    {HASH}  # why\n"
        f"three==3.0 ; python_version < '3.11' \\\n    {HASH}\n"
    )
    assert [item.requirement for item in pinned(text, environment(runtime()))] == ["two==2.0"]
    assert [item.name for item in pinned(text, environment(runtime("x86_64")))] == []


@pytest.mark.parametrize(
    "line", [f"one>=1.0 {HASH}", "one==1.0", f"one {HASH}", f"=== {HASH}", f"one @ file:///x {HASH}"]
)
def test_what_is_not_pinned_is_refused(line: str) -> None:
    with pytest.raises(BadInputError) as caught:
        pinned(f"{line}\n", environment(runtime()))
    assert caught.value.key == "wheelhouse.lock"


def test_the_lock_covers_every_dependency_of_the_target_side() -> None:
    locked = {item.name for item in pinned(lock_text(), environment(runtime()))}
    target = environment(runtime())
    for text in metadata.requires("sampan") or []:
        requirement = Requirement(text)
        if requirement.marker is None or requirement.marker.evaluate({**target, "extra": ""}):
            assert requirement.name in locked, text


def test_the_lock_names_no_host() -> None:
    assert "://" not in lock_text()
