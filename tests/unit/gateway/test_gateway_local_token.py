"""The self-test on this machine needs no user's key, and nobody else comes in by its token."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.fakes.engine import FakeLlamaServer
from tests.fakes.gateway import fake_engine
from tests.unit.gateway.test_gateway_keys import WISH, bearer, client_of, headers

from sampan.errors import ServiceError
from sampan.gateway import keys, local_token
from sampan.gateway.callers import SELFTEST, Callers
from sampan.gateway.envelope import ApiError

PORT = 8080


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A private one."""
    path = tmp_path / "run"
    path.mkdir(mode=0o700)
    return path


def test_each_start_has_its_own_token_in_a_file_for_nobody_else(folder: Path) -> None:
    token, other = local_token.fresh(), local_token.fresh()
    assert token != other
    with local_token.published(folder, PORT, token):
        (path,) = folder.iterdir()
        assert path.stat().st_mode & 0o777 == 0o600
        assert local_token.find([folder / "none", folder], PORT) == token
        assert local_token.find([folder], PORT + 1) is None
        with local_token.published(folder, PORT, other):  # a successor
            pass
    assert list(folder.iterdir()) == []
    assert local_token.find([folder], PORT) is None


def test_a_predecessor_leaves_its_successors_token(folder: Path) -> None:
    mine, next_one = local_token.fresh(), local_token.fresh()
    with local_token.published(folder, PORT, mine):
        (path,) = folder.iterdir()
        path.write_text(next_one)
    assert local_token.find([folder], PORT) == next_one


def test_of_two_folders_the_later_token_counts(tmp_path: Path) -> None:
    for age, name in enumerate(("new", "old")):
        (tmp_path / name).mkdir(mode=0o700)
        path = local_token._file(tmp_path / name, PORT)
        path.touch(mode=0o600)
        path.write_text(f"st-sampan-{name * 15}"[: 10 + 43])
        os.utime(path, (1000 - age, 1000 - age))
    found = local_token.find([tmp_path / "old", tmp_path / "new"], PORT)
    assert found == f"st-sampan-{'new' * 15}"[: 10 + 43]


@pytest.mark.parametrize("kind", ["link", "pipe", "text", "open file", "open folder", "folder of another", "folder"])
def test_what_another_could_have_put_there_is_not_sent(
    folder: Path, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, token = local_token._file(folder, PORT), local_token.fresh()
    path.touch(mode=0o600)
    path.write_text(token)
    assert local_token.find([folder], PORT) == token
    if kind == "link":
        path.rename(tmp_path / "elsewhere")
        path.symlink_to(tmp_path / "elsewhere")
    elif kind == "pipe":
        path.unlink()
        os.mkfifo(path, 0o600)
    elif kind == "text":
        path.write_text("root:$6$salt$hash:19000:0:99999:7:::\n")
    elif kind == "open file":
        path.chmod(0o644)
    elif kind == "open folder":
        folder.chmod(0o755)
    elif kind == "folder":
        path.unlink()
        path.mkdir(0o700)
    else:
        uid = os.geteuid()
        folder.parent.chmod(0o777)
        monkeypatch.setattr("os.geteuid", lambda: uid + 1)
    assert local_token.find([folder], PORT) is None


def test_a_folder_that_cannot_be_written_ends_the_start(tmp_path: Path) -> None:
    with (
        pytest.raises(ServiceError) as caught,
        local_token.published(tmp_path / "none", PORT, local_token.fresh()),
    ):
        pass
    assert caught.value.key == "gateway.run-folder"


def test_the_token_is_a_caller_of_its_own() -> None:
    made, text = keys.make(WISH)
    token = local_token.fresh()
    callers = Callers([made], local_token=token)
    assert callers.identify(headers(token)) is SELFTEST
    assert callers.identify(headers(text)).id == made.id
    callers.replace([])  # on SIGHUP, with all keys revoked
    assert callers.identify(headers(token)) is SELFTEST
    for wrong in (local_token.fresh(), token[:-1], token + "x", token.upper(), "st-sampan-"):
        with pytest.raises(ApiError, match="invalid_key"):
            callers.identify(headers(wrong))
    for nothing in (headers(token), headers("")):
        with pytest.raises(ApiError):
            Callers([made]).identify(nothing)


async def test_the_token_may_do_what_the_self_test_does_and_no_more(short_folder: Path) -> None:
    token = local_token.fresh()
    async with fake_engine(short_folder, FakeLlamaServer(embeddings=True)) as engine:
        client = client_of(engine, Callers([keys.make(WISH)[0]], local_token=token))
        given = bearer(token)
        assert (await client.get("/v1/models", headers=given)).status_code == 200
        assert (await client.post("/v1/embeddings", headers=given, json={"input": "a"})).status_code == 200
        refused = await client.get("/metrics", headers=given)
    assert refused.status_code == 403
    assert token not in refused.text
