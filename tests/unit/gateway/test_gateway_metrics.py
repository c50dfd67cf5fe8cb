"""Metrics, and what is built on their names: alert rules and the dashboard."""

from __future__ import annotations

import json
import re
from importlib import resources
from pathlib import Path

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.fakes.engine import FakeLlamaServer
from tests.fakes.gateway import EMBEDDING_MODEL, fake_engine

from sampan.gateway import process_facts
from sampan.gateway.admission import Admission
from sampan.gateway.app import create_app
from sampan.gateway.batching import Batching
from sampan.gateway.exposition import Exposition
from sampan.gateway.house import House
from sampan.gateway.meter import Histogram, Meter
from sampan.gateway.settings import Limits

DATA = resources.files("sampan") / "data" / "gateway"
ONLY_WHERE = {"sampan_selftest_passed", "sampan_cpu_throttled_seconds_total"}  # a golden set, a control group


async def scraped(folder: Path) -> str:
    async with fake_engine(folder, FakeLlamaServer(embeddings=True)) as engine:
        app = create_app(engine, EMBEDDING_MODEL)
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://gateway") as client:
            for body in ({"input": ["a", "b"]}, {"input": "please nan"}, {}):
                await client.post("/v1/embeddings", json=body)
            await client.get("/nothing/" + "x" * 50)
            return (await client.get("/metrics")).text


async def test_what_happened_is_counted(short_folder: Path) -> None:
    text = await scraped(short_folder)
    found = {
        (sample.name, *sorted(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    assert found["sampan_requests_total", "-", "/v1/embeddings", "200"] == 1
    assert found["sampan_requests_total", "-", "/v1/embeddings", "400"] == 1
    assert found["sampan_requests_total", "-", "/v1/embeddings", "502"] == 1
    assert found["sampan_requests_total", "-", "404", "other"] == 1, "no label from what a stranger sends"
    assert found["sampan_tokens_total", "-", "/v1/embeddings", "prompt"] == 6
    assert found["sampan_errors_total", "vector_not_finite"] == 1
    assert found["sampan_pass_texts_count",] == 2
    assert found["sampan_request_duration_seconds_count", "/v1/embeddings"] == 3
    assert found["sampan_inside_requests",] == 0
    assert found["sampan_resident_memory_bytes", "gateway"] > 1e6


async def test_rules_and_dashboard_ask_only_for_what_there_is(short_folder: Path) -> None:
    text = await scraped(short_folder)
    known = {line.split("{")[0].split(" ")[0] for line in text.splitlines() if not line.startswith("#")} | ONLY_WHERE
    rules = (DATA / "prometheus-rules.yml").read_text(encoding="utf-8")
    board = json.loads((DATA / "grafana-dashboard.json").read_text(encoding="utf-8"))
    asked = " ".join(target["expr"] for panel in board["panels"] for target in panel["targets"])
    for what in (rules, asked):
        names = set(re.findall(r"\bsampan_\w+", what))
        assert len(names) > 6
        assert names - known == set()


async def test_a_failed_self_test_shows(short_folder: Path) -> None:
    async with fake_engine(short_folder, FakeLlamaServer(embeddings=True)) as engine:
        meter = Meter()
        batching = Batching(engine, EMBEDDING_MODEL, Limits(), meter, slots=2, pass_tokens=64)
        house = House(batching, EMBEDDING_MODEL, Limits(), Admission(Limits()), meter=meter, ready=False)
        meter.selftest_ok = False
        text = Exposition(house).text().decode()
    assert "sampan_selftest_passed 0.0" in text
    assert "sampan_ready 0.0" in text


def test_a_value_on_a_bound_belongs_below_it() -> None:
    histogram = Histogram((1.0, 2.0))
    for value in (0.5, 1.0, 1.5, 9.0):
        histogram.observe(value)
    assert histogram.counts == [2, 1, 1]


@pytest.mark.parametrize(
    ("line", "place", "stat", "seconds"),
    [
        ("0::/a.service\n", "a.service", "nr_periods 3\nthrottled_usec 2500000\n", 2.5),
        ("4:cpu,cpuacct:/a\n", "cpu,cpuacct/a", "throttled_time 1500000000\n", 1.5),
        ("4:memory:/a\n", "memory/a", "", None),
        ("0::/a.service\n", "a.service", "nonsense", None),
    ],
)
def test_throttling_is_read_from_either_kind_of_control_group(
    tmp_path: Path, line: str, place: str, stat: str, seconds: float | None
) -> None:
    own = tmp_path / "cgroup"
    own.write_text(line)
    (tmp_path / place).mkdir(parents=True)
    (tmp_path / place / "cpu.stat").write_text(stat)
    assert process_facts.throttled_seconds(tmp_path, own) == seconds
    assert process_facts.throttled_seconds(tmp_path, tmp_path / "none") is None


def test_a_process_that_is_gone_has_no_figures(tmp_path: Path) -> None:
    assert process_facts.resident_bytes(tmp_path) is None
    assert process_facts.cpu_seconds(tmp_path) is None
    assert (process_facts.resident_bytes(Path("/proc/self")) or 0) > 1e6
    assert process_facts.cpu_seconds(Path("/proc/self")) is not None
