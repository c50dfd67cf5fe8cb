"""The whole service with the fake engine as a process: start, drain, crash, refusals."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.fakes.engine import write_executable
from tests.fakes.gateway import settings

from sampan.errors import ServiceError
from sampan.gateway.serve import serve
from sampan.gateway.settings import ServedModel, ServeSettings

Answer = tuple[int, bytes]


class Operator:
    """Drives a served gateway from a second thread, since signals need the main one."""

    def __init__(self, folder: Path, model: ServedModel) -> None:
        self.folder = folder
        self.run_base = folder / "run"
        self.run_base.mkdir()
        self.weights = folder / "m.gguf"
        self.weights.touch()
        self.said: list[str] = []
        self.port = 0
        self.ready = threading.Event()
        self.settings = ServeSettings(
            executable=write_executable(folder),
            variant="x86-64-v2",
            weights=self.weights,
            model=model,
            engine=settings(embedding=model.task == "embedding"),
            threads=1,
            port=0,
            run_folder=self.run_base,
            start_seconds=10,
            drain_seconds=3,
        )

    def say(self, line: str) -> None:
        self.said.append(line)
        found = re.search(r"http://127\.0\.0\.1:(\d+)", line)
        if found:
            self.port = int(found[1])
            self.ready.set()

    def run(self, acts: Callable[[], object]) -> object:
        """Serve; once ready do ``acts`` in a thread, then stop the service; what ``acts`` gave."""
        results: list[object] = []
        failures: list[BaseException] = []

        def script() -> None:
            try:
                assert self.ready.wait(10), "never ready"
                results.append(acts())
            except BaseException as error:  # handed to the main thread
                failures.append(error)
            finally:
                os.kill(os.getpid(), signal.SIGTERM)

        thread = threading.Thread(target=script)
        thread.start()
        serve(self.settings, say=self.say)
        thread.join()
        if failures:
            raise failures[0]
        return results[0]

    def ask(self, method: str, path: str, body: object = None) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.request(method, path, None if body is None else json.dumps(body))
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    def health(self) -> dict[str, object]:
        data: dict[str, object] = json.loads(self.ask("GET", "/health")[1])
        return data


pytestmark = pytest.mark.integration


@pytest.fixture
def short_folder() -> Iterator[Path]:
    """Short enough for the path of a Unix socket."""
    with tempfile.TemporaryDirectory(prefix="gw") as name:
        yield Path(name)


@pytest.fixture
def operator(short_folder: Path) -> Operator:
    return Operator(short_folder, ServedModel("fake", "embedding", 8))


@pytest.fixture
def notifications() -> Iterator[list[str]]:
    """What systemd would be told."""
    told: list[str] = []
    with tempfile.TemporaryDirectory(prefix="nf") as name:
        path = f"{name}/notify"
        receiver = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        receiver.bind(path)
        receiver.setblocking(False)
        os.environ["NOTIFY_SOCKET"] = path
        yield told
        del os.environ["NOTIFY_SOCKET"]
        while True:
            try:
                told.append(receiver.recv(100).decode())
            except BlockingIOError:
                break
        receiver.close()
        assert told == ["READY=1", "STOPPING=1"]


def test_a_service_starts_answers_survives_a_crash_and_stops(operator: Operator, notifications: list[str]) -> None:
    def acts() -> list[Answer]:
        answers = [operator.ask("POST", "/v1/embeddings", {"input": "a"})]
        sockets = list(operator.run_base.glob("*/engine.sock"))
        assert [path.parent.stat().st_mode & 0o777 for path in sockets] == [0o700]
        answers.append(operator.ask("POST", "/v1/embeddings", {"input": "please crash"}))
        deadline = time.monotonic() + 8
        again = {"state": "ready", "variant": "x86-64-v2", "restarts": 1, "device": "cpu"}
        while operator.health()["engine"] != again:
            assert time.monotonic() < deadline, "the engine did not come back"
            time.sleep(0.02)
        assert operator.ask("GET", "/health")[0] == 200
        answers.append(operator.ask("POST", "/v1/embeddings", {"input": "a"}))
        return answers

    answers = operator.run(acts)
    assert isinstance(answers, list)
    assert [status for status, _ in answers] == [200, 503, 200]
    assert json.loads(answers[1][1])["error"]["code"] == "engine_unavailable"
    assert list(operator.run_base.iterdir()) == []
    assert not notifications, "read at the end"
    assert "finished" in operator.said[-1]
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", operator.port))


def test_what_is_in_flight_is_finished_before_the_end(short_folder: Path) -> None:
    operator = Operator(short_folder, ServedModel("fake", "chat"))
    answers: list[Answer] = []
    body = {"messages": [{"role": "user", "content": "slow three words"}], "stream": True}

    def acts() -> threading.Thread:
        request = threading.Thread(target=lambda: answers.append(operator.ask("POST", "/v1/chat/completions", body)))
        request.start()
        time.sleep(0.2)
        return request

    request = operator.run(acts)
    assert isinstance(request, threading.Thread)
    request.join()
    assert answers[0][0] == 200
    assert answers[0][1].endswith(b"data: [DONE]\n\n")


def test_what_does_not_finish_in_time_is_broken_off_and_said(operator: Operator) -> None:
    object.__setattr__(operator.settings, "drain_seconds", 1)

    def acts() -> None:
        threading.Thread(target=_ignore_loss, args=(operator, {"input": "please hang"})).start()
        time.sleep(0.2)

    began = time.monotonic()
    operator.run(acts)
    assert time.monotonic() - began < 6
    assert "1 requests had to be broken off" in operator.said[-1]
    assert list(operator.run_base.iterdir()) == []


def _ignore_loss(operator: Operator, body: object) -> None:
    try:
        operator.ask("POST", "/v1/embeddings", body)
    except (OSError, http.client.HTTPException):
        return


def test_an_engine_that_cannot_start_ends_the_service_with_its_words(operator: Operator) -> None:
    operator.weights.unlink()
    with pytest.raises(ServiceError) as caught:
        serve(operator.settings, say=operator.say)
    assert caught.value.key == "gateway.engine-failed"
    assert "failed to load model" in caught.value.message
    assert "x86-64-v2" in caught.value.message
    assert list(operator.run_base.iterdir()) == []


def test_a_stop_while_loading_is_a_clean_end(operator: Operator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_LOADING_SECONDS", "60")
    threading.Timer(0.7, os.kill, (os.getpid(), signal.SIGINT)).start()
    serve(operator.settings, say=operator.say)
    assert not operator.ready.is_set()
    assert list(operator.run_base.iterdir()) == []
