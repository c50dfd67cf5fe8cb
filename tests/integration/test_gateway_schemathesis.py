"""schemathesis (tests/clients.lock) reads the description that the gateway gives of itself and tries to break it.

Seconds for each kind of model: SAMPAN_SCHEMATHESIS_SECONDS (7).
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from tests.fakes.served import Served, served
from tests.integration.client_tools import run_client

pytestmark = pytest.mark.integration
SECONDS = os.environ.get("SAMPAN_SCHEMATHESIS_SECONDS", "7")
CHECKS = "not_a_server_error,response_schema_conformance,status_code_conformance,content_type_conformance"
CHECKS += ",response_headers_conformance,unsupported_method"


def described(service: Served) -> dict[str, Any]:
    """Without the deadline: of nothing, 504 is the right answer, which schemathesis takes for a fault."""
    found: dict[str, Any] = service.get("/openapi.json")[1]
    for path in found["paths"].values():
        for verb in path.values():
            verb["parameters"] = [each for each in verb.get("parameters", ()) if each["name"] != "X-Request-Timeout"]
    return found


@pytest.mark.parametrize("task", ["embedding", "chat", "rerank"])
def test_schemathesis_finds_no_fault(task: str, tmp_path: Path) -> None:
    with served(task=task) as service:
        (tmp_path / "openapi.json").write_text(json.dumps(described(service)))
        words = ["-m", "schemathesis.cli", "run", "openapi.json", "--url", service.url, "--checks", CHECKS]
        words += ["--phases", "examples,coverage,fuzzing", "--max-time", SECONDS, "--request-timeout", "20"]
        words += ["--seed", "7", "--generation-database", "none"]
        ran = run_client(words, cwd=tmp_path, timeout=120 + 3 * float(SECONDS))
        assert service.get("/ready")[0] == 200
    assert ran.returncode == 0, ran.stdout[-6000:] + ran.stderr[-2000:]
    tried = re.search(r"(\d+) generated", ran.stdout)
    assert tried is not None, ran.stdout[-2000:]
    assert int(tried[1]) > 100
    print(f"{tried[1]} requests")
