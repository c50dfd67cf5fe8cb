"""Deltas: small, reproducible, and the full bundle again to the last byte; or a clear word and nothing left."""

from __future__ import annotations

import json
import random
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.fakes.bundle_parts import PASSED, make_parts, put

from sampan.bundle import delta, delta_pack, layout, receipt, sums, units
from sampan.bundle.archive import Archive
from sampan.bundle.assemble import assemble
from sampan.bundle.contents import opened
from sampan.bundle.pack import header, pack
from sampan.bundle.receipt import Receipt
from sampan.bundle.seal import seal
from sampan.bundle.verify import verify
from sampan.errors import BadInputError, FilesystemError, SampanError, VerificationError

LARGE = 300 << 10


def _noise(seed: int, size: int = LARGE) -> bytes:
    return random.Random(seed).randbytes(size)


def _bundle(place: Path, files: dict[str, bytes]) -> Path:
    """A sealed release with these files besides."""
    folder = Path(assemble(make_parts(place), place / "out").path)
    for name, data in files.items():
        put(folder / name, data)
    seal(folder, PASSED)
    return folder


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Read only: see ``spoilt``."""
    files = {"runtime/lib/sys/libbig.so": _noise(1), "app/pkg/a.py": b"a", "app/pkg/b.py": b"b", "app/old.py": b"old"}
    return _bundle(tmp_path_factory.mktemp("old"), files)


@pytest.fixture(scope="module")
def new(tmp_path_factory: pytest.TempPathFactory) -> Path:
    files = {
        "runtime/lib/sys/libbig.so": _noise(1),
        "app/pkg/a.py": b"a",
        "app/pkg/b.py": b"B",
        "app/engine": _noise(2),
    }
    return _bundle(tmp_path_factory.mktemp("new"), files)


@pytest.fixture(scope="module")
def original(old: Path, new: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(delta_pack.make(new, *delta_pack.since_bundle(old), tmp_path_factory.mktemp("carry")).path)


@pytest.fixture
def made(original: Path, tmp_path: Path) -> Path:
    """A delta to spoil."""
    return Path(shutil.copy(original, tmp_path))


@pytest.fixture
def spoilt(old: Path, tmp_path: Path) -> Path:
    """The installed release, to spoil."""
    return Path(shutil.copytree(old, tmp_path / "installed"))


def _mark(folder: Path) -> Receipt:
    with opened(folder) as here:
        return Receipt("mini", 3, frozenset(units.units(here.digests, here.sizes)))


@pytest.mark.parametrize("as_tar", [False, True])
def test_it_makes_the_full_bundle_again_to_the_last_byte(old: Path, new: Path, tmp_path: Path, as_tar: bool) -> None:
    full = Path(pack(new, tmp_path / "full").path)
    source = full if as_tar else new
    package = delta_pack.make(source, *delta_pack.since_bundle(old), tmp_path / "carry")
    folder = delta.rebuild(Path(package.path), old, tmp_path / "here")
    assert verify(folder) == ()
    assert Path(pack(folder, tmp_path / "again").path).read_bytes() == full.read_bytes()


def test_a_receipt_does_as_well_for_large_files_and_whole_packages(old: Path, new: Path, tmp_path: Path) -> None:
    code = receipt.read(receipt.write(_mark(old)), where="-")
    package = delta_pack.make(new, *delta_pack.since_receipt(code), tmp_path / "carry")
    with Path(package.path).open("rb") as stream:
        facts = json.loads(Archive(stream, Path(package.path)).read(delta.FACTS) or b"")
    sent = {one["path"] for one in (*facts["packed"], *facts["plain"])}
    assert {"app/engine", "app/pkg/a.py", "app/pkg/b.py"} <= sent  # one file changed: its package travels
    assert "runtime/lib/sys/libbig.so" not in sent
    assert verify(delta.rebuild(Path(package.path), old, tmp_path / "here")) == ()


def test_the_same_inputs_give_the_same_bytes_and_a_sum_beside_them(
    old: Path, new: Path, original: Path, tmp_path: Path
) -> None:
    again = Path(delta_pack.make(new, *delta_pack.since_bundle(old), tmp_path / "again").path)
    assert again.read_bytes() == original.read_bytes()
    assert again.with_name(f"{again.name}.sha256").read_text() == f"{sums.hash_file(original)}  {again.name}\n"


def test_it_is_small(old: Path, new: Path, made: Path) -> None:
    full = sum(entry.size for entry in layout.entries(new))
    assert LARGE < made.stat().st_size < full - LARGE + (64 << 10)
    assert old.name in made.name


def test_a_file_under_another_name_does_not_travel(tmp_path: Path) -> None:
    was, now = _bundle(tmp_path / "a", {"app/x": _noise(5)}), _bundle(tmp_path / "b", {"app/y": _noise(5)})
    package = delta_pack.make(now, *delta_pack.since_bundle(was), tmp_path / "carry")
    assert package.size_bytes < LARGE // 2
    assert verify(delta.rebuild(Path(package.path), was, tmp_path / "here")) == ()


def test_it_is_known_from_a_full_bundle_and_from_rubbish(made: Path, new: Path, tmp_path: Path) -> None:
    full = Path(pack(new, tmp_path / "full").path)
    assert [delta.is_delta(path) for path in (made, full, new, put(tmp_path / "x", b"?"), tmp_path / "no")] == [
        True, False, False, False, False,
    ]  # fmt: skip
    with pytest.raises(BadInputError) as raised:
        delta_pack.make(made, "x-1", lambda _: frozenset(), tmp_path / "carry")
    assert raised.value.key == "delta.of-delta"


def _refused(kind: type[SampanError], key: str, made: Path, installed: Path, tmp_path: Path) -> str:
    with pytest.raises(kind) as raised:
        delta.rebuild(made, installed, tmp_path / "here")
    assert raised.value.key == key
    assert not (tmp_path / "here").exists() or list((tmp_path / "here").iterdir()) == []
    return raised.value.message


def test_another_release_than_it_was_made_for_is_told_at_once(made: Path, new: Path, tmp_path: Path) -> None:
    other = Path(shutil.copytree(new, tmp_path / "other"))
    listed = (other / layout.SUMS).read_text().splitlines(keepends=True)
    (other / layout.SUMS).write_text("".join(line for line in listed if "libbig.so" not in line))
    assert "libbig.so" in _refused(VerificationError, "delta.lacks", made, other, tmp_path)


def test_a_damaged_installed_file_is_named(made: Path, spoilt: Path, tmp_path: Path) -> None:
    put(spoilt / "runtime/lib/sys/libbig.so", _noise(9))
    assert "libbig.so" in _refused(VerificationError, "delta.wrong", made, spoilt, tmp_path)


def test_a_missing_or_linked_installed_file_is_named(made: Path, spoilt: Path, tmp_path: Path) -> None:
    (spoilt / "runtime/lib/sys/libbig.so").unlink()
    (spoilt / "runtime/lib/sys/libbig.so").symlink_to("/etc/hostname")
    _refused(VerificationError, "delta.lacks", made, spoilt, tmp_path)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_a_cut_delta_is_a_clear_error(made: Path, old: Path, tmp_path: Path, share: float) -> None:
    data = made.read_bytes()
    made.write_bytes(data[: int(len(data) * share)])
    with pytest.raises(BadInputError):
        delta.rebuild(made, old, tmp_path / "here")
    assert not (tmp_path / "here").exists() or list((tmp_path / "here").iterdir()) == []


def test_a_changed_byte_anywhere_in_what_travels_is_found(made: Path, old: Path, tmp_path: Path) -> None:
    data = bytearray(made.read_bytes())
    data[-LARGE // 2] ^= 1
    made.write_bytes(data)
    with pytest.raises(SampanError) as raised:
        delta.rebuild(made, old, tmp_path / "here")
    assert raised.value.key in ("delta.wrong", "delta.stream")


def test_a_full_disk_is_told_beforehand(
    made: Path, old: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(delta, "disk_usage", lambda _: usage._replace(free=1 << 10))
    _refused(FilesystemError, "carry.space", made, old, tmp_path)


def test_a_folder_of_that_name_is_left_alone(made: Path, old: Path, tmp_path: Path) -> None:
    put(tmp_path / "here/mini-3/mine", b"mine")
    with pytest.raises(FilesystemError):
        delta.rebuild(made, old, tmp_path / "here")
    assert (tmp_path / "here/mini-3/mine").read_bytes() == b"mine"


def _with_facts(made: Path, change: Callable[[dict[str, object]], object]) -> Path:
    """The delta with other facts: what an attacker would write."""
    with tarfile.open(made) as tar:
        members = [(info, tar.extractfile(info)) for info in tar.getmembers()]
        parts = [(info, stream.read() if stream else b"") for info, stream in members]
    forged = made.with_name("forged.tar")
    with forged.open("wb") as sink:
        for info, data in parts:
            if info.name.endswith(delta.FACTS):
                facts = json.loads(data)
                change(facts)
                data = json.dumps(facts).encode()  # noqa: PLW2901
            kind = tarfile.DIRTYPE if info.isdir() else tarfile.REGTYPE
            sink.write(header(f"{info.name}/" if info.isdir() else info.name, kind, info.mode, len(data), 0))
            sink.write(data + bytes(-len(data) % 512))
        sink.write(bytes(1024))
    return forged


@pytest.mark.parametrize(
    "change",
    [
        lambda facts: facts["packed"].append({"path": "../../etc/cron.d/x", "size": 1}),
        lambda facts: facts["packed"].append(facts["packed"][0]),
        lambda facts: facts["packed"][0].update(size=1 << 50),
        lambda facts: facts["packed"][0].update(size=-1),
        lambda facts: facts.update(full_bytes=-1),
        lambda facts: facts.update(name="other"),
        lambda facts: facts.update(name="../up"),
        lambda facts: facts.update(packed=[]),
        lambda facts: facts.update(plain=[{"path": "README.txt", "size": 4}]),
    ],
)
def test_facts_that_lie_are_refused(
    made: Path, old: Path, tmp_path: Path, change: Callable[[dict[str, object]], object]
) -> None:
    with pytest.raises((BadInputError, VerificationError)):
        delta.rebuild(_with_facts(made, change), old, tmp_path / "here")
    assert not (tmp_path / "here").exists() or list((tmp_path / "here").iterdir()) == []
    assert not (tmp_path / "etc").exists()
