"""The gate's figures of embedding models: vectors by the engine, compared."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from sampan.flow import gate_engine
from sampan.flow.engine_tools import SERVER, engine_tool
from sampan.flow.gate_engine import Answered
from sampan.flow.tools import Tools
from sampan.spec.gate import GateRow
from sampan.spec.weights import GoldenSet, WeightsInfo


def measure(base: WeightsInfo, files: Mapping[str, WeightsInfo], own: Sequence[str], tools: Tools) -> list[GateRow]:
    """One row a file; of the built-in texts and the user's own the worse counts."""
    from sampan.weights.gate.facts import built_in_texts
    from sampan.weights.gate.measures import likeness

    sets = [texts for texts in (built_in_texts(), tuple(own)) if texts]
    truth = [_answered(base, texts, tools) for texts in sets]
    rows = []
    for kind, info in files.items():
        answers = [_answered(info, texts, tools) for texts in sets]
        found = [likeness(one.vectors, two.vectors) for one, two in zip(truth, answers, strict=True)]
        worst = found[0].worse(found[-1])
        rows.append(
            GateRow(
                kind,
                info.path,
                info.sha256,
                info.size_bytes,
                cosine_min=worst.cosine_min,
                cosine_mean=worst.cosine_mean,
                overlap=worst.overlap,
                spearman=worst.spearman,
                speed=answers[0].speed,
            )
        )
    return rows


def worst_golden(base: WeightsInfo, made: WeightsInfo, tools: Tools) -> float | None:
    """The least cosine of ``made``'s vectors with the golden ones, None where there are none."""
    import numpy as np

    from sampan.spec.codec import load
    from sampan.weights.gate.measures import likeness

    if base.golden_path is None or base.task != "embedding":
        return None
    golden = load(GoldenSet, Path(base.golden_path)).embeddings
    plain = replace(made, query_prefix="")  # golden texts are asked as they are
    vectors = _answered(plain, [item.text for item in golden], tools).vectors
    return likeness(np.asarray([item.vector for item in golden], dtype=np.float32), vectors).cosine_min


def _answered(info: WeightsInfo, texts: Sequence[str], tools: Tools) -> Answered:
    """The engine's vectors, asked once for each content of file, texts and engine."""
    import numpy as np

    server = engine_tool(SERVER, tools)

    def make(folder: Path) -> None:
        answered = gate_engine.embed(server, info, texts, tools.progress)
        np.save(folder / "vectors.npy", answered.vectors)
        (folder / "speed.json").write_text(json.dumps(answered.speed), encoding="utf-8")

    digest = hashlib.sha256("\0".join(texts).encode()).hexdigest()
    key: dict[str, object] = {"recipe": 1, "file": info.sha256, "texts": digest, "engine": server.parent.name}
    key |= {"prefix": info.query_prefix, "pooling": info.pooling, "threads": gate_engine.threads()}
    made = tools.store.get_or_make("gate-vectors", key, make)
    speed = float(json.loads((made / "speed.json").read_text(encoding="utf-8")))
    return Answered(np.load(made / "vectors.npy"), speed)
