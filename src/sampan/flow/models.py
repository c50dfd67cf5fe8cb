"""Looking at models and fetching them: the stage ``weights`` joined with the edge."""

from __future__ import annotations

from pathlib import Path

from sampan.flow.tools import Tools
from sampan.spec.model_report import ModelReport


def inspect(source: str, tools: Tools, *, hash_all: bool = False) -> ModelReport:
    """A path, or a source that is fetched first. Raises SampanError of the kind that fits."""
    from sampan.weights.inspect.inspect import inspect as run

    return run(Path(source), hash_all=hash_all, store=tools.store, progress=tools.progress)
