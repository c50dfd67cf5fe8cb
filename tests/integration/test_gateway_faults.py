"""What goes wrong in production, done to a whole gateway over the fake engine."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import os
import signal
import subprocess
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from tests.fakes.load import LOST, Load, Statuses, ask, until
from tests.fakes.served import Served, served

from sampan.flow import api_keys
from sampan.gateway import keys, process_facts

pytestmark = [pytest.mark.integration, pytest.mark.asyncio]


async def test_a_killed_engine_fails_only_what_was_inside_it() -> None:
    with served(slots=4) as service:
        load = Load(service, 16)
        await asyncio.sleep(1)
        os.kill(service.engine_pid, signal.SIGKILL)
        took = await until(lambda: service.get("/health")[1]["engine"] == _ENGINE_AGAIN, 10)
        await asyncio.sleep(0.5)
        statuses = await load.stop()
    assert took < 5
    assert set(statuses) == {200, 503}
    assert statuses[503] <= 4, "one pass"


_ENGINE_AGAIN = {"state": "ready", "variant": "test", "restarts": 1, "device": "cpu"}


async def test_a_frozen_engine_is_noticed_killed_and_replaced() -> None:
    async with running(watch={"hung_seconds": 1.0}) as (service, session):
        assert await ask(session, service.url, {"input": "warm"}) == 200
        frozen = asyncio.ensure_future(ask(session, service.url, {"input": "please freeze"}))
        await asyncio.sleep(0.3)
        waiting = asyncio.ensure_future(ask(session, service.url, {"input": "a"}))
        assert await frozen == 503
        assert await waiting == 200


async def test_an_engine_that_leaks_is_drained_and_replaced_without_a_failed_request() -> None:
    with served(watch={"memory_bytes": 1 << 20}) as service:
        load = Load(service, 4)
        await until(lambda: service.get("/health")[1]["engine"]["restarts"] >= 1, 15)
        statuses = await load.stop()
    assert set(statuses) == {200}


@contextlib.asynccontextmanager
async def running(**given: Any) -> AsyncIterator[tuple[Served, aiohttp.ClientSession]]:
    """A service and a client."""
    with served(**given) as service:
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=30)) as session:
            yield service, session


async def test_nan_from_the_engine_fails_its_own_text_alone() -> None:
    async with running() as (service, session):
        asks = [ask(session, service.url, {"input": f"please wait {number}"}) for number in range(5)]
        bad = [ask(session, service.url, {"input": ["fine", "please nan"]}) for _ in range(3)]
        found = await asyncio.gather(*asks, *bad)
    assert found == [200] * 5 + [502] * 3


async def test_clients_that_vanish_leave_nothing_behind() -> None:
    async with running(slots=2) as (service, session):
        for _ in range(3):
            vanishing = [
                asyncio.ensure_future(ask(session, service.url, {"input": f"please hang {number}"}))
                for number in range(20)
            ]
            await asyncio.sleep(0.2)
            for task in vanishing:
                task.cancel()
            await asyncio.gather(*vanishing, return_exceptions=True)
        assert await asyncio.wait_for(ask(session, service.url, {"input": "a"}), 5) == 200
        async with session.get(f"{service.url}/metrics") as response:
            text = await response.text()
    assert "sampan_inside_requests 0.0" in text
    assert "sampan_waiting_texts 0.0" in text


async def test_a_thousand_clients_against_a_queue_of_64() -> None:
    with served(limits={"queue_requests": 64}) as service:
        connector = aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=60)) as session:
            await asyncio.gather(*(ask(session, service.url, {"input": f"warm {n}"}) for n in range(1000)))
            before = _rss(service)
            for _ in range(2):
                asks = [ask(session, service.url, {"input": f"please wait {n}"}) for n in range(1000)]
                statuses: Statuses = collections.Counter(await asyncio.gather(*asks))
                assert set(statuses) == {200, 429}
                assert statuses[200] >= 64
            after = _rss(service)
        assert service.get("/ready")[0] == 200
    assert after - before < 8 << 20
    assert after < 80 << 20


def _rss(service: Served) -> int:
    return process_facts.resident_bytes(Path(f"/proc/{service.process.pid}")) or 0


async def test_ten_megabytes_are_refused_and_the_next_request_is_answered() -> None:
    async with running() as (service, session):
        found = await asyncio.gather(*(ask(session, service.url, {"input": "x" * (10 << 20)}) for _ in range(8)))
        assert await ask(session, service.url, {"input": "a"}) == 200
        assert _rss(service) < 100 << 20
    assert [status for status in found if status != 413 and not str(status).startswith(LOST)] == []
    assert 413 in found, "who still sends may see the connection close instead"


async def test_sigterm_under_load_loses_no_accepted_request() -> None:
    async with running(slots=4) as (service, session):
        asks = [asyncio.ensure_future(ask(session, service.url, {"input": f"please wait {n}"})) for n in range(32)]
        await asyncio.sleep(0.35)
        service.process.send_signal(signal.SIGTERM)
        found = await asyncio.gather(*asks)
        assert await asyncio.to_thread(service.process.wait, 20) == 0
    assert found == [200] * 32


async def test_keys_change_under_load_without_a_failed_request(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    _, text = api_keys.add(path, keys.Key("", "steady", ""), None)
    async with running(files={"keys": str(path)}) as (service, session):
        load = Load(service, 8, {"Authorization": f"Bearer {text}"})
        await asyncio.sleep(0.3)
        _, new = api_keys.add(path, keys.Key("", "new", ""), None)
        assert await ask(session, service.url, {"input": "a"}, {"Authorization": f"Bearer {new}"}) == 401
        for _ in range(5):
            service.process.send_signal(signal.SIGHUP)
            await asyncio.sleep(0.1)
        assert await ask(session, service.url, {"input": "a"}, {"Authorization": f"Bearer {new}"}) == 200
        path.write_text("damaged")
        service.process.send_signal(signal.SIGHUP)
        await asyncio.sleep(0.2)
        statuses = await load.stop()
    assert set(statuses) == {200}


async def test_a_full_disk_for_the_audit_log_fails_no_request(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "none", disk], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("no right to mount a small file system")
    try:
        async with running(files={"audit_log": str(disk / "audit.log")}) as (service, session):
            found = [await ask(session, service.url, {"input": f"a {number}"}) for number in range(400)]
            log = (service.folder / "log").read_text()
        lines = (disk / "audit.log").read_text().splitlines()
    finally:
        subprocess.run(["umount", disk], check=True)
    assert set(found) == {200}
    assert 100 < len(lines) < 400
    assert all(line.startswith("{") and line.endswith("}") for line in lines)
    assert log.count("entries are lost") == 1


async def test_a_clock_that_jumps_changes_nothing(tmp_path: Path) -> None:
    """Every wait and deadline is on the monotonic clock; the library below makes the other one jump."""
    source = tmp_path / "jump.c"
    source.write_text(
        "#define _GNU_SOURCE\n#include <time.h>\n#include <sys/syscall.h>\n#include <unistd.h>\n"
        "int clock_gettime(clockid_t id, struct timespec *at) {\n"
        "  int code = syscall(SYS_clock_gettime, id, at);\n"
        "  static long calls; if (id == CLOCK_REALTIME) at->tv_sec += (++calls % 2) ? 86400 * 400 : -86400 * 400;\n"
        "  return code;\n}\n"
    )
    built = subprocess.run(
        ["cc", "-shared", "-fPIC", "-o", tmp_path / "jump.so", source], capture_output=True, check=False
    )
    if built.returncode:
        pytest.skip("no C compiler")
    with served(environ={"LD_PRELOAD": str(tmp_path / "jump.so")}) as service:
        load = Load(service, 8)
        await asyncio.sleep(1.5)
        statuses = await load.stop()
    assert set(statuses) == {200}
    assert statuses[200] >= 8


async def test_slow_loris_takes_no_place_from_others() -> None:
    async with running() as (service, session):
        slow = [await asyncio.open_connection("127.0.0.1", service.port) for _ in range(300)]
        for _, writer in slow:
            writer.write(b"POST /v1/embeddings HTTP/1.1\r\nX: ")
        began = time.monotonic()
        found = await asyncio.gather(*(ask(session, service.url, {"input": f"a {n}"}) for n in range(50)))
        took = time.monotonic() - began
        for _, writer in slow:
            writer.close()
    assert found == [200] * 50
    assert took < 5
