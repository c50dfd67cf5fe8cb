"""A successor takes over from a running gateway: another engine, other weights, other settings, the same port."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import os
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import pytest
from tests.fakes.load import Load, ask, until
from tests.fakes.served import Served, served

pytestmark = [pytest.mark.integration, pytest.mark.asyncio]


class Systemd:
    """What systemd would hear, and whom it would then take for the main process."""

    def __init__(self, folder: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(str(folder / "notify"))
        self._socket.setblocking(False)
        self.environ = {"NOTIFY_SOCKET": str(folder / "notify")}
        self.heard: list[str] = []

    def main_pid(self) -> int | None:
        with contextlib.suppress(BlockingIOError):
            while True:
                self.heard.append(self._socket.recv(200).decode())
        found = [word for word in self.heard if word.startswith("MAINPID=")]
        return int(found[-1].removeprefix("MAINPID=")) if found else None

    def statuses(self) -> list[str]:
        self.main_pid()
        return [word.removeprefix("STATUS=") for word in self.heard if word.startswith("STATUS=")]

    def stop_service(self) -> None:
        """SIGTERM, and wait."""
        pid = self.main_pid()
        if pid is not None and alive(pid):
            os.kill(pid, signal.SIGTERM)
            began = time.monotonic()
            while alive(pid) and time.monotonic() - began < 20:
                time.sleep(0.02)
            assert not alive(pid)


def alive(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False


@pytest.fixture
def systemd(tmp_path: Path) -> Iterator[Systemd]:
    heard = Systemd(tmp_path)
    yield heard
    heard.stop_service()


def next_release(service: Served, **changes: object) -> None:
    (service.folder / "next.json").write_text(json.dumps(changes))


def model(service: Served) -> str:
    return str(service.get("/v1/models")[1]["data"][0]["id"])


def log(service: Served) -> str:
    return (service.folder / "log").read_text()


async def test_a_release_is_switched_under_load_without_a_failed_request(systemd: Systemd) -> None:
    with served(slots=4, environ=systemd.environ) as service:
        load = Load(service, 16, timeout=60)
        await asyncio.sleep(0.5)
        next_release(service, model="newer", slots=8)
        old_engine = service.engine_pid
        service.process.send_signal(signal.SIGUSR2)
        await until(lambda: systemd.main_pid() is not None, 30)
        assert await asyncio.to_thread(service.process.wait, 30) == 0, "the old one ends by itself"
        assert not alive(old_engine)
        before = load.statuses[200]
        await asyncio.sleep(0.5)
        statuses = await load.stop()
        assert set(statuses) == {200}, log(service)
        assert statuses[200] > before, "the new one answers"
        assert await asyncio.to_thread(model, service) == "newer"
        assert systemd.heard[0] == "READY=1"
        assert "STOPPING=1" not in systemd.heard
        systemd.stop_service()


async def test_release_after_release_with_new_connections_all_the_time(systemd: Systemd) -> None:
    """One connection a request: whoever connects in the middle of a switch is answered too."""
    with served(environ=systemd.environ) as service:
        going, found = True, []

        async def client(number: int) -> None:
            count = 0
            while going:
                connector = aiohttp.TCPConnector(force_close=True)
                timeout = aiohttp.ClientTimeout(total=60)
                async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
                    found.append(await ask(session, service.url, {"input": f"{number} {count}"}))
                count += 1

        clients = [asyncio.ensure_future(client(number)) for number in range(4)]
        pids = [service.process.pid]
        for turn in range(2):
            next_release(service, model=f"release-{turn}")
            os.kill(pids[-1], signal.SIGUSR2)
            last = pids[-1]
            await until(lambda last=last: systemd.main_pid() not in (None, last), 30)  # type: ignore[misc]
            pids.append(systemd.main_pid() or 0)
        await until(lambda: not any(alive(pid) for pid in pids[1:-1]), 20)
        going = False
        await asyncio.gather(*clients)
        assert set(found) == {200}
        assert await asyncio.to_thread(model, service) == "release-1"
        systemd.stop_service()


def post(connection: http.client.HTTPConnection) -> tuple[int, str | None]:
    """Status, and what is said of the connection. Never opens another one."""
    connection.auto_open = 0
    connection.request("POST", "/v1/embeddings", b'{"input": "a"}')
    response = connection.getresponse()
    response.read()
    return response.status, response.getheader("connection")


async def test_a_kept_connection_that_waited_gets_one_more_answer_and_is_told_to_go(systemd: Systemd) -> None:
    with served(environ=systemd.environ) as service:
        kept = [http.client.HTTPConnection("127.0.0.1", service.port, timeout=10) for _ in range(5)]
        for each in kept:
            each.connect()
        assert [post(each) for each in kept] == [(200, None)] * 5
        service.process.send_signal(signal.SIGUSR2)
        await until(lambda: systemd.main_pid() is not None, 30)
        await asyncio.sleep(0.5)
        assert [post(each) for each in kept] == [(200, "close")] * 5
        assert await asyncio.to_thread(service.process.wait, 10) == 0
        systemd.stop_service()


async def test_a_stream_that_runs_is_finished_by_the_old_one(systemd: Systemd) -> None:
    with served(task="chat", environ=systemd.environ) as service:
        async with aiohttp.ClientSession() as session:
            body = {"messages": [{"role": "user", "content": "slow " * 12}], "stream": True}
            async with session.post(f"{service.url}/v1/chat/completions", json=body) as response:
                first = await response.content.readany()
                service.process.send_signal(signal.SIGUSR2)
                await until(lambda: systemd.main_pid() is not None, 30)
                rest = await response.content.read()
        assert (first + rest).count(b'"slow ') == 12
        assert rest.endswith(b"data: [DONE]\n\n")
        systemd.stop_service()


BROKEN = {
    "an engine that does not start": {"weights": "/nowhere/m.gguf"},
    "too little memory for two": {"watch": {"memory_bytes": 1 << 50}},
    "wrong golden answers": {"golden": True},
    "keys that cannot be read": {"files": {"keys": "/dev/null"}},
}


@pytest.mark.parametrize("changes", BROKEN.values(), ids=BROKEN)
async def test_a_release_that_cannot_serve_changes_nothing(changes: dict[str, object], systemd: Systemd) -> None:
    with served(environ=systemd.environ) as service:
        load = Load(service, 4)
        next_release(service, model="newer", **changes)
        service.process.send_signal(signal.SIGUSR2)
        await until(lambda: "Nothing was changed" in said(service), 30)
        assert set(await load.stop()) == {200}
        assert model(service) == "served"
        assert service.get("/ready")[0] == 200
        assert systemd.main_pid() is None
        assert [child for child in children(service.process.pid) if child != service.engine_pid] == []


def children(pid: int) -> list[int]:
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def said(service: Served) -> str:
    return (service.folder / "said").read_text()


async def test_sigterm_during_the_start_of_a_successor_ends_both() -> None:
    with served(environ={"FAKE_LOADING_SECONDS": "0"}) as service:
        next_release(service, loading="60")
        service.process.send_signal(signal.SIGUSR2)
        await until(lambda: len(children(service.process.pid)) == 2, 20)
        successor = children(service.process.pid)[-1]
        await until(lambda: bool(children(successor)), 20)
        engine = children(successor)[-1]
        service.process.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(service.process.wait, 30) == 0
        await until(lambda: not alive(successor) and not alive(engine), 5)


async def test_a_predecessor_that_is_killed_meanwhile_leaves_the_port_to_its_successor(systemd: Systemd) -> None:
    with served(environ=systemd.environ) as service:
        next_release(service, model="newer", loading="1")
        service.process.send_signal(signal.SIGUSR2)
        await until(lambda: len(children(service.process.pid)) == 2, 20)
        successor = children(service.process.pid)[-1]
        service.process.kill()
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=30)) as session:
            assert await ask(session, service.url, {"input": "a"}) == 200
        assert model(service) == "newer"
        os.kill(successor, signal.SIGTERM)
        await until(lambda: not alive(successor), 20)


async def test_a_successor_is_called_off_and_whoever_asked_hears_of_it(systemd: Systemd) -> None:
    with served(environ=systemd.environ) as service:
        load = Load(service, 4)
        next_release(service, model="newer", loading="60")
        service.process.send_signal(signal.SIGUSR2)
        await until(lambda: len(children(service.process.pid)) == 2, 20)
        successor = children(service.process.pid)[-1]
        service.process.send_signal(signal.SIGUSR1)
        await until(lambda: "hand-over 2: called off" in systemd.statuses(), 20)
        assert not alive(successor)
        service.process.send_signal(signal.SIGUSR1)  # with nothing to call off it is answered, too
        await until(lambda: "hand-over 3: called off" in systemd.statuses(), 20)
        assert systemd.main_pid() is None
        next_release(service, weights="/nowhere/m.gguf")
        service.process.send_signal(signal.SIGUSR2)
        await until(lambda: systemd.statuses()[-1].startswith("hand-over 5: failed: "), 20)
        next_release(service, model="newest")
        service.process.send_signal(signal.SIGUSR2)
        await until(lambda: systemd.main_pid() is not None, 20)
        assert systemd.statuses()[-2:] == ["hand-over 6: started", "hand-over 7: done"]
        assert set(await load.stop()) == {200}
        systemd.stop_service()


async def test_whoever_hears_of_the_new_main_process_is_answered_by_no_other(systemd: Systemd) -> None:
    with served(environ=systemd.environ) as service:
        next_release(service, model="newer")
        service.process.send_signal(signal.SIGUSR2)
        while systemd.main_pid() is None:
            await asyncio.sleep(0)
        assert await asyncio.to_thread(model, service) == "newer"
        systemd.stop_service()
