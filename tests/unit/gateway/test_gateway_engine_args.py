from __future__ import annotations

from pathlib import Path

from sampan.gateway.engine_args import engine_argv, engine_environment, flags
from sampan.spec.plan import EngineSettings


def argv(**changes: object) -> tuple[str, ...]:
    values: dict[str, object] = {
        "context": 2048,
        "batch": 1024,
        "ubatch": 512,
        "slots": 4,
        "unified_kv": True,
        "threads": 0,
        "embedding": True,
        "pooling": "mean",
        **changes,
    }
    settings = EngineSettings(**values)  # type: ignore[arg-type]
    return engine_argv(
        Path("/e/llama-server"), Path("/w/m.gguf"), Path("/r/e.sock"), settings, threads=6, alias="mini,lm"
    )


def value(words: tuple[str, ...], flag: str) -> str:
    return words[words.index(flag) + 1]


def test_the_command_of_an_embedding_model() -> None:
    assert argv() == (
        *("/e/llama-server", "--model", "/w/m.gguf", "--alias", "mini_lm", "--host", "/r/e.sock"),
        *("--ctx-size", "2048", "--batch-size", "1024", "--ubatch-size", "512", "--parallel", "4", "--kv-unified"),
        *("--threads", "6", "--threads-batch", "6", "--cache-ram", "0", "--load-mode", "mmap", "--fit", "off"),
        *(
            "--offline",
            "--no-ui",
            "--no-slots",
            "--log-colors",
            "off",
            "--log-verbosity",
            "2",
            "--embeddings",
            "--pooling",
            "mean",
        ),
    )


def test_a_chat_model_is_not_restricted_to_embeddings() -> None:
    words = argv(embedding=False, pooling=None, unified_kv=False, cache_ram_mib=256, load_mode="mmap+mlock")
    assert not {"--embeddings", "--pooling", "--kv-unified"} & set(words)
    assert "--no-kv-unified" in words
    assert value(words, "--cache-ram") == "256"
    assert value(words, "--load-mode") == "mmap+mlock"


def test_flags_are_the_words_that_help_must_know() -> None:
    assert "--ctx-size" in flags(argv())
    assert not [flag for flag in flags(argv()) if not flag.startswith("--")]


def test_the_engine_gets_our_environment_without_what_would_change_it() -> None:
    given = {
        "PATH": "/bin",
        "QEMU_CPU": "cortex-a57",
        "QEMU_PAGESIZE": "65536",
        "LD_LIBRARY_PATH": "/x",
        "LD_PRELOAD": "/y.so",
        "LLAMA_ARG_CTX_SIZE": "64",
        "LLAMA_API_KEY": "k",
        "AIP_MODE": "PREDICTION",
    }
    assert set(engine_environment(given)) == {"PATH", "QEMU_CPU", "QEMU_PAGESIZE"}
