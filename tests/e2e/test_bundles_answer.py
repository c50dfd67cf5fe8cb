"""Rehearsed bundles answer the official client, on emulated and on real CPUs."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.ships import Shipped, busybox, tools

from sampan.bundle.seal import seal
from sampan.flow import rehearsals
from sampan.rehearse.session import Service, session
from sampan.spec.codec import to_json

pytestmark = pytest.mark.e2e

EMBED = """
import json, sys, time
from openai import OpenAI
client = OpenAI(base_url=sys.argv[1] + "/v1", api_key="none", timeout=300, max_retries=0)
model = client.models.list().data[0].id
times = []
for text in ["How do I reset my password?"] * int(sys.argv[2]) + ["I forgot my password", "Bananas are yellow"]:
    started = time.perf_counter()
    vector = client.embeddings.create(model=model, input=text).data[0].embedding
    times.append(time.perf_counter() - started)
    if text == "I forgot my password": close = vector
    elif text == "Bananas are yellow": far = vector
    else: asked = vector
dot = lambda a, b: sum(x * y for x, y in zip(a, b))
print(json.dumps({"length": len(asked), "close": dot(asked, close), "far": dot(asked, far), "times": times}))
"""

CHAT = """
import json, sys
from openai import OpenAI
client = OpenAI(base_url=sys.argv[1] + "/v1", api_key="none", timeout=300, max_retries=0)
model = client.models.list().data[0].id
messages = [{"role": "user", "content": "What is the capital of France? Answer in one word."}]
whole = client.chat.completions.create(model=model, messages=messages, max_tokens=8, temperature=0)
pieces = client.chat.completions.create(model=model, messages=messages, max_tokens=8, temperature=0, stream=True)
text = "".join(piece.choices[0].delta.content or "" for piece in pieces if piece.choices)
print(json.dumps({"whole": whole.choices[0].message.content, "streamed": text}))
"""


@contextmanager
def served(shipped: Shipped, work: Path) -> Iterator[Service]:
    profile = shipped.profile
    with session(
        shipped.folder,
        profile,
        shipped.plan,
        busybox=busybox(profile.arch),
        runner=tools().runner,
        work=work,
    ) as service:
        yield service


def ask(service: Service, program: str, *words: str) -> dict[str, Any]:
    """Run the official client inside the service's network, which has loopback only."""
    done = subprocess.run(
        [*service.enter, sys.executable, "-c", program, service.url, *words],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def passed(shipped: Shipped) -> dict[str, Any]:
    rehearsal: dict[str, Any] = shipped.said["rehearsal"]
    assert rehearsal["status"] == "passed", rehearsal["reason"]
    assert all(check["ok"] for check in rehearsal["checks"])
    assert shipped.said["package"]["rehearsed"]
    return rehearsal


@pytest.mark.parametrize(("name", "cpu"), [("minilm_kunpeng", "cortex-a76"), ("minilm_d2000", "cortex-a57")])
def test_embeddings_on_an_emulated_arm_server(
    name: str, cpu: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    shipped = request.getfixturevalue(name)
    rehearsal = passed(shipped)
    assert (rehearsal["cpu_model"], rehearsal["page_size"], rehearsal["emulated"]) == (cpu, 65536, True)
    with served(shipped, tmp_path) as service:
        answer = ask(service, EMBED, "1")
    assert answer["length"] == 384
    assert answer["close"] > answer["far"] + 0.3


def test_chat_on_an_emulated_arm_server(smollm2_kunpeng: Shipped, tmp_path: Path) -> None:
    passed(smollm2_kunpeng)
    with served(smollm2_kunpeng, tmp_path) as service:
        answer = ask(service, CHAT)
    assert "Paris" in answer["whole"]
    assert answer["streamed"] == answer["whole"]


def test_embeddings_natively_within_50_ms(minilm_here: Shipped, tmp_path: Path) -> None:
    assert not passed(minilm_here)["emulated"]
    with served(minilm_here, tmp_path) as service:
        answer = ask(service, EMBED, "21")
    assert sorted(answer["times"])[len(answer["times"]) // 2] < 0.050


def test_a_bundle_without_the_baseline_names_the_missing_cpu_features(
    minilm_kunpeng: Shipped, tmp_path: Path
) -> None:
    """The Kunpeng's variants alone, on a D2000: what happens when someone carries the wrong bundle."""
    from sampan.survey import known

    folder = tmp_path / minilm_kunpeng.folder.name
    subprocess.run(["cp", "-a", minilm_kunpeng.folder, folder], check=True)
    subprocess.run(["rm", "-r", folder / "engine/llama.cpp/armv8.0"], check=True)
    plan = minilm_kunpeng.plan
    plan = replace(plan, variants=tuple(each for each in plan.variants if each.name != "armv8.0"))
    (folder / "plan.json").write_text(to_json(plan), encoding="utf-8")
    reseal_changed(folder)
    rehearsal = rehearsals.run(folder, known.load("kylin-v10-phytium-d2000"), plan, tools())
    assert rehearsal.status == "failed"
    for feature in ("asimddp", "atomics", "asimdhp"):
        assert feature in rehearsal.reason


def reseal_changed(folder: Path) -> None:
    """As if the bundle had been made so: the declared plan and engine follow the change."""
    import hashlib

    manifest = json.loads((folder / "manifest.json").read_text())
    predicate = manifest["predicate"]
    predicate["plan"]["sha256"] = hashlib.sha256((folder / "plan.json").read_bytes()).hexdigest()
    predicate["engine"]["variants"] = [each for each in predicate["engine"]["variants"] if each["name"] != "armv8.0"]
    (folder / "manifest.json").write_text(json.dumps(manifest))
    seal(folder, None)
