"""What ``onnx.json`` says of the graph beside it: pooling and the like are not in the graph."""

from __future__ import annotations

from pathlib import Path

from sampan.errors import BadInputError
from sampan.spec import codec
from sampan.spec.onnx import OnnxInfo

FACTS = "onnx.json"


def read_facts(graph: Path, size_bytes: int) -> OnnxInfo | None:
    """None where there is no such file, or one of another graph. Raises BadInputError where it is damaged."""
    path = graph.parent / FACTS
    if not path.is_file():
        return None
    try:
        info = codec.load(OnnxInfo, path)
    except BadInputError as error:
        if error.key != "artefact.schema":  # somebody else's file of that name
            raise
        return None
    return info if (info.file_name, info.size_bytes) == (graph.name, size_bytes) else None
