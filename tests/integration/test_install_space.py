"""How much a disk must hold to install a bundle that lies on it: the bundle once, and 5 % more.

The disk is an ext4 of a fixed size; what is on it is looked at all the while.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.fakes.miniature import miniature, packed, sealed

from sampan.carry.split import split
from sampan.edge.progress import SilentProgress
from sampan.errors import FilesystemError
from sampan.flow import asking, installing
from sampan.flow.opening import Wish
from sampan.install import lookup
from sampan.install.model import InstallOptions
from sampan.install.steps import install

pytestmark = pytest.mark.integration
MIB = 1 << 20
WEIGHTS = 96 * MIB
SHELLS = [("dash",), ("busybox", "sh")]


@dataclass
class Disk:
    """A file system and what was most on it. ``base``: bytes that were on it before the bundle came."""

    place: Path
    base: int = 0
    most: int = field(default=0, compare=False)

    def used(self) -> int:
        """Bytes that are taken."""
        found = os.statvfs(self.place)
        return (found.f_blocks - found.f_bfree) * found.f_frsize

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Look at it every millisecond."""
        over = threading.Event()

        def look() -> None:
            while not over.wait(0.001):
                self.most = max(self.most, self.used())

        watcher = threading.Thread(target=look)
        watcher.start()
        try:
            yield
        finally:
            over.set()
            watcher.join()

    def peak(self, size: int) -> float:
        """What was most on it in bundles of ``size`` bytes."""
        return (self.most - self.base) / size


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    """An ext4 of 150 MiB: it has no room for two bundles."""
    if os.getuid() or not all(map(shutil.which, ("mkfs.ext4", "mount"))):
        pytest.skip("making a small file system takes root and mkfs.ext4")
    image, place = tmp_path / "image", tmp_path / "disk"
    image.touch()
    os.truncate(image, 150 * MIB)
    place.mkdir()
    subprocess.run(["mkfs.ext4", "-q", "-m", "0", "-b", "4096", str(image)], check=True)
    mounted = subprocess.run(["mount", "-o", "loop", image, place], capture_output=True, text=True, check=False)
    if mounted.returncode:
        pytest.skip(f"this machine lets us mount no image: {mounted.stderr.strip()}")
    try:
        yield Disk(place)
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def bundle(folder: Path, release: int) -> Path:
    """A miniature with weights that matter and a thousand small files."""
    made = miniature(folder, release)
    (made / "weights/tiny model.gguf").write_bytes(os.urandom(MIB) * (WEIGHTS // MIB))
    for number in range(1000):
        (made / f"app/{number}.py").write_bytes(os.urandom(500 + number * 7))
    (made / "manifest.json").unlink()
    return sealed(made, release)


@pytest.fixture
def tar(disk: Disk, tmp_path: Path) -> Path:
    """The bundle's tar on the disk, where an older release is in force already."""
    options = InstallOptions(
        bundle=miniature(tmp_path / "mini-1"), features=frozenset(), prefix=disk.place / "mini", service=False
    )
    install(options, asking.hands(lambda _line: None, SilentProgress()))
    disk.base = disk.used()
    return Path(shutil.copy(packed(bundle(tmp_path / "mini-2", 2), tmp_path / "tar"), disk.place))


def upgrade(disk: Disk, path: Path, *, consume: bool) -> None:
    """The older release by this one."""
    found = lookup.find(None, prefix=disk.place / "mini")
    with disk.watched():
        installing.upgrade(path, found, Wish((), consume=consume), lambda _line: None, SilentProgress())


def test_a_tar_is_consumed_in_place(disk: Disk, tar: Path) -> None:
    size = tar.stat().st_size
    with pytest.raises(FilesystemError, match="space"):
        upgrade(disk, tar, consume=False)
    upgrade(disk, tar, consume=True)
    print(f"most on the disk: {disk.peak(size):.3f} bundles")
    assert 0.98 < disk.peak(size) < 1.05
    assert sorted(path.name for path in disk.place.iterdir()) == ["lost+found", "mini"]


def test_a_folder_is_consumed_in_place(disk: Disk, tar: Path) -> None:
    size = tar.stat().st_size
    _emptying("dash", f"for part in {tar}; do cat $part; rm $part; done | tar xf -", cwd=disk.place.parent)
    folder = Path(shutil.copytree(disk.place.parent / "mini-2", disk.place / "mini-2"))
    with pytest.raises(FilesystemError, match="space"):
        upgrade(disk, folder, consume=False)
    upgrade(disk, folder, consume=True)
    print(f"most on the disk: {disk.peak(size):.3f} bundles")
    assert 0.98 < disk.peak(size) < 1.05
    assert sorted(path.name for path in disk.place.iterdir()) == ["lost+found", "mini"]


@pytest.mark.parametrize("shell", SHELLS, ids=str)
def test_parts_are_consumed_while_they_are_unpacked(disk: Disk, tar: Path, shell: tuple[str, ...]) -> None:
    """As docs/carry.md says, and the first installation from what was unpacked; nothing but sh, coreutils, tar."""
    size = tar.stat().st_size
    split(tar, disk.place.parent / "parts", "100", None, SilentProgress())
    tar.unlink()
    shutil.rmtree(disk.place / "mini")
    disk.base = disk.used()
    for path in (disk.place.parent / "parts").iterdir():
        shutil.move(path, disk.place)
    with disk.watched():
        _emptying(*shell, _of_docs("NAME.tar.parts.sha256 &&"), cwd=disk.place)
        _emptying(
            *shell, f"./install.sh --no-service --consume --prefix {disk.place}/mini", cwd=disk.place / "mini-2"
        )
    print(f"most on the disk: {disk.peak(size):.3f} bundles")
    assert 0.98 < disk.peak(size) < 1.05
    assert not (disk.place / "mini-2").exists()


@pytest.mark.parametrize("shell", SHELLS, ids=str)
def test_a_lone_tar_is_cut_from_its_end_and_unpacked(disk: Disk, tar: Path, shell: tuple[str, ...]) -> None:
    """As docs/carry.md says."""
    size = tar.stat().st_size
    shutil.rmtree(disk.place / "mini")
    disk.base = disk.used() - size
    script = _of_docs("truncate -s").replace("step=16", "step=1")
    (disk.place / "mini-2.tar.sha256").write_text(f"{hashlib.sha256(tar.read_bytes()).hexdigest()}  mini-2.tar\n")
    with disk.watched():
        _emptying(*shell, script, cwd=disk.place)
    print(f"most on the disk: {disk.peak(size):.3f} bundles")
    assert 0.98 < disk.peak(size) < 1.05
    assert (disk.place / "mini-2/app/999.py").stat().st_size == 500 + 999 * 7
    assert sorted(path.name for path in disk.place.iterdir()) == [
        "lost+found",
        "mini-2",
        "mini-2.tar",
        "mini-2.tar.sha256",
    ]


def _of_docs(word: str) -> str:
    """The script of the page that has this word."""
    text = (Path(__file__).parents[2] / "docs/carry.md").read_text(encoding="utf-8")
    return next(block for block in text.split("\n\n") if word in block and block.startswith("    ")).replace(
        "NAME", "mini-2"
    )


def _emptying(*words: str, cwd: Path) -> None:
    *shell, script = words
    if shutil.which(shell[0]) is None:
        pytest.skip(f"{shell[0]} is not here")
    done = subprocess.run([*shell, "-c", script], cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
