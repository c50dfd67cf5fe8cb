"""What the user may decide instead of the plan."""

from __future__ import annotations

from dataclasses import dataclass

# What makes sense at all, far from any real limit: beyond it a number is a slip of the pen.
SLOTS_MOST = 256  # llama-server's own bound of --parallel (LLAMA_MAX_SEQ, llama-cparams.h)
CORES_MOST = 4096
MEMORY_LEAST = 16 << 20  # bytes
MEMORY_MOST = 64 << 40
KV_TYPES = ("f16", "q8_0", "q4_0")
RELEASE_MOST = 2**31 - 1


@dataclass(frozen=True)
class PlanOptions:
    """All optional; None means: the plan decides.

    ``memory_bytes`` is what the service may use; ``cores`` the CPUs it may use; ``concurrency`` texts or
    conversations at once; ``max_tokens`` the longest text (embedding) or conversation (chat: prompt and answer) to
    promise; ``model_id`` the id that the API answers to; ``kv_type`` f16, q8_0 or q4_0; ``lock`` keeps the weights in
    RAM; ``load_mode`` is the engine's own word, where it must be a certain one.
    """

    name: str | None = None
    release: int = 1
    memory_bytes: int | None = None
    cores: int | None = None
    concurrency: int | None = None
    max_tokens: int | None = None
    port: int = 8080
    model_id: str | None = None
    kv_type: str | None = None
    lock: bool = False
    load_mode: str | None = None
