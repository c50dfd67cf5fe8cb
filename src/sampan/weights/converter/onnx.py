"""An encoder's folder as ONNX, made and checked in the converter's own environment."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from sampan.errors import BuildError, VerificationError
from sampan.i18n import text
from sampan.spec import codec
from sampan.spec.onnx import OnnxInfo
from sampan.spec.ports import Progress, Runner, Store
from sampan.spec.weights import GoldenSet
from sampan.weights.converter.run import QUIET, reason
from sampan.weights.digest import sha256_of
from sampan.weights.folder import ModelFolder
from sampan.weights.inspect.onnx_facts import FACTS

GOLDEN, TOKENIZER, GRAPH = "golden.json", "tokenizer.json", "model.onnx"
MINIMUM_COSINE = 0.9999
OPSET = 17
_LARGEST = 1_900_000_000  # bytes; Protocol Buffers end at 2 GiB


@dataclass(frozen=True)
class Export:
    """One export: ``links`` is what the script may read of the folder, ``out`` where all goes."""

    folder: ModelFolder
    links: Path
    name: str
    golden: GoldenSet
    out: Path


@dataclass(frozen=True)
class Exporter:
    """The isolated Python and our script of the export. ``largest``: bytes of numbers inside the graph."""

    python: Path
    script: Path
    runner: Runner
    store: Store
    largest: int = _LARGEST

    def export(self, job: Export, progress: Progress) -> OnnxInfo:
        """Write graph, tokenizer, golden set and facts.

        Raises BuildError ``import.onnx``, VerificationError ``import.onnx_differs`` where ONNX Runtime's vectors are
        not the reference's.
        """
        with progress.task(text("import.step.onnx", name=job.name)):
            reply = self._run(job)
        cosine = worst(reply["vectors"], job.golden)
        if not cosine >= MINIMUM_COSINE:  # NaN is refused, too
            raise VerificationError(
                "import.onnx_differs", path=job.name, cosine=f"{cosine:.5f}", least=MINIMUM_COSINE
            )
        info = replace(_described(job, reply, cosine), sha256=sha256_of(job.out / GRAPH, self.store, progress))
        (job.out / GOLDEN).write_text(codec.to_json(job.golden), encoding="utf-8")
        (job.out / FACTS).write_text(codec.to_json(info), encoding="utf-8")
        return info

    def _run(self, job: Export) -> dict[str, Any]:
        asked, answered = job.out / "request.json", job.out / "reply.json"
        request = {"folder": str(job.links), "out": str(job.out), "pooling": job.folder.pooling, "opset": OPSET}
        request |= {"texts": [item.text for item in job.golden.embeddings], "largest": self.largest}
        asked.write_text(json.dumps(request, ensure_ascii=False), encoding="utf-8")
        argv = [str(self.python), str(self.script), str(asked), str(answered)]
        done = self.runner.run(argv, cwd=job.out, env=QUIET)
        if done.returncode != 0 or not answered.is_file():
            detail = reason(done.output) or f"exit {done.returncode}"
            raise BuildError("import.onnx", path=str(job.folder.root), detail=detail)
        reply: dict[str, Any] = json.loads(answered.read_text(encoding="utf-8"))
        asked.unlink()
        answered.unlink()
        return reply


def worst(vectors: list[list[float]], golden: GoldenSet) -> float:
    """The least cosine of the vectors with the golden ones; NaN where one has a NaN."""
    found, truth = np.asarray(vectors), np.asarray([item.vector for item in golden.embeddings])
    lengths = np.linalg.norm(found, axis=1) * np.linalg.norm(truth, axis=1)
    return float(np.min((found * truth).sum(axis=1) / lengths))


def _described(job: Export, reply: dict[str, Any], cosine: float) -> OnnxInfo:
    folder = job.folder
    external = tuple(sorted(path.name for path in job.out.glob(f"{GRAPH}.*")))
    return OnnxInfo(
        name=job.name,
        source=str(folder.root),
        file_name=GRAPH,
        external=external,
        tokenizer=TOKENIZER,
        golden=GOLDEN,
        sha256="",
        size_bytes=sum((job.out / each).stat().st_size for each in (GRAPH, *external)),
        opset=OPSET,
        inputs=tuple(reply["inputs"]),
        output=reply["output"],
        architecture=reply["architecture"],
        embedding_length=folder.width,
        layers=folder.layers,
        heads=folder.heads,
        feed_forward_length=folder.feed_forward,
        context_length=folder.positions,
        longest_text=min(folder.positions, folder.longest_text or folder.positions),
        vocabulary=folder.vocabulary,
        pad_token=reply["pad_token"] or 0,
        pooling=folder.pooling,
        normalize=folder.normalize,
        query_prefix=folder.query_prefix,
        passage_prefix=folder.passage_prefix,
        licence=folder.licence,
        checked_by=reply["checked_by"],
        cosine=round(cosine, 7),
    )
