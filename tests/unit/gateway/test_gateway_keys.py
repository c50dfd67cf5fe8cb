"""Keys: made, kept, checked, limited."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from pathlib import Path

import httpx
import pytest
from tests.fakes.engine import FakeLlamaServer
from tests.fakes.gateway import EMBEDDING_MODEL, RunningEngine, fake_engine

from sampan.errors import BadInputError, SampanError, UsageError
from sampan.flow import api_keys
from sampan.gateway import keys
from sampan.gateway.admission import Admission
from sampan.gateway.app import make_api
from sampan.gateway.callers import Callers
from sampan.gateway.envelope import ApiError
from sampan.gateway.house import House
from sampan.gateway.settings import Limits

WISH = keys.Key("", "bot", "")


def bearer(text: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {text}"}


def headers(text: str) -> dict[bytes, bytes]:
    return {b"authorization": b"Bearer " + text.encode()}


def client_of(engine: RunningEngine, callers: Callers) -> httpx.AsyncClient:
    limits = Limits()
    house = House(engine, EMBEDDING_MODEL, limits, Admission(limits), callers)
    return httpx.AsyncClient(transport=httpx.ASGITransport(make_api(house)), base_url="http://gateway")


def test_a_key_is_shown_once_and_kept_as_a_hash(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "keys.json"
    made, text = api_keys.add(path, WISH, None)
    assert path.stat().st_mode & 0o777 == 0o600
    stored = path.read_text()
    assert text not in stored
    assert text.split("-", 3)[3] not in stored  # the secret itself may hold a dash
    assert keys.load(path) == (made,)
    assert made.sha256 == hashlib.sha256(text.encode()).hexdigest()
    assert len({keys.make(WISH)[1] for _ in range(50)}) == 50


def test_revoking_by_name_or_id_needs_exactly_one(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    first, _ = api_keys.add(path, WISH, None)
    api_keys.add(path, WISH, None)
    with pytest.raises(UsageError) as twice:
        api_keys.revoke(path, "bot")
    assert api_keys.revoke(path, first.id).revoked > 0
    assert api_keys.revoke(path, "bot").id != first.id
    with pytest.raises(UsageError) as gone:
        api_keys.revoke(path, "bot")
    assert [twice.value.key, gone.value.key] == ["keys.ambiguous", "keys.unknown"]


@pytest.mark.parametrize(
    ("text", "mode", "key"),
    [
        ("{", 0o600, "artefact.json"),
        ('{"schema": "other"}', 0o600, "artefact.schema"),
        ('{"schema": "sampan/keys/1", "keys": [{"id": 3}]}', 0o600, "artefact.fields"),
        ('{"schema": "sampan/keys/1", "keys": []}', 0o640, "keys.mode"),
        ('{"schema": "sampan/keys/1", "keys": []}', 0o604, "keys.mode"),
    ],
)
def test_a_file_that_cannot_be_trusted_is_refused(tmp_path: Path, text: str, mode: int, key: str) -> None:
    path = tmp_path / "keys.json"
    path.write_text(text)
    path.chmod(mode)
    with pytest.raises(BadInputError) as caught:
        keys.load(path)
    assert caught.value.key == key


@pytest.mark.parametrize(
    ("wish", "key"),
    [
        (dataclasses.replace(WISH, name="a/b"), "keys.name"),
        (dataclasses.replace(WISH, name=""), "keys.name"),
        (dataclasses.replace(WISH, scopes=("root",)), "keys.scope"),
        (dataclasses.replace(WISH, lane="fast"), "keys.lane"),
    ],
)
def test_wishes_that_make_no_sense_are_refused(tmp_path: Path, wish: keys.Key, key: str) -> None:
    with pytest.raises(SampanError) as caught:
        api_keys.add(tmp_path / "keys.json", wish, None)
    assert caught.value.key == key
    assert list(tmp_path.iterdir()) == []


def test_where_the_file_is() -> None:
    assert api_keys.file_of("a", {}) == Path("/etc/sampan/a/keys.json")
    assert api_keys.file_of("a", {"SAMPAN_KEYS": "/k"}) == Path("/k")
    with pytest.raises(UsageError):
        api_keys.file_of(None, {})


def test_only_the_very_key_opens() -> None:
    made, text = keys.make(WISH)
    callers = Callers([made])
    assert callers.identify(headers(text)).id == made.id
    assert callers.identify({b"x-api-key": text.encode()}).id == made.id
    other = keys.make(WISH)[1]
    for wrong in (other, text[:-1], text + "x", text.replace(text[-5:], "AAAAA"), "sk-sampan", "é"):
        with pytest.raises(ApiError) as caught:
            callers.identify(headers(wrong))
        assert caught.value.code == "invalid_key"
    with pytest.raises(ApiError) as missing:
        callers.identify({})
    assert (missing.value.code, missing.value.status) == ("missing_key", 401)


def test_limits_of_a_key_hold_and_refill() -> None:
    now = [0.0]
    made, text = keys.make(dataclasses.replace(WISH, requests_per_minute=2, tokens_per_minute=100, concurrent=1))
    callers = Callers([made], lambda: now[0])
    caller = callers.identify(headers(text))

    def ask(tokens: int) -> None:
        with callers.counted(caller):
            callers.used(caller, tokens)

    with callers.counted(caller), pytest.raises(ApiError, match="concurrent"):
        ask(1)
    ask(250)
    for seconds, limit in ((0, "requests"), (31, "tokens")):
        now[0] += seconds
        with pytest.raises(ApiError, match=limit) as caught:
            ask(1)
        assert int(str(caught.value.values["retry_after"])) >= 1
    now[0] += 61
    ask(1)


def test_a_reload_keeps_what_was_used_and_ends_what_was_revoked() -> None:
    limited, text = keys.make(dataclasses.replace(WISH, requests_per_minute=1))
    other, other_text = keys.make(WISH)
    callers = Callers([limited, other], lambda: 0.0)
    with callers.counted(callers.identify(headers(text))):
        pass
    callers.replace([limited, dataclasses.replace(other, revoked=1)])
    with pytest.raises(ApiError, match="rate_limit"), callers.counted(callers.identify(headers(text))):
        pass
    with pytest.raises(ApiError, match="invalid_key"):
        callers.identify(headers(other_text))


async def test_scopes_over_the_api(short_folder: Path) -> None:
    made = [
        keys.make(dataclasses.replace(WISH, scopes=scopes)) for scopes in (("embeddings",), ("metrics",), ("admin",))
    ]
    async with fake_engine(short_folder, FakeLlamaServer(embeddings=True)) as engine:
        client = client_of(engine, Callers([key for key, _ in made]))
        embeds, scrapes, rules = (bearer(text) for _, text in made)
        statuses = {
            (path, who): (await client.request(method, path, headers=given, json=body)).status_code
            for method, path, body in (("POST", "/v1/embeddings", {"input": "a"}), ("GET", "/metrics", None))
            for who, given in (("nobody", {}), ("embeds", embeds), ("scrapes", scrapes), ("rules", rules))
        }
        assert statuses == {
            ("/v1/embeddings", "nobody"): 401,
            ("/v1/embeddings", "embeds"): 200,
            ("/v1/embeddings", "scrapes"): 403,
            ("/v1/embeddings", "rules"): 200,
            ("/metrics", "nobody"): 401,
            ("/metrics", "embeds"): 403,
            ("/metrics", "scrapes"): 200,
            ("/metrics", "rules"): 200,
        }
        for path in ("/health", "/ready", "/docs", "/openapi.json"):
            assert (await client.get(path)).status_code == 200
        assert (await client.get("/v1/models")).status_code == 401
        text = (await client.get("/metrics", headers=scrapes)).text
    assert f'sampan_requests_total{{endpoint="/v1/embeddings",key="{made[0][0].id}",status="200"}} 1.0' in text
    assert not any(secret in text for _, secret in made)


def test_the_file_is_plain_json(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    api_keys.add(path, dataclasses.replace(WISH, lane="bulk"), None)
    data = json.loads(path.read_text())
    assert data["schema"] == "sampan/keys/1"
    assert data["keys"][0]["lane"] == "bulk"
