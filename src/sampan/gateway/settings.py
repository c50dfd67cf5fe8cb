"""What ``serve`` and ``create_app`` are told."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from sampan.spec.plan import EngineSettings

EMBEDDING, CHAT, RERANK = "embedding", "chat", "rerank"


@dataclass(frozen=True)
class ServedModel:
    """The one model of this service. ``id`` is what clients name; ``dimensions`` the length of its vectors."""

    id: str
    task: str  # embedding, chat or rerank, as WeightsInfo has it
    dimensions: int | None = None
    created: int = 0  # Unix seconds, for /v1/models; ``serve`` puts its start


@dataclass(frozen=True)
class Limits:
    """What one request may ask. Over it: 413, 400 or 504."""

    body_bytes: int = 8 * 1024 * 1024
    inputs: int = 2048  # texts in one embedding request, as OpenAI has it
    request_seconds: float = 600.0  # without a byte from the engine


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
