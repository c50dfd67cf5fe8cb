"""What a shipped bundle is: small, whole, audited, the same bytes each time."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import tarfile
import zlib
from pathlib import Path

import pytest
from tests.e2e.ships import KUNPENG, MINILM, Shipped, ship

from sampan.bundle.unpack import unpack
from sampan.bundle.verify import verify

pytestmark = pytest.mark.e2e

MB = 1_000_000


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]


def beside_the_weights(shipped: Shipped) -> list[Path]:
    return [path for path in files(shipped.folder) if path.suffix != ".gguf"]


def test_overhead_beside_the_weights_is_small(minilm_kunpeng: Shipped) -> None:
    paths = beside_the_weights(minilm_kunpeng)
    assert sum(path.stat().st_size for path in paths) <= 120 * MB
    assert sum(len(zlib.compress(path.read_bytes(), 6)) for path in paths) <= 45 * MB
    engines = [path for path in paths if path.name == "llama-server"]
    assert len(engines) == 3
    assert all(path.stat().st_size <= 15 * MB for path in engines)


def test_the_audit_read_every_elf_file_and_none_needs_a_file_outside(minilm_kunpeng: Shipped) -> None:
    elf = [path for path in files(minilm_kunpeng.folder) if path.read_bytes()[:4] == b"\x7fELF"]
    audit = minilm_kunpeng.said["audit"]
    assert audit["elf_files"] == len(elf) > 40
    assert [finding for finding in audit["findings"] if finding["severity"] == "error"] == []


def test_the_tar_unpacks_verifies_and_tells_of_its_rehearsal(minilm_kunpeng: Shipped, tmp_path: Path) -> None:
    folder = unpack(minilm_kunpeng.package, tmp_path)
    assert verify(folder) == ()
    assert "cortex-a76" in (folder / "rehearsal.txt").read_text(encoding="utf-8")
    done = subprocess.run(["sha256sum", "-c", "--quiet", "SHA256SUMS"], cwd=folder, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    sums = minilm_kunpeng.package.with_name(minilm_kunpeng.package.name + ".sha256")
    assert (
        subprocess.run(["sha256sum", "-c", sums.name], cwd=sums.parent, capture_output=True, check=False).returncode
        == 0
    )


def test_nothing_of_this_machine_is_inside(minilm_kunpeng: Shipped) -> None:
    private = {
        os.environ.get("SAMPAN_CACHE", str(Path.home() / ".cache" / "sampan")).encode(),
        str(minilm_kunpeng.work).encode(),
    }
    for path in beside_the_weights(minilm_kunpeng):
        data = path.read_bytes()
        assert not any(word in data for word in private), path


def test_the_same_inputs_give_the_same_bytes(minilm_kunpeng: Shipped, tmp_path: Path) -> None:
    previous = os.umask(0o077)
    try:
        again = ship(MINILM, KUNPENG, tmp_path / "elsewhere", "--name", "minilm")
    finally:
        os.umask(previous)
    assert again.package.read_bytes() == minilm_kunpeng.package.read_bytes()
    said = hashlib.sha256(again.package.read_bytes()).hexdigest()
    assert said == again.said["package"]["sha256"]


def test_every_artefact_is_there_and_says_its_schema(minilm_kunpeng: Shipped) -> None:
    found = sorted(path for path in minilm_kunpeng.work.glob("[0-9][0-9]-*.json"))
    assert [path.name[:2] for path in found] == [f"{number:02}" for number in range(1, 11)]
    for path in found:
        assert json.loads(path.read_text())["schema"].startswith("sampan/")


def test_the_tar_is_plain(minilm_kunpeng: Shipped) -> None:
    with tarfile.open(minilm_kunpeng.package, "r:") as tar:
        members = tar.getmembers()
    assert {member.uid for member in members} == {0}
    assert all(member.isfile() or member.isdir() for member in members)
    assert {member.mtime for member in members} == {members[0].mtime}
