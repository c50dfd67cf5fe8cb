"""Child processes and their supervision, with small shell scripts as engines."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from sampan.errors import ExitCode, ServiceError
from sampan.gateway.child import Child, describe_end
from sampan.gateway.engine import EngineState
from sampan.gateway.supervisor import Pace, Supervisor

FAST = Pace(first_back_off=0.01, longest_back_off=0.04, poll=0.01, grace=0.3)
ENVIRON = {"PATH": os.environ["PATH"]}


def shell(script: str) -> Callable[[], Child]:
    return lambda: Child(("/bin/sh", "-c", script), ENVIRON)


async def until(condition: Callable[[], bool]) -> None:
    async def poll() -> None:
        while not condition():
            await asyncio.sleep(0.01)

    await asyncio.wait_for(poll(), 3)


async def always_ready() -> EngineState:
    return EngineState.READY


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state != "Z"


@pytest.fixture
async def supervise() -> AsyncIterator[Callable[[str], Supervisor]]:
    made: list[Supervisor] = []

    def make(script: str) -> Supervisor:
        made.append(Supervisor("armv8.0", shell(script), always_ready, FAST))
        made[-1].start()
        return made[-1]

    yield make
    for supervisor in made:
        await supervisor.stop()


async def test_output_is_drained_and_its_end_kept() -> None:
    lines: list[str] = []
    script = "i=0; while [ $i -lt 3000 ]; do echo line $i; i=$((i+1)); done; echo last >&2; exit 4"
    child = Child(("/bin/sh", "-c", script), ENVIRON, lines.append)
    assert child.returncode is None
    assert await asyncio.wait_for(child.wait(), 5) == 4
    assert len(lines) == 3001
    assert child.tail[-2:] == ("line 2999", "last")
    assert len(child.tail) == 40


async def test_a_child_that_ignores_the_request_to_end_is_killed() -> None:
    child = Child(("/bin/sh", "-c", "trap '' TERM; echo up; while :; do sleep 0.05; done"), ENVIRON)
    await until(lambda: child.tail == ("up",))
    await child.end(0.1)
    assert child.returncode == -signal.SIGKILL


async def test_a_child_is_not_in_the_group_that_ctrl_c_reaches() -> None:
    child = Child(("/bin/sh", "-c", "sleep 9"), ENVIRON)
    assert os.getpgid(child.pid) != os.getpgid(0)
    await child.end(1)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_no_child_outlives_a_killed_gateway(number: signal.Signals) -> None:
    program = (
        "import asyncio\n"
        "from sampan.gateway.child import Child\n"
        "async def main():\n"
        "    print(Child(('/bin/sleep', '60'), {}).pid, flush=True)\n"
        "    await asyncio.sleep(60)\n"
        "asyncio.run(main())\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as gateway:
        pid = int((gateway.stdout or sys.stdin).readline())
        assert alive(pid)
        gateway.send_signal(number)
        gateway.wait(5)
    deadline = time.monotonic() + 3
    while alive(pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not alive(pid)


async def test_a_dead_engine_is_started_again(supervise: Callable[[str], Supervisor]) -> None:
    supervisor = supervise("sleep 30")
    await supervisor.wait_ready(3)
    first = supervisor.pid
    assert first is not None
    os.kill(first, signal.SIGKILL)
    await until(lambda: supervisor.restarts == 1 and supervisor.state is EngineState.READY)
    assert supervisor.pid not in (None, first)
    assert not alive(first)


async def test_the_back_off_grows_to_its_limit(supervise: Callable[[str], Supervisor]) -> None:
    supervisor = supervise("sleep 0.05")
    await supervisor.wait_ready(3)
    began = time.monotonic()
    await until(lambda: supervisor.restarts == 5)
    assert time.monotonic() - began >= 0.01 + 0.02 + 0.04 * 3


async def test_an_engine_that_never_was_ready_fails_with_its_last_lines(
    supervise: Callable[[str], Supervisor],
) -> None:
    async def never() -> EngineState:
        return EngineState.STARTING

    supervisor = Supervisor("armv8.0", shell("echo no such model; exit 1"), never, FAST)
    supervisor.start()
    with pytest.raises(ServiceError) as caught:
        await supervisor.wait_ready(3)
    assert (caught.value.key, caught.value.exit_code) == ("gateway.engine-failed", ExitCode.SERVICE)
    for part in ("armv8.0", "exit code 1", "no such model"):
        assert part in caught.value.message
    assert supervisor.state is EngineState.FAILED
    await supervisor.stop()
    assert supervisor.state is EngineState.FAILED


@pytest.mark.parametrize(
    ("content", "mode", "detail"),
    [(b"\x7fELF cut short", 0o755, "Exec format error"), (b"#!/bin/sh\n", 0o644, "Permission denied")],
)
async def test_a_program_that_cannot_be_run_is_named(tmp_path: Path, content: bytes, mode: int, detail: str) -> None:
    program = tmp_path / "llama-server"
    program.write_bytes(content)
    program.chmod(mode)
    supervisor = Supervisor("armv8.0", lambda: Child((str(program),), ENVIRON), always_ready, FAST)
    supervisor.start()
    with pytest.raises(ServiceError) as caught:
        await supervisor.wait_ready(3)
    await supervisor.stop()
    assert caught.value.key == "gateway.engine-not-run"
    assert caught.value.message == f"The engine's program {program} cannot be run: {detail}."
    for part in ("noexec", "sha256sum -c SHA256SUMS", "tar xf"):
        assert part in caught.value.hint


async def test_a_process_that_cannot_be_forked_is_no_damaged_file() -> None:
    def spawn() -> Child:
        raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))

    supervisor = Supervisor("armv8.0", spawn, always_ready, FAST)
    supervisor.start()
    with pytest.raises(ServiceError, match="Cannot allocate memory") as caught:
        await supervisor.wait_ready(3)
    await supervisor.stop()
    assert caught.value.key == "gateway.engine-failed"
    assert caught.value.message.endswith("\n    -"), "no heading without lines"


async def test_an_illegal_instruction_is_named_at_start(supervise: Callable[[str], Supervisor]) -> None:
    async def never() -> EngineState:
        return EngineState.STARTING

    supervisor = Supervisor("armv8.2-dotprod", shell("kill -ILL $$"), never, FAST)
    supervisor.start()
    with pytest.raises(ServiceError) as caught:
        await supervisor.wait_ready(3)
    assert "SIGILL" in caught.value.message
    assert "SIGILL" in caught.value.hint
    await supervisor.stop()


async def test_an_executable_that_is_none_fails_at_once(tmp_path: Path) -> None:
    supervisor = Supervisor("v", lambda: Child((str(tmp_path / "none"),), ENVIRON), always_ready, FAST)
    supervisor.start()
    with pytest.raises(ServiceError) as caught:
        await supervisor.wait_ready(3)
    assert str(tmp_path / "none") in caught.value.message
    await supervisor.stop()


async def test_a_slow_engine_is_said_to_be_slow() -> None:
    async def loading() -> EngineState:
        return EngineState.LOADING

    supervisor = Supervisor("v", shell("echo reading weights; sleep 9"), loading, FAST)
    supervisor.start()
    with pytest.raises(ServiceError) as caught:
        await supervisor.wait_ready(0.2)
    assert caught.value.key == "gateway.engine-slow"
    assert "reading weights" in caught.value.message
    assert supervisor.state is EngineState.LOADING
    await supervisor.stop()


async def test_stopping_ends_the_child_and_may_be_asked_twice(supervise: Callable[[str], Supervisor]) -> None:
    supervisor = supervise("sleep 30")
    await supervisor.wait_ready(3)
    pid = supervisor.pid
    assert pid is not None
    await supervisor.stop()
    await supervisor.stop()
    assert not alive(pid)
    assert (supervisor.state, supervisor.restarts) == (EngineState.STOPPED, 0)


async def test_stopping_while_it_loads_ends_the_waiting() -> None:
    async def loading() -> EngineState:
        return EngineState.LOADING

    supervisor = Supervisor("v", shell("sleep 30"), loading, FAST)
    supervisor.start()
    waiting = asyncio.ensure_future(supervisor.wait_ready(3))
    await asyncio.sleep(0.05)
    await supervisor.stop()
    with pytest.raises(ServiceError) as caught:
        await waiting
    assert caught.value.key == "gateway.engine-stopped"


@pytest.mark.parametrize(
    ("code", "text"), [(0, "exit code 0"), (3, "exit code 3"), (-4, "signal SIGILL"), (-99, "signal 99")]
)
def test_ends_are_described(code: int, text: str) -> None:
    assert describe_end(code) == text
