"""What the engine computes on is looked at, not believed."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.unit.gateway.engines import ScriptedEngine

from sampan.gateway import devices
from sampan.gateway.admission import Admission
from sampan.gateway.house import House
from sampan.gateway.readiness import passes_selftest
from sampan.gateway.service import Service
from sampan.gateway.settings import Limits, ServedModel


def process(place: Path, *opened: str) -> Path:
    (place / "fd").mkdir(parents=True)
    for number, target in enumerate(("/dev/null", "socket:[1]", *opened)):
        (place / "fd" / str(number)).symlink_to(target)
    return place


@pytest.mark.parametrize(
    ("opened", "device"),
    [
        ((), "cpu"),
        (("/dev/nvidiactl",), "cpu"),  # the driver was asked, and no card taken
        (("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia0"), "cuda"),
        (("/dev/kfd", "/dev/dri/renderD128"), "rocm"),
        (("/dev/davinci0",), "ascend"),
        (("/dev/dri/renderD128",), "gpu"),
        (("/srv/dev/nvidia0",), "cpu"),
    ],
)
def test_the_open_files_tell(tmp_path: Path, opened: tuple[str, ...], device: str) -> None:
    assert devices.in_use(process(tmp_path / "1", *opened)) == device


def test_a_process_that_is_gone_tells_nothing(tmp_path: Path) -> None:
    assert devices.in_use(tmp_path / "2") is None


def test_this_process_computes_on_the_cpu() -> None:
    assert devices.in_use(Path(f"/proc/{os.getpid()}")) == "cpu"


@dataclass
class Served:
    house: House
    said: list[str]


class ThisProcess(ScriptedEngine):
    """An engine that is a process: the one that runs this test."""

    pid = os.getpid()


@pytest.fixture
async def on_a_cpu() -> Served:
    """A house that wants a card, and whose engine is a process without one."""
    engine, limits = ThisProcess(), Limits()
    house = House(engine, ServedModel("m", "embedding"), limits, Admission(limits), device="cuda")
    return Served(house, [])


async def test_an_engine_on_another_device_fails_the_self_test(on_a_cpu: Served) -> None:
    house = on_a_cpu.house
    assert await passes_selftest(house, None, on_a_cpu.said.append) is False
    assert house.meter.selftest_ok is False
    assert "cpu" in on_a_cpu.said[0]
    assert "cuda" in on_a_cpu.said[0]


async def test_and_it_is_never_ready(on_a_cpu: Served) -> None:
    house = on_a_cpu.house
    reply = await Service(house).ready(None)  # type: ignore[arg-type]
    assert (reply.status, json.loads(reply.body)) == (503, {"ready": False, "reason": "device"})
    house.device = "cpu"
    assert (await Service(house).ready(None)).status == 200  # type: ignore[arg-type]
    health = json.loads((await Service(house).health(None)).body)  # type: ignore[arg-type]
    assert health["engine"]["device"] == "cpu"
