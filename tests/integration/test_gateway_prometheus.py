"""A real Prometheus loads the rules and scrapes a running gateway."""

from __future__ import annotations

import json
import socket
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from tests.fakes.gateway import EMBEDDING_MODEL, gateway
from tests.integration import client_tools

pytestmark = pytest.mark.integration
RULES = resources.files("sampan") / "data" / "gateway" / "prometheus-rules.yml"


def get(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=5) as response:
        return json.load(response)


@pytest.fixture
def prometheus(tmp_path: Path) -> Iterator[str]:
    """Its address, once it has scraped a gateway that answered some requests."""
    program = client_tools.prometheus("prometheus")
    (tmp_path / "rules.yml").write_text(RULES.read_text(encoding="utf-8"), encoding="utf-8")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory(prefix="gw") as folder, gateway(Path(folder), EMBEDDING_MODEL) as running:
        (tmp_path / "prometheus.yml").write_text(
            f"global: {{scrape_interval: 1s, evaluation_interval: 1s}}\nrule_files: [rules.yml]\n"
            f"scrape_configs: [{{job_name: sampan, static_configs: [{{targets: ['127.0.0.1:{running.port}']}}]}}]\n"
        )
        words = [
            program,
            f"--config.file={tmp_path}/prometheus.yml",
            f"--storage.tsdb.path={tmp_path}/data",
            f"--web.listen-address=127.0.0.1:{port}",
            "--log.level=error",
        ]
        with subprocess.Popen(words) as process:
            try:
                yield f"http://127.0.0.1:{port}"
            finally:
                process.terminate()


def value(address: str, query: str, seconds: float = 30.0) -> float:
    """The first value that the query gives."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            found = get(f"{address}/api/v1/query?query={query}")["data"]["result"]
        except OSError:
            found = []
        if found:
            return float(found[0]["value"][1])
        time.sleep(0.3)
    raise AssertionError(f"{query}: nothing")


def test_a_real_prometheus_scrapes_and_evaluates_every_rule(prometheus: str) -> None:
    assert value(prometheus, "up") == 1
    assert value(prometheus, "sampan_ready") == 1
    assert value(prometheus, "sampan_inside_requests_limit") == 256
    time.sleep(2)
    groups = get(f"{prometheus}/api/v1/rules")["data"]["groups"]
    rules = [rule for group in groups for rule in group["rules"]]
    assert len(rules) >= 9
    assert [rule["name"] for rule in rules if rule["health"] != "ok" or rule.get("lastError")] == []
    assert [rule["name"] for rule in rules if rule["state"] == "firing"] == []


SERIES = """
rule_files: [rules.yml]
evaluation_interval: 1m
tests:
  - interval: 1m
    input_series:
      - {series: 'sampan_selftest_passed{instance="a"}', values: '1 1 0 0'}
      - {series: 'sampan_ready{instance="a"}', values: '1 1 0x9'}
      - {series: 'sampan_engine_restarts_total{instance="a"}', values: '0 0 3x9'}
      - {series: 'sampan_queue_refusals_total{instance="a"}', values: '0+10x20'}
      - {series: 'sampan_usable_cpus{instance="a"}', values: '4x30'}
      - {series: 'sampan_cpu_seconds_total{instance="a",process="engine"}', values: '0+228x30'}
      - {series: 'sampan_request_duration_seconds_bucket{instance="a",endpoint="/v1/embeddings",le="10.0"}', values: '0x30'}
      - {series: 'sampan_request_duration_seconds_bucket{instance="a",endpoint="/v1/embeddings",le="30.0"}', values: '0+60x30'}
      - {series: 'sampan_request_duration_seconds_bucket{instance="a",endpoint="/v1/embeddings",le="+Inf"}', values: '0+60x30'}
    alert_rule_test:
"""  # noqa: E501


def test_alerts_fire_when_they_should(tmp_path: Path) -> None:
    program = client_tools.prometheus("promtool")
    (tmp_path / "rules.yml").write_text(RULES.read_text(encoding="utf-8"), encoding="utf-8")
    expected = {
        "SampanSelftestFailed": ("3m", "critical", ""),
        "SampanNotReady": ("5m", "critical", ""),
        "SampanEngineRestarting": ("3m", "warning", ""),
        "SampanQueueFull": ("8m", "warning", ""),
        "SampanCpuBusy": ("15m", "warning", ""),
        "SampanSlow": ("15m", "warning", "endpoint: /v1/embeddings, "),
    }
    tests = "".join(
        f"      - {{eval_time: {when}, alertname: {name}, exp_alerts: "
        f"[{{exp_labels: {{{more}severity: {severity}, instance: a}}}}]}}\n"
        for name, (when, severity, more) in expected.items()
    )
    bare = "\n".join(  # annotations are for people; the test is of conditions
        line
        for line in (tmp_path / "rules.yml").read_text().splitlines()
        if "summary:" not in line and "annotations:" not in line
    )
    (tmp_path / "rules.yml").write_text(bare)
    (tmp_path / "test.yml").write_text(SERIES + tests)
    ran = subprocess.run(
        [program, "test", "rules", "test.yml"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    for name in expected:  # and none of them at the very beginning
        quiet = SERIES + f"      - {{eval_time: 0m, alertname: {name}, exp_alerts: []}}\n"
        (tmp_path / "test.yml").write_text(quiet)
        assert (
            subprocess.run(
                [program, "test", "rules", "test.yml"], cwd=tmp_path, capture_output=True, check=False
            ).returncode
            == 0
        )
