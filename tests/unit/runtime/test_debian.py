"""Resolving and fetching Debian packages."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.fakes.debian_archive import Archive
from tests.unit.runtime.conftest import FakeRunner

from sampan.edge.net import NetFetcher
from sampan.edge.progress import SilentProgress
from sampan.edge.store import DiskStore
from sampan.errors import (
    ExitCode,
    FilesystemError,
    IncompatibleError,
    MissingToolError,
    NetworkError,
    SampanError,
    VerificationError,
)
from sampan.runtime.debian import fetch, fetch_package, resolve
from sampan.runtime.index import Located
from sampan.spec.debian import DebianSource

Resolve = Callable[..., tuple[Located, ...]]


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    made = Archive(tmp_path / "mirror")
    made.add("tool", "1.9-1", {"usr/bin/tool": b"old"})
    made.add("tool", "1.10-1", {"usr/bin/tool": b"new"})
    made.add("other", "2:0.1~rc1", {"usr/bin/other": b"x"})
    made.publish()
    return made


@pytest.fixture
def resolved(runner: FakeRunner, fetcher: NetFetcher, store: DiskStore) -> Resolve:
    def run(*names: str, sources: tuple[DebianSource, ...], arch: str = "aarch64", refresh: bool = False) -> object:
        return resolve(
            names,
            arch,
            sources=lambda: sources,
            fetcher=fetcher,
            runner=runner,
            store=store,
            progress=SilentProgress(),
            refresh=refresh,
        )

    return run  # type: ignore[return-value]


Get = Callable[[Callable[[], tuple[DebianSource, ...]]], Path]


@pytest.fixture
def get_tool(runner: FakeRunner, fetcher: NetFetcher, store: DiskStore) -> Get:
    """fetch_package of ``tool`` from the given sources."""

    def get(sources: Callable[[], tuple[DebianSource, ...]]) -> Path:
        return fetch_package(
            "tool", "aarch64", sources=sources, fetcher=fetcher, runner=runner, store=store, progress=SilentProgress()
        )

    return get


def _no_sources() -> tuple[DebianSource, ...]:
    raise MissingToolError("runtime.no-mirror", variable="V", folder="F")


def test_the_newest_version_by_debians_ordering_wins(resolved: Resolve, archive: Archive) -> None:
    tool, other = resolved("tool", "other", sources=(archive.source,))
    assert (tool.version, tool.arch, tool.suite) == ("1.10-1", "arm64", "bookworm")
    assert other.version == "2:0.1~rc1"


def test_a_security_update_wins_over_the_release(resolved: Resolve, archive: Archive, tmp_path: Path) -> None:
    security = Archive(tmp_path / "security", suite="bookworm-security")
    security.add("tool", "1.10-1+deb12u1", {"usr/bin/tool": b"fixed"})
    security.publish()
    (tool,) = resolved("tool", sources=(archive.source, security.source))
    assert (tool.version, tool.suite) == ("1.10-1+deb12u1", "bookworm-security")


def test_the_result_is_kept_until_a_refresh(resolved: Resolve, archive: Archive) -> None:
    first = resolved("tool", sources=(archive.source,))
    archive.add("tool", "1.11-1", {"usr/bin/tool": b"newer"})
    archive.publish()
    assert resolved("tool", sources=()) == first
    assert resolved("tool", sources=(archive.source,), refresh=True)[0].version == "1.11-1"


def test_a_damaged_lock_is_made_anew(resolved: Resolve, archive: Archive, store: DiskStore) -> None:
    first = resolved("tool", sources=(archive.source,))
    (lock,) = (store.root / "resolved").iterdir()
    lock.write_text("{")
    assert resolved("tool", sources=(archive.source,)) == first


def test_a_filled_store_needs_neither_mirror_nor_settings(get_tool: Get, archive: Archive) -> None:
    path = get_tool(lambda: (archive.source,))
    for file in archive.root.rglob("*.deb"):
        file.unlink()
    assert get_tool(_no_sources) == path


def test_a_second_mirror_helps_when_the_first_lacks_the_package(
    resolved: Resolve, archive: Archive, fetcher: NetFetcher, tmp_path: Path
) -> None:
    (tool,) = resolved("tool", sources=(archive.source,))
    empty = DebianSource((tmp_path / "empty").as_uri(), "bookworm")
    assert fetch(tool, sources=lambda: (empty, archive.source), fetcher=fetcher).is_file()


def test_a_cold_store_without_a_mirror_fails_clearly(get_tool: Get) -> None:
    with pytest.raises(MissingToolError) as caught:
        get_tool(_no_sources)
    assert caught.value.key == "runtime.no-mirror"


@pytest.mark.parametrize(
    ("status", "ok"),
    [
        ("[GNUPG:] GOODSIG A\n[GNUPG:] NO_PUBKEY B\n", True),
        ("[GNUPG:] NO_PUBKEY B\n", False),
        ("[GNUPG:] GOODSIG A\n[GNUPG:] BADSIG B\n", False),
        ("[GNUPG:] EXPKEYSIG A\n", False),
        ("gpgv: not a detached signature\n", False),
        ("spoofed [GNUPG:] GOODSIG A\n", False),
    ],
)
def test_one_good_signature_is_needed_and_none_may_be_bad(
    resolved: Resolve, archive: Archive, runner: FakeRunner, status: str, ok: bool
) -> None:
    runner.status = status
    if ok:
        assert resolved("tool", sources=(archive.source,))
        return
    with pytest.raises(VerificationError) as caught:
        resolved("tool", sources=(archive.source,))
    assert caught.value.key == "runtime.signature"


def _tamper_index(archive: Archive) -> None:
    path = archive.root / "dists/bookworm/main/binary-arm64/Packages.xz"
    path.write_bytes(path.read_bytes()[:-1] + b"\0")


def _tamper_size(archive: Archive) -> None:
    path = archive.root / "dists/bookworm/main/binary-arm64/Packages.xz"
    path.write_bytes(path.read_bytes() + b"\0")


def _other_origin(archive: Archive) -> None:
    archive.origin = "Somebody"
    archive.publish()


def _no_architecture(archive: Archive) -> None:
    archive.arch = "riscv64"
    archive.publish()


def _no_index(archive: Archive) -> None:
    (archive.root / "dists/bookworm/InRelease").unlink()


@pytest.mark.parametrize(
    ("fault", "key"),
    [
        (_tamper_index, "net.hash"),
        (_tamper_size, "net.size"),
        (_other_origin, "runtime.not-debian"),
        (_no_architecture, "runtime.no-index"),
        (_no_index, "net.not-found"),
    ],
)
def test_a_faulty_index_is_refused(
    resolved: Resolve, archive: Archive, store: DiskStore, fault: Callable[[Archive], None], key: str
) -> None:
    fault(archive)
    with pytest.raises(SampanError) as caught:
        resolved("tool", sources=(archive.source,))
    assert caught.value.key == key
    assert not (store.root / "resolved").exists()


def test_a_tampered_package_is_refused(resolved: Resolve, archive: Archive, fetcher: NetFetcher) -> None:
    (tool,) = resolved("tool", sources=(archive.source,))
    path = archive.root / tool.path
    path.write_bytes(path.read_bytes()[:-1] + b"\0")
    with pytest.raises(VerificationError) as caught:
        fetch(tool, sources=lambda: (archive.source,), fetcher=fetcher)
    assert caught.value.key == "net.hash"


def test_a_package_that_no_mirror_has_is_named(resolved: Resolve, archive: Archive) -> None:
    with pytest.raises(NetworkError) as caught:
        resolved("tool", "none-such", sources=(archive.source,))
    assert caught.value.key == "runtime.no-package"
    assert "none-such" in str(caught.value)


def test_an_architecture_that_debian_is_not_used_for_is_refused(resolved: Resolve) -> None:
    with pytest.raises(IncompatibleError) as caught:
        resolved("tool", sources=(), arch="loongarch64")
    assert caught.value.key == "runtime.architecture"
    assert caught.value.exit_code is ExitCode.INCOMPATIBLE


def test_a_store_that_cannot_be_written_is_a_filesystem_error(
    resolved: Resolve, archive: Archive, store: DiskStore
) -> None:
    store.root.mkdir()
    (store.root / "resolved").write_text("a file where a folder should be")
    with pytest.raises(FilesystemError):
        resolved("tool", sources=(archive.source,))


def test_a_missing_gpgv_says_what_to_install(resolved: Resolve, archive: Archive, runner: FakeRunner) -> None:
    def missing(*_: object, **__: object) -> None:
        raise MissingToolError("tool.missing", tool="gpgv")

    runner.run = missing  # type: ignore[method-assign,assignment]
    with pytest.raises(MissingToolError) as caught:
        resolved("tool", sources=(archive.source,))
    assert caught.value.key == "runtime.no-gpgv"
    assert caught.value.exit_code is ExitCode.MISSING_TOOL


def test_credentials_of_a_mirror_stay_out_of_messages() -> None:
    assert DebianSource("https://me:secret@m.example/debian", "bookworm").shown == "https://m.example/debian"
