"""Each class of models that can be imported: the converter's file in the real engine gives what transformers gives.

The files and answers: tests/data/weights/make_class_truth.py.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from tests.integration import gate_tools

pytestmark = pytest.mark.integration
FOLDER = Path(__file__).parents[1] / "data/weights/classes"
TRUTH: dict[str, Any] = json.loads((FOLDER / "truth.json").read_text("utf-8"))
EMBEDDING = [name for name, truth in TRUTH.items() if "embeddings" in truth]
CHAT = [name for name, truth in TRUTH.items() if "steps" in truth]
SECONDS = 60.0


@contextmanager
def serving(name: str, *flags: str) -> Iterator[httpx.Client]:
    executable = gate_tools.server()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    argv = [str(executable), "--model", str(FOLDER / f"{name}.gguf"), "--host", "127.0.0.1", "--port", str(port)]
    argv += [
        "--ctx-size",
        "128",
        "--batch-size",
        "128",
        "--ubatch-size",
        "128",
        "--threads",
        "1",
        "--no-ui",
        "--offline",
    ]
    argv += ["--cache-ram", "0", *flags]
    environment = {key: value for key, value in os.environ.items() if not key.startswith("LLAMA_")}
    with (
        subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment) as process,
        httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=SECONDS, trust_env=False) as client,
    ):
        try:
            _wait(process, client)
            yield client
        finally:
            process.kill()


def _wait(process: subprocess.Popen[bytes], client: httpx.Client) -> None:
    end = time.monotonic() + SECONDS
    while time.monotonic() < end and process.poll() is None:
        try:
            if client.get("/health").status_code == 200:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.05)
    pytest.fail(f"the engine is not ready; it ended with {process.poll()}")


def _cosine(one: Any, two: Any) -> float:
    a, b = np.asarray(one, np.float64), np.asarray(two, np.float64)
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


def _embed(client: httpx.Client, texts: list[str]) -> list[Any]:
    answer = client.post("/v1/embeddings", json={"input": texts}).raise_for_status().json()
    return [item["embedding"] for item in sorted(answer["data"], key=lambda item: item["index"])]


@pytest.mark.parametrize("name", EMBEDDING)
def test_texts_are_split_and_pooled_as_the_original_does(name: str) -> None:
    truth = TRUTH[name]["embeddings"]
    with serving(name, "--embeddings") as client:
        for item in truth:
            asked = {"content": item["text"], "add_special": True}
            assert client.post("/tokenize", json=asked).json()["tokens"] == item["ids"], item["text"]
        vectors = _embed(client, [item["text"] for item in truth])
    for item, vector in zip(truth, vectors, strict=True):
        assert _cosine(item["vector"], vector) > 0.9999, item["text"]


def test_xlm_roberta_can_be_pooled_by_its_first_token() -> None:
    truth = TRUTH["xlm-roberta"]["cls"]
    with serving("xlm-roberta", "--embeddings", "--pooling", "cls") as client:
        vectors = _embed(client, [item["text"] for item in truth])
    for item, vector in zip(truth, vectors, strict=True):
        assert _cosine(item["vector"], vector) > 0.9999, item["text"]


def test_the_rerankers_scores_are_the_classifiers_logits() -> None:
    pairs = TRUTH["xlm-roberta-reranker"]["pairs"]
    with serving("xlm-roberta-reranker", "--rerank") as client:
        asked = {"query": pairs[0]["query"], "documents": [pair["document"] for pair in pairs]}
        answer = client.post("/v1/rerank", json=asked).raise_for_status().json()
    found = {item["index"]: item["relevance_score"] for item in answer["results"]}
    for number, pair in enumerate(pairs):
        assert found[number] == pytest.approx(pair["score"], abs=2e-3), pair["document"]


@pytest.mark.parametrize("name", CHAT)
def test_every_step_has_the_originals_distribution(name: str) -> None:
    truth = TRUTH[name]
    prompt = list(truth["prompt"])
    with serving(name) as client:
        for step in truth["steps"]:
            size = len(step["logprobs"])
            asked = {"prompt": prompt, "n_predict": 1, "n_probs": size, "temperature": 0, "cache_prompt": False}
            answer = client.post("/completion", json=asked).raise_for_status().json()
            found = np.full(size, np.nan)
            for entry in answer["completion_probabilities"][0]["top_logprobs"]:
                found[entry["id"]] = entry["logprob"]
            known = np.isfinite(found)
            assert known.sum() > 0.95 * size
            assert _cosine(np.asarray(step["logprobs"])[known], found[known]) > 0.9999
            assert int(np.nanargmax(found)) == step["token"]
            prompt.append(step["token"])
