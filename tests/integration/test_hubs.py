"""HubClient against a server that behaves like a hub, also badly: whole and right, or not there at all."""

from __future__ import annotations

import hashlib
import json
import random
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from tests.fakes.hub_server import COMMIT, Hub, hub_served

from sampan.edge.http import make_client
from sampan.edge.hubs import HubClient
from sampan.edge.pip_settings import IndexSettings
from sampan.edge.progress import SilentProgress
from sampan.edge.store import DiskStore
from sampan.errors import ExitCode, NetworkError, SampanError, UsageError, VerificationError
from sampan.spec import codec
from sampan.spec.hub import Fetched
from sampan.weights.fetch.fetch import fetch

pytestmark = pytest.mark.integration
TOKEN = "hf_T0ken-of-the-tests"
numbers = random.Random(5)
FILES = {
    "config.json": b'{"architectures": ["BertModel"]}',
    "tokenizer.json": numbers.randbytes(6000),
    "1_Pooling/config.json": b"{}",
    "model-00001-of-00002.safetensors": numbers.randbytes(300_000),
    "model-00002-of-00002.safetensors": numbers.randbytes(250_000),
    "pytorch_model.bin": numbers.randbytes(20_000),
}
WANTED = sorted(FILES.keys() - {"pytorch_model.bin"})


@pytest.fixture(scope="module")
def served() -> Iterator[Hub]:
    with hub_served(files=dict(FILES)) as hub:
        yield hub


@pytest.fixture
def hub(served: Hub, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Hub:
    for name, value in {
        "HF_ENDPOINT": served.url,
        "HF_TOKEN": TOKEN,
        "MODELSCOPE_ENDPOINT": served.url,
        "MODELSCOPE_API_TOKEN": TOKEN,
        "MODELSCOPE_HOME": str(tmp_path / "ms"),
    }.items():
        monkeypatch.setenv(name, value)
    for name in ("HF_HUB_OFFLINE", "MODELSCOPE_DOMAIN", "http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    served.files = dict(FILES)
    served.requests.clear()
    served.faults.clear()
    served.spent.clear()
    served.lies.clear()
    served.token, served.error_code, served.listing, served.watch = None, None, None, lambda: None
    return served


@pytest.fixture(scope="module", autouse=True)
def _one_client() -> Iterator[None]:
    """Reading the certificates takes longer than most of these tests."""
    clients: dict[float, httpx.Client] = {}

    def kept(settings: IndexSettings) -> httpx.Client:
        return clients.setdefault(settings.timeout, clients.get(settings.timeout) or make_client(settings))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sampan.edge.hubs.make_client", kept)
        yield


@pytest.fixture
def store(tmp_path: Path) -> DiskStore:
    return DiskStore(tmp_path / "store")


def bring(store: DiskStore, source: str, out: Path | None = None, timeout: float = 2.0) -> Fetched:
    client = HubClient(store, SilentProgress(), settings=IndexSettings(timeout=timeout), pause=0.001)
    return fetch(source, out=out, hubs=client, store=store, progress=SilentProgress())


def content(folder: Path) -> dict[str, bytes]:
    """Everything that is there, hidden parts too."""
    return {str(each.relative_to(folder)): each.read_bytes() for each in sorted(folder.rglob("*")) if each.is_file()}


@pytest.mark.parametrize("source", ["hf:org/name", "ms:org/name", f"hf:org/name@{COMMIT}", "hf:org/name@a/branch"])
def test_a_model_comes_whole_without_what_it_does_not_need(hub: Hub, store: DiskStore, source: str) -> None:
    fetched = bring(store, source)
    assert content(Path(fetched.path)) == {name: FILES[name] for name in WANTED}
    assert {file.path: file.sha256 for file in fetched.files} == {
        name: hashlib.sha256(FILES[name]).hexdigest() for name in WANTED
    }
    assert fetched.commit == (COMMIT if source.startswith("hf") else None)


def test_what_is_there_is_not_fetched_again(hub: Hub, store: DiskStore) -> None:
    bring(store, "hf:org/name")
    hub.requests.clear()
    bring(store, "hf:org/name")
    assert ["/api/models/" in request[1] for request in hub.requests] == [True]


def test_a_commit_that_was_fetched_needs_no_network(hub: Hub, store: DiskStore) -> None:
    first = bring(store, f"hf:org/name@{COMMIT}")
    hub.requests.clear()
    assert bring(store, f"hf:org/name@{COMMIT}") == first
    assert hub.requests == []


def test_without_the_hub_the_last_known_revision_serves_and_it_is_said(
    hub: Hub, store: DiskStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = bring(store, "hf:org/name")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    again = bring(store, "hf:org/name")
    assert (again.path, again.remembered, first.remembered) == (first.path, True, False)
    with pytest.raises(NetworkError) as caught:
        bring(store, "hf:org/other")
    assert caught.value.key == "hub.offline"


def test_a_damaged_file_is_fetched_again_alone(hub: Hub, store: DiskStore) -> None:
    folder = Path(bring(store, "hf:org/name").path)
    (folder / "tokenizer.json").write_bytes(b"x" * 6000)
    (folder / "model-00001-of-00002.safetensors").write_bytes(b"")
    hub.requests.clear()
    bring(store, "hf:org/name")
    assert content(folder) == {name: FILES[name] for name in WANTED}
    assert not [request for request in hub.requests if "00002-of" in request[1]]


FAULTS = {
    "/revision/": ["reset", "503", "429", "429-date"],
    "00001-of-00002": ["502", "cut", "stall", "no-range", "wrong-range", "408"],
    "/large/model-00002": ["403", "short", "cut", "500", "416"],
    "tokenizer.json": ["loop", "chunked", "gzip", "504"],
    "resolve/" + COMMIT + "/config.json": ["reset", "page"],
    "1_Pooling": ["flip", "429"],
}


def test_fetching_survives_twenty_injected_faults(hub: Hub, store: DiskStore, tmp_path: Path) -> None:
    for word, faults in FAULTS.items():
        hub.order(word, *faults)
    out, wrong = tmp_path / "out", []

    def watch() -> None:
        """At every request: whatever has its final name is right."""
        for name, body in content(out).items() if out.exists() else ():
            if not name.rpartition("/")[2].startswith(".") and body != FILES[name]:
                wrong.append(name)

    hub.watch, hub.stall = watch, 0.6
    bring(store, "hf:org/name", out, timeout=0.4)
    assert content(out) == {name: FILES[name] for name in WANTED}
    assert wrong == []
    assert len(hub.spent) == sum(map(len, FAULTS.values())) >= 20
    assert sorted(hub.spent) == sorted(fault for faults in FAULTS.values() for fault in faults)


@pytest.mark.parametrize("source", ["hf:org/name", "ms:org/name"])
@pytest.mark.parametrize("name", ["tokenizer.json", "model-00001-of-00002.safetensors"])
def test_a_file_that_is_never_the_promised_one_stays_nowhere(
    hub: Hub, store: DiskStore, tmp_path: Path, source: str, name: str
) -> None:
    hub.files[name] = b"?" + FILES[name][1:]
    hub.lies[name] = hashlib.sha256(FILES[name]).hexdigest()
    if source.startswith("hf") and name == "tokenizer.json":
        hub.lies[name] = hashlib.sha1(b"another").hexdigest()  # noqa: S324
    with pytest.raises(VerificationError) as caught:
        bring(store, source, tmp_path / "out")
    assert (caught.value.key, caught.value.exit_code) == ("hub.hash", ExitCode.VERIFICATION_FAILED)
    assert name in caught.value.message
    left = content(tmp_path / "out")
    assert not {name, f".{name}.part"} & left.keys()
    assert all(body == FILES[each] for each, body in left.items() if not each.rpartition("/")[2].startswith("."))


def test_a_part_of_an_earlier_run_is_continued(hub: Hub, store: DiskStore, tmp_path: Path) -> None:
    name = "model-00001-of-00002.safetensors"
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / f".{name}.part").write_bytes(FILES[name][:100_000])
    bring(store, "hf:org/name", tmp_path / "out")
    ranges = {request[2] for request in hub.requests if f"large/{name}" in request[1]}
    assert ranges == {"bytes=100000-"}
    assert content(tmp_path / "out") == {each: FILES[each] for each in WANTED}


def test_the_token_goes_to_the_hub_alone(hub: Hub, store: DiskStore, capfd: pytest.CaptureFixture[str]) -> None:
    hub.token = TOKEN
    bring(store, "hf:org/name")
    bring(store, "ms:org/name")
    for port, _, _, authorization, cookie in hub.requests:
        assert (TOKEN in f"{authorization} {cookie}") == (port == hub.port)
    kept = b"".join(content(store.root / "hubs").values())
    assert TOKEN.encode() not in kept
    assert b"s3cret" not in kept
    assert TOKEN not in "".join(capfd.readouterr())


def test_no_token_goes_over_plain_http_to_another_host(monkeypatch: pytest.MonkeyPatch) -> None:
    from sampan.edge.hub_settings import access

    monkeypatch.setenv("HF_TOKEN", TOKEN)
    monkeypatch.setenv("HF_ENDPOINT", "http://mirror.example")
    assert access("hf").headers == {}
    monkeypatch.setenv("HF_ENDPOINT", "https://mirror.example/")
    assert access("hf").headers == {"Authorization": f"Bearer {TOKEN}"}
    assert (access("hf").endpoint, TOKEN in repr(access("hf"))) == ("https://mirror.example", False)
    monkeypatch.setenv("HF_ENDPOINT", "mirror")
    with pytest.raises(UsageError):
        access("hf")


@pytest.mark.parametrize(
    ("answer", "key"),
    [
        ((401, "RepoNotFound"), "hub.no_repository"),
        ((404, "RepoNotFound"), "hub.no_repository"),
        ((403, "GatedRepo"), "hub.gated"),
        ((401, "GatedRepo"), "hub.gated"),
        ((401, ""), "hub.login"),
        ((404, "RevisionNotFound"), "hub.no_revision"),
        ((418, ""), "hub.status"),
    ],
)
def test_refusals_say_what_to_do(hub: Hub, store: DiskStore, answer: tuple[int, str], key: str) -> None:
    hub.error_code = answer
    with pytest.raises(NetworkError) as caught:
        bring(store, "hf:org/name")
    assert (caught.value.key, caught.value.exit_code) == (key, ExitCode.NETWORK)
    assert f"127.0.0.1:{hub.port}" in caught.value.message
    assert TOKEN not in f"{caught.value}"
    assert caught.value.hint != f"hint.{key}"


@pytest.mark.parametrize("fault", ["401", "403", "404"])
def test_a_file_that_is_refused(hub: Hub, store: DiskStore, fault: str) -> None:
    hub.order("tokenizer.json", *[fault] * 3)
    with pytest.raises(NetworkError) as caught:
        bring(store, "hf:org/name")
    assert caught.value.key == {"401": "hub.login", "403": "hub.gated", "404": "hub.file_gone"}[fault]
    assert "tokenizer.json" in caught.value.message


@pytest.mark.parametrize("fault", ["503", "429", "reset", "loop"])
def test_a_hub_that_stays_broken_is_given_up(hub: Hub, store: DiskStore, fault: str) -> None:
    hub.order("tokenizer.json", *[fault] * 200)
    with pytest.raises(NetworkError) as caught:
        bring(store, "hf:org/name")
    assert caught.value.key == "hub.offline"
    hub.faults.clear()
    hub.order("/revision/", *[fault] * 200)
    with pytest.raises(NetworkError) as caught:
        bring(store, "hf:org/name@new")
    assert caught.value.key == ("hub.busy" if fault in ("503", "429") else "hub.offline")


@pytest.mark.parametrize(
    "listing",
    [
        b"<html>log in</html>",
        b"{",
        b"[]",
        b"[" * 100_000,
        b"{}",
        json.dumps({"sha": "x", "siblings": []}).encode(),
        json.dumps({"sha": COMMIT, "siblings": [{"rfilename": "a.gguf", "blobId": "0" * 40, "size": -1}]}).encode(),
        json.dumps({"sha": COMMIT, "siblings": ["a.gguf"]}).encode(),
    ],
    ids=range(8),
)
def test_an_answer_that_is_no_listing(hub: Hub, store: DiskStore, listing: bytes) -> None:
    hub.listing = listing
    with pytest.raises(NetworkError) as caught:
        bring(store, "hf:org/name")
    assert caught.value.key == "hub.answer"


def test_a_file_without_a_digest_is_refused_where_it_is_wanted(hub: Hub, store: DiskStore) -> None:
    other = {"rfilename": "b.bin", "size": 5}
    for lacking, refused in ((other, False), ({"rfilename": "a.gguf", "size": 5}, True)):
        sound = {"rfilename": "a.gguf", "size": 5, "blobId": git_id(b"GGUF!")}
        hub.files = {"a.gguf": b"GGUF!"}
        hub.listing = json.dumps({"sha": COMMIT, "siblings": [lacking] if refused else [sound, lacking]}).encode()
        if refused:
            with pytest.raises(VerificationError) as caught:
                bring(store, "hf:org/name@other")
            assert caught.value.key == "hub.no_digest"
        else:
            assert Path(bring(store, "hf:org/name").path).read_bytes() == b"GGUF!"


def git_id(body: bytes) -> str:
    return hashlib.sha1(f"blob {len(body)}\0".encode() + body).hexdigest()  # noqa: S324


@pytest.mark.parametrize("path", ["../evil.json", "/etc/evil.json", "a/../../evil.json", "a\\b.json", "x" * 600])
def test_a_listing_with_paths_that_lead_out(hub: Hub, store: DiskStore, tmp_path: Path, path: str) -> None:
    hub.files = {path: b"{}", "m.gguf": b"GGUF"}
    with pytest.raises(SampanError) as caught:
        bring(store, "hf:org/name", tmp_path / "out")
    assert (caught.value.key, caught.value.exit_code) == ("hub.path", ExitCode.BAD_INPUT)
    assert not (tmp_path / "evil.json").exists()


def test_one_address(hub: Hub, store: DiskStore) -> None:
    hub.files["m.gguf"] = body = b"GGUF" + numbers.randbytes(50_000)
    digest = hashlib.sha256(body).hexdigest()
    address = f"{hub.url}/org/name/resolve/main/m.gguf"
    for source in (address, f"{address}?token=s3cret", f"{address}#sha256={digest}"):
        fetched = bring(store, source)
        assert (Path(fetched.path).name, Path(fetched.path).read_bytes()) == ("m.gguf", body)
        assert (fetched.source, fetched.files[0].sha256) == (address, digest)
        assert "s3cret" not in codec.to_json(fetched)
    assert b"s3cret" not in b"".join(content(store.root / "hubs").values())
    assert any("token=s3cret" in request[1] for request in hub.requests)
    hub.requests.clear()
    bring(store, f"{address}#sha256={digest}")
    assert hub.requests == []  # pinned, and there
    with pytest.raises(VerificationError) as caught:
        bring(store, f"{address}#sha256={'0' * 64}")
    assert caught.value.key == "hub.other"


def test_retry_after_is_waited_for(hub: Hub, store: DiskStore, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr("sampan.edge.joined_progress.Joined.wait", lambda _, seconds: waits.append(seconds))
    monkeypatch.setattr("tests.fakes.hub_server.formatdate", lambda *_, **__: "Tue, 01 Jan 2999 00:00:00 GMT")
    hub.order("tokenizer.json", "429-date", "429")
    bring(store, "hf:org/name")
    assert [round(wait) for wait in waits] == [120, 0]


def test_a_failure_ends_the_other_downloads_soon(hub: Hub, store: DiskStore, tmp_path: Path) -> None:
    hub.files["model-00001-of-00002.safetensors"] = numbers.randbytes(8 << 20)
    hub.order("tokenizer.json", "404")
    hub.pace = 0.05
    begin = time.monotonic()
    try:
        with pytest.raises(NetworkError):
            bring(store, "hf:org/name", tmp_path / "out")
    finally:
        hub.pace = 0.0
    assert time.monotonic() - begin < 3  # the large file alone would take six seconds


def test_a_disk_that_is_too_small_is_seen_before(
    hub: Hub, store: DiskStore, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("sampan.weights.fetch.fetch._SPARE", 1 << 60)
    with pytest.raises(SampanError) as caught:
        bring(store, "hf:org/name", tmp_path / "out")
    assert (caught.value.key, caught.value.exit_code) == ("hub.space", ExitCode.FILESYSTEM)
    assert not [request for request in hub.requests if "resolve" in request[1]]
