"""NetFetcher.pypi and NetFetcher.wheel on a local index."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path

import pytest
from tests.fakes.http_server import Page, Site

from sampan.edge.net import NetFetcher
from sampan.edge.pip_settings import IndexSettings
from sampan.edge.progress import SilentProgress
from sampan.edge.pypi import sources
from sampan.edge.store import DiskStore
from sampan.errors import ExitCode, IncompatibleError, NetworkError, VerificationError

FILE = "demo_pkg-1.0.tar.gz"
BODY = b"an sdist"
SHA = hashlib.sha256(BODY).hexdigest()
WHEELS = {
    "demo_pkg-1.0-py3-none-any.whl": b"pure",
    "demo_pkg-1.0-cp311-cp311-manylinux_2_17_aarch64.manylinux2014_aarch64.whl": b"old glibc",
    "demo_pkg-1.0-cp311-cp311-manylinux_2_28_aarch64.whl": b"new glibc",
    "demo_pkg-1.0-cp311-cp311-manylinux_2_28_x86_64.whl": b"x86",
    "demo_pkg-2.0-py3-none-any.whl": b"newer",
}
TAGS = ("cp311-cp311-manylinux_2_28_aarch64", "cp311-cp311-manylinux2014_aarch64", "py3-none-any")


def _fetcher(root: Path, **settings: object) -> NetFetcher:
    chosen = IndexSettings(timeout=2.0, **settings)  # type: ignore[arg-type]
    return NetFetcher(DiskStore(root), SilentProgress(), settings=chosen, pause=0.001)


def _html(*files: tuple[str, str | None]) -> Page:
    links = (f'<a href="../../files/{name}{"#sha256=" + sha if sha else ""}">{name}</a>' for name, sha in files)
    return Page(b"<!DOCTYPE html>\n" + "\n".join(links).encode(), content_type="text/html")


def _index_of(site: Site, *files: tuple[str, bytes, str | None]) -> str:
    site.pages["/simple/demo-pkg/"] = _html(*((name, sha) for name, _, sha in files))
    for name, body, _ in files:
        site.pages[f"/files/{name}"] = Page(body)
    return f"{site.url}/simple"


def test_a_file_is_found_on_the_users_index_and_kept(site: Site, tmp_path: Path) -> None:
    index = _index_of(site, (FILE, BODY, SHA), ("demo_pkg-2.0.tar.gz", b"x", None))
    path = _fetcher(tmp_path, index_url=index).pypi("Demo.Pkg==1.0", file_name=FILE, sha256=SHA)
    assert path == tmp_path / "downloads" / SHA / FILE
    assert path.read_bytes() == BODY
    site.pages.clear()
    assert _fetcher(tmp_path, index_url=index).pypi("demo-pkg", file_name=FILE, sha256=SHA) == path


def test_the_json_form_of_an_index_is_understood(site: Site, tmp_path: Path) -> None:
    files = [{"filename": FILE, "url": f"{site.url}/files/{FILE}", "hashes": {"sha256": SHA}, "yanked": "old"}]
    body = json.dumps({"meta": {"api-version": "1.0"}, "name": "demo-pkg", "files": files}).encode()
    site.pages["/simple/demo-pkg/"] = Page(body, content_type="application/vnd.pypi.simple.v1+json")
    site.pages[f"/files/{FILE}"] = Page(BODY)
    found = _fetcher(tmp_path, index_url=f"{site.url}/simple").pypi("demo-pkg", file_name=FILE, sha256=SHA)
    assert found.read_bytes() == BODY


def test_an_index_without_hashes_is_checked_after_the_download(site: Site, tmp_path: Path) -> None:
    index = _index_of(site, (FILE, b"something else", None))
    with pytest.raises(VerificationError) as caught:
        _fetcher(tmp_path, index_url=index).pypi("demo-pkg", file_name=FILE, sha256=SHA)
    assert caught.value.key == "net.hash"


def test_a_name_with_another_hash_is_refused_before_the_download(site: Site, tmp_path: Path) -> None:
    index = _index_of(site, (FILE, b"something else", "1" * 64))
    with pytest.raises(VerificationError) as caught:
        _fetcher(tmp_path, index_url=index).pypi("demo-pkg", file_name=FILE, sha256=SHA)
    assert caught.value.key == "net.index-hash"
    assert [request[0] for request in site.requests] == ["/simple/demo-pkg/"]


def test_a_missing_folder_in_the_settings_is_passed_over(site: Site, tmp_path: Path) -> None:
    index = _index_of(site, (FILE, BODY, SHA))
    fetcher = _fetcher(
        tmp_path / "store",
        index_url=index,
        find_links=(str(tmp_path / "no-such-folder"), "relative/no-such"),
        extra_index_urls=((tmp_path / "none").as_uri(),),
    )
    assert fetcher.pypi("demo-pkg", file_name=FILE, sha256=SHA).read_bytes() == BODY


def test_local_places_are_asked_first_and_spare_the_network(site: Site, tmp_path: Path) -> None:
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    (wheels / FILE).write_bytes(BODY)
    for settings in ({"find_links": (str(wheels),)}, {"find_links": (wheels.as_uri(),)}):
        fetcher = _fetcher(tmp_path / "a", index_url=f"{site.url}/simple", **settings)
        assert fetcher.pypi("demo-pkg", file_name=FILE, sha256=SHA).read_bytes() == BODY
    assert site.requests == []


def test_a_local_simple_index_works(site: Site, tmp_path: Path) -> None:
    folder = tmp_path / "simple" / "demo-pkg"
    folder.mkdir(parents=True)
    (tmp_path / FILE).write_bytes(BODY)
    (folder / "index.html").write_text(f'<a href="../../{FILE}#sha256={SHA}">{FILE}</a>')
    fetcher = _fetcher(
        tmp_path / "s", index_url=f"{site.url}/simple", extra_index_urls=((tmp_path / "simple").as_uri(),)
    )
    assert fetcher.pypi("demo-pkg", file_name=FILE, sha256=SHA).read_bytes() == BODY


def test_credentials_go_to_their_host_only_and_never_into_messages(site: Site, tmp_path: Path) -> None:
    wanted = "Basic " + base64.b64encode(b"me:s@cret").decode()
    index = _index_of(site, (FILE, BODY, SHA)).replace("http://", "http://me:s%40cret@")
    for page in site.pages.values():
        page.credentials = wanted
    assert _fetcher(tmp_path, index_url=index).pypi("demo-pkg", file_name=FILE, sha256=SHA).read_bytes() == BODY
    wrong = index.replace("s%40cret", "wrong-one")
    with pytest.raises(NetworkError) as caught:
        _fetcher(tmp_path / "b", index_url=wrong).pypi("demo-pkg", file_name=FILE, sha256=SHA)
    assert caught.value.key == "net.status"
    assert caught.value.values["status"] == 401
    assert "wrong-one" not in str(caught.value)


def test_one_index_that_fails_does_not_hide_another(site: Site, tmp_path: Path) -> None:
    index = _index_of(site, (FILE, BODY, SHA))
    fetcher = _fetcher(tmp_path, index_url="http://127.0.0.1:1/simple", extra_index_urls=(index,))
    assert fetcher.pypi("demo-pkg", file_name=FILE, sha256=SHA).read_bytes() == BODY


def test_offline_says_which_index(tmp_path: Path) -> None:
    with pytest.raises(NetworkError) as caught:
        _fetcher(tmp_path, index_url="http://127.0.0.1:1/simple").pypi("demo-pkg", file_name=FILE, sha256=SHA)
    assert caught.value.key == "net.index-offline"
    assert caught.value.exit_code is ExitCode.NETWORK
    assert "127.0.0.1:1" in str(caught.value)


def test_a_project_that_nobody_has_is_said_so(site: Site, tmp_path: Path) -> None:
    with pytest.raises(NetworkError) as caught:
        _fetcher(tmp_path, index_url=f"{site.url}/simple").pypi("demo-pkg", file_name=FILE, sha256=SHA)
    assert caught.value.key == "net.no-such-file"


def test_with_nothing_configured_the_client_librarys_own_index_is_used() -> None:
    assert sources(IndexSettings()) == (("index", ""),)
    assert sources(IndexSettings(find_links=("/",))) == (("find_links", "/"), ("index", ""))
    assert sources(IndexSettings(no_index=True)) == ()


def _wheel_index(site: Site) -> tuple[str, frozenset[str]]:
    files = [(name, body, hashlib.sha256(body).hexdigest()) for name, body in WHEELS.items()]
    return _index_of(site, *files, (FILE, BODY, SHA)), frozenset([*(sha for _, _, sha in files), SHA])


def test_the_wheel_with_the_best_tag_is_taken_whatever_this_machine_is(site: Site, tmp_path: Path) -> None:
    index, hashes = _wheel_index(site)
    path = _fetcher(tmp_path, index_url=index).wheel("demo-pkg==1.0", tags=TAGS, hashes=hashes)
    assert path.read_bytes() == b"new glibc"
    old = _fetcher(tmp_path, index_url=index).wheel("demo-pkg==1.0", tags=TAGS[1:], hashes=hashes)
    assert old.read_bytes() == b"old glibc"


def test_the_choice_is_kept_for_a_run_without_network(site: Site, tmp_path: Path) -> None:
    index, hashes = _wheel_index(site)
    path = _fetcher(tmp_path, index_url=index).wheel("demo-pkg==1.0", tags=TAGS, hashes=hashes)
    offline = _fetcher(tmp_path, index_url="http://127.0.0.1:1/simple")
    assert offline.wheel("demo-pkg==1.0", tags=TAGS, hashes=hashes) == path


def test_a_wheel_that_is_not_pinned_is_never_taken(site: Site, tmp_path: Path) -> None:
    index, _ = _wheel_index(site)
    pure = hashlib.sha256(b"pure").hexdigest()
    path = _fetcher(tmp_path, index_url=index).wheel("demo-pkg==1.0", tags=TAGS, hashes=frozenset([pure]))
    assert path.read_bytes() == b"pure"


def test_a_wheel_in_a_local_folder_is_hashed_before_it_is_chosen(tmp_path: Path) -> None:
    name = "demo_pkg-1.0-py3-none-any.whl"
    (tmp_path / name).write_bytes(b"pure")
    fetcher = _fetcher(tmp_path / "s", no_index=True, find_links=(str(tmp_path),))
    hashes = frozenset([hashlib.sha256(b"pure").hexdigest()])
    assert fetcher.wheel("demo-pkg==1.0", tags=TAGS, hashes=hashes).read_bytes() == b"pure"


def test_only_an_sdist_is_an_error_that_names_the_package(site: Site, tmp_path: Path) -> None:
    index = _index_of(site, (FILE, BODY, SHA))
    with pytest.raises(IncompatibleError) as caught:
        _fetcher(tmp_path, index_url=index).wheel("demo-pkg==1.0", tags=TAGS, hashes=frozenset([SHA]))
    assert caught.value.key == "net.no-wheel"
    assert caught.value.exit_code is ExitCode.INCOMPATIBLE
    assert "demo-pkg 1.0" in str(caught.value)
