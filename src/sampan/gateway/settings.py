"""What ``serve`` and ``create_app`` are told."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from sampan.spec.plan import EngineSettings
from sampan.spec.weights import GoldenSet

EMBEDDING, CHAT, RERANK = "embedding", "chat", "rerank"
MIB = 1 << 20


@dataclass(frozen=True)
class ServedModel:
    """The one model of this service. ``id`` is what clients name; ``dimensions`` the length of its vectors.

    ``tokens`` is the longest input of one text (embedding, rerank) or the context (chat), None where not known.
    ``prompts`` are the model's own prefixes, by ``input_type``. ``cut_dimensions``: it was trained so that a vector's
    beginning is a vector too (Matryoshka).
    """

    id: str
    task: str  # embedding, chat or rerank, as WeightsInfo has it
    dimensions: int | None = None
    created: int = 0  # Unix seconds, for /v1/models; ``serve`` puts its start
    tokens: int | None = None
    prompts: tuple[tuple[str, str], ...] = ()
    normalized: bool = True
    cut_dimensions: bool = False
    release: str = ""


@dataclass(frozen=True)
class Limits:
    """What one request may ask, and how much may wait. Over it: 400, 413, 429 or 504 (docs/gateway.md)."""

    body_bytes: int = 8 * MIB
    bodies_bytes: int = 64 * MIB  # of all requests at a time
    inputs: int = 2048  # texts in one embedding request, as OpenAI has it
    text_bytes: int = MIB  # of one text: it is counted whole before it is refused or cut
    queue_requests: int = 256
    queue_tokens: int = 131_072
    request_seconds: float = 600.0  # the deadline where a client names none; also without a byte from the engine
    restart_seconds: float = 15.0  # what waits for an engine that is being started again waits at most so long
    bulk_inputs: int = 32  # more texts in one request are bulk, unless the client names a lane
    ageing_seconds: float = 2.0  # a bulk text that waited so long more goes before an interactive one
    cache_bytes: int = 0  # vectors of exact texts; 0 is none


@dataclass(frozen=True)
class Watch:
    """When a living engine is taken for lost."""

    hung_seconds: float = 120.0  # with work in it and no answer to any; the probe does not answer either
    memory_bytes: int | None = None  # of the engine's process; over it it is started again, after a drain


@dataclass(frozen=True)
class Files:
    """Files of the operator. All are read at start and on SIGHUP."""

    keys: Path | None = None
    certificate: Path | None = None
    certificate_key: Path | None = None
    audit_log: Path | None = None
    audit_bytes: int = 16 * MIB  # then it is rotated
    audit_files: int = 8


@dataclass(frozen=True)
class ServeSettings:
    """One service.

    ``threads`` is decided by the caller (quota, affinity); ``run_folder`` is where the private folder is made, None
    chooses the place.
    """

    executable: Path
    variant: str
    weights: Path
    model: ServedModel
    engine: EngineSettings
    threads: int
    host: str = "127.0.0.1"
    port: int = 8080
    run_folder: Path | None = None
    start_seconds: float = 600.0
    drain_seconds: float = 30.0
    limits: Limits = field(default_factory=Limits)
    watch: Watch = field(default_factory=Watch)
    files: Files = field(default_factory=Files)
    golden: GoldenSet | None = None
    json_logs: bool = False
    successor: tuple[str, ...] = ()  # the command that SIGUSR2 starts, to take over without a pause; none: it cannot


def longest_input(engine: EngineSettings) -> int:
    """The tokens of the longest text that one pass takes, its start and end included.

    An embedding needs its whole input in one physical batch; without a unified cache each slot has its share of the
    context (llama.cpp, tools/server/server-context.cpp).
    """
    if engine.longest:
        return engine.longest
    slot = engine.context if engine.unified_kv else engine.context // max(1, engine.slots)
    return min(slot, engine.batch, engine.ubatch) if engine.embedding else slot
