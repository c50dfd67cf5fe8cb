"""NetFetcher.url: resumed, retried, checked, complete or absent."""

from __future__ import annotations

import hashlib
import socket
from pathlib import Path

import pytest
from tests.fakes.http_server import Page, Site

from sampan.edge.download import Downloader
from sampan.edge.http import make_client
from sampan.edge.net import NetFetcher
from sampan.edge.pip_settings import IndexSettings
from sampan.edge.progress import SilentProgress
from sampan.edge.store import DiskStore
from sampan.edge.verify import Wanted
from sampan.errors import ExitCode, NetworkError, VerificationError

BODY = bytes(range(256)) * 1200
SHA = hashlib.sha256(BODY).hexdigest()


@pytest.fixture
def fetcher(tmp_path: Path) -> NetFetcher:
    settings = IndexSettings(timeout=2.0)
    return NetFetcher(DiskStore(tmp_path), SilentProgress(), settings=settings, pause=0.001)


def _left(root: Path) -> list[str]:
    return sorted(path.name for path in (root / "downloads").rglob("*") if path.is_file())


def test_a_file_comes_whole_and_is_then_served_without_the_network(
    site: Site, fetcher: NetFetcher, tmp_path: Path
) -> None:
    site.pages["/a%20b.bin"] = Page(BODY)
    path = fetcher.url(f"{site.url}/a%20b.bin", sha256=SHA, size=len(BODY))
    assert path == tmp_path / "downloads" / SHA / "a b.bin"
    assert path.read_bytes() == BODY
    site.pages.clear()
    assert fetcher.url(f"{site.url}/a%20b.bin", sha256=SHA) == path
    assert len(site.requests) == 1


@pytest.mark.parametrize("damaged", [b"", BODY[:-1], BODY[:-1] + b"?"], ids=["empty", "cut", "changed"])
def test_a_file_that_was_damaged_in_the_store_is_fetched_again(
    site: Site, fetcher: NetFetcher, tmp_path: Path, damaged: bytes
) -> None:
    site.pages["/f"] = Page(BODY)
    path = tmp_path / "downloads" / SHA / "f"
    path.parent.mkdir(parents=True)
    path.write_bytes(damaged)
    assert fetcher.url(f"{site.url}/f", sha256=SHA) == path
    assert path.read_bytes() == BODY
    assert fetcher.url(f"{site.url}/f", sha256=SHA) == path
    assert len(site.requests) == 1


def test_a_broken_connection_goes_on_where_it_stopped(site: Site, fetcher: NetFetcher) -> None:
    site.pages["/f"] = Page(BODY, break_after=100_000, breaks=2)
    assert fetcher.url(f"{site.url}/f", sha256=SHA).read_bytes() == BODY
    assert [request[1] for request in site.requests] == [None, "bytes=100000-", "bytes=200000-"]


def test_a_server_without_ranges_sends_it_whole_again(site: Site, fetcher: NetFetcher) -> None:
    site.pages["/f"] = Page(BODY, ranges=False, break_after=1000, breaks=1)
    assert fetcher.url(f"{site.url}/f", sha256=SHA).read_bytes() == BODY


def test_a_file_that_changed_in_between_is_not_stitched_together(site: Site, tmp_path: Path) -> None:
    old = site.pages["/f"] = Page(b"x" * len(BODY), etag='"old"', break_after=1000, breaks=1)

    def change(_: float) -> None:
        site.pages["/f"] = Page(BODY, etag='"new"')

    with make_client(IndexSettings()) as client:
        downloader = Downloader(client, SilentProgress(), sleep=change)
        path = downloader.fetch(Wanted(f"{site.url}/f", "f", None), tmp_path / "f")
    assert path.read_bytes() == BODY
    assert old.breaks == 0


def test_a_killed_run_is_continued_by_the_next(site: Site, fetcher: NetFetcher, tmp_path: Path) -> None:
    part = tmp_path / "downloads" / SHA / ".f.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(BODY[:5000])
    site.pages["/f"] = Page(BODY)
    assert fetcher.url(f"{site.url}/f", sha256=SHA).read_bytes() == BODY
    assert site.requests[0][1] == "bytes=5000-"
    assert _left(tmp_path) == ["f"]


@pytest.mark.parametrize("left", [b"not the same file", BODY + b"too long"])
def test_a_wrong_part_of_an_earlier_run_is_thrown_away(
    site: Site, fetcher: NetFetcher, tmp_path: Path, left: bytes
) -> None:
    part = tmp_path / "downloads" / SHA / ".f.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(left)
    site.pages["/f"] = Page(BODY)
    assert fetcher.url(f"{site.url}/f", sha256=SHA).read_bytes() == BODY


def test_a_wrong_hash_is_refused_and_nothing_stays(site: Site, fetcher: NetFetcher, tmp_path: Path) -> None:
    site.pages["/f"] = Page(b"another file")
    with pytest.raises(VerificationError) as caught:
        fetcher.url(f"{site.url}/f", sha256=SHA)
    assert caught.value.key == "net.hash"
    assert caught.value.exit_code is ExitCode.VERIFICATION_FAILED
    assert caught.value.values["found"] == hashlib.sha256(b"another file").hexdigest()
    assert _left(tmp_path) == []


def test_a_wrong_size_is_refused(site: Site, fetcher: NetFetcher, tmp_path: Path) -> None:
    site.pages["/f"] = Page(BODY)
    with pytest.raises(VerificationError) as caught:
        fetcher.url(f"{site.url}/f", sha256=SHA, size=7)
    assert caught.value.key == "net.size"
    assert _left(tmp_path) == []


def test_a_missing_file_is_not_asked_for_again(site: Site, fetcher: NetFetcher) -> None:
    with pytest.raises(NetworkError) as caught:
        fetcher.url(f"{site.url}/missing", sha256=SHA)
    assert caught.value.key == "net.not-found"
    assert len(site.requests) == 1


def test_a_refusal_names_its_status(site: Site, fetcher: NetFetcher) -> None:
    site.pages["/f"] = Page(status=403)
    with pytest.raises(NetworkError) as caught:
        fetcher.url(f"{site.url}/f", sha256=SHA)
    assert caught.value.key == "net.status"
    assert caught.value.values["status"] == 403


def test_a_busy_server_is_asked_again(site: Site, fetcher: NetFetcher) -> None:
    site.pages["/f"] = Page(BODY, statuses=[503, 429])
    assert fetcher.url(f"{site.url}/f", sha256=SHA).read_bytes() == BODY


def test_redirects_are_followed(site: Site, fetcher: NetFetcher) -> None:
    site.pages["/f"] = Page(redirect=f"{site.url}/g")
    site.pages["/g"] = Page(BODY)
    assert fetcher.url(f"{site.url}/f", sha256=SHA).read_bytes() == BODY


def test_an_endless_redirect_is_a_network_error(site: Site, fetcher: NetFetcher) -> None:
    site.pages["/f"] = Page(redirect=f"{site.url}/f")
    with pytest.raises(NetworkError):
        fetcher.url(f"{site.url}/f", sha256=SHA)


def test_a_server_that_hangs_is_given_up(site: Site, tmp_path: Path) -> None:
    site.pages["/f"] = Page(BODY, delay=0.4)
    impatient = NetFetcher(DiskStore(tmp_path), SilentProgress(), settings=IndexSettings(timeout=0.05), pause=0.001)
    with pytest.raises(NetworkError) as caught:
        impatient.url(f"{site.url}/f", sha256=SHA)
    assert caught.value.key == "net.offline"


def test_an_unreachable_host_is_named_without_its_password(tmp_path: Path, fetcher: NetFetcher) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    with pytest.raises(NetworkError) as caught:
        fetcher.url(f"http://me:secret@127.0.0.1:{port}/f.bin", sha256=SHA)
    assert caught.value.key == "net.offline"
    assert caught.value.exit_code is ExitCode.NETWORK
    assert caught.value.values["host"] == f"127.0.0.1:{port}"
    assert "f.bin" in str(caught.value)
    assert "secret" not in str(caught.value)


def test_without_a_hash_it_is_always_fetched_anew(site: Site, fetcher: NetFetcher) -> None:
    site.pages["/InRelease"] = Page(b"one")
    assert fetcher.url(f"{site.url}/InRelease", sha256=None).read_bytes() == b"one"
    site.pages["/InRelease"] = Page(b"two")
    assert fetcher.url(f"{site.url}/InRelease", sha256=None).read_bytes() == b"two"


def test_a_local_file_needs_no_server(tmp_path: Path, fetcher: NetFetcher) -> None:
    source = tmp_path / "with space.bin"
    source.write_bytes(BODY)
    assert fetcher.url(source.as_uri(), sha256=SHA).read_bytes() == BODY
    with pytest.raises(NetworkError) as caught:
        fetcher.url((tmp_path / "none").as_uri(), sha256="0" * 64)
    assert caught.value.key == "net.not-found"
