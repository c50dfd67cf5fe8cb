"""ONNX and Paddle models as a ModelReport. The engine of this version loads neither."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from sampan.spec.model_report import ModelReport, ReportFile
from sampan.spec.onnx import OnnxInfo
from sampan.spec.plan import Reason
from sampan.weights.inspect import support
from sampan.weights.inspect.locate import Found
from sampan.weights.inspect.onnx_facts import read_facts
from sampan.weights.inspect.onnx_file import read_onnx
from sampan.weights.inspect.paddle_files import read_paddle

_COUNTED = (
    "FLOAT",
    "FLOAT16",
    "BFLOAT16",
    "DOUBLE",
    "INT8",
    "UINT8",
    "INT4",
    "UINT4",
    "FP32",
    "FP16",
    "BF16",
    "FP64",
)


def report(found: Found, name: str) -> ModelReport:
    """Describe the graph; digests are filled in by the caller. Raises BadInputError."""
    return _onnx(found.path, name) if found.kind == "onnx" else _paddle(found.path, name)


def _onnx(path: Path, name: str) -> ModelReport:
    model = read_onnx(path)
    opset = ", ".join(f"{domain or 'ai.onnx'} {version}" for domain, version in sorted(model.opsets.items()))
    notes = [Reason("note.opset", (("opset", opset),)), _operators(model.operators)]
    files = _files(path, [path.parent / each for each in sorted(model.external)])
    size = sum(file.size_bytes for file in files)
    report = ModelReport(
        path=str(path),
        format="onnx",
        name=name,
        files=files,
        size_bytes=size,
        support=support.other("onnx"),
        numbers=_numbers(model.elements),
        parameters=_parameters(model.elements),
        licence=model.metadata.get("license") or model.metadata.get("licence"),
        inputs=tuple(model.inputs),
        outputs=tuple(model.outputs),
        made_by=model.producer or None,
        notes=tuple(notes),
    )
    facts = read_facts(path, size)
    return _with_facts(report, facts) if facts else report


def _with_facts(report: ModelReport, facts: OnnxInfo) -> ModelReport:
    """What the import wrote beside the graph."""
    cosine = Reason("note.onnx_checked", (("cosine", f"{facts.cosine:.6f}"), ("by", facts.checked_by)))
    return replace(
        report,
        name=facts.name,
        architecture=facts.architecture,
        task="embedding",
        layers=facts.layers,
        heads=facts.heads,
        embedding_length=facts.embedding_length,
        feed_forward_length=facts.feed_forward_length,
        context_length=facts.context_length,
        longest_text=facts.longest_text,
        vocabulary=facts.vocabulary,
        tokenizer=facts.tokenizer,
        pooling=facts.pooling,
        normalize=facts.normalize,
        query_prefix=facts.query_prefix,
        passage_prefix=facts.passage_prefix,
        licence=facts.licence,
        notes=(*report.notes, cosine),
    )


def _paddle(path: Path, name: str) -> ModelReport:
    params = path.with_suffix(".pdiparams")
    beside = [params] if params.is_file() else []
    model = read_paddle(path, params if beside else None)
    files = _files(path, beside)
    return ModelReport(
        path=str(path),
        format="paddle",
        name=name if name != "inference" else path.parent.name,
        files=files,
        size_bytes=sum(file.size_bytes for file in files),
        support=support.other("paddle"),
        numbers=_numbers(model.elements),
        parameters=_parameters(model.elements),
        inputs=tuple(model.inputs),
        outputs=tuple(model.outputs),
        made_by=f"Paddle {model.version}",
        notes=(_operators(model.operators),),
    )


def _files(path: Path, others: list[Path]) -> tuple[ReportFile, ...]:
    return tuple(ReportFile(str(each.relative_to(path.parent)), each.stat().st_size) for each in (path, *others))


def _operators(counts: dict[str, int]) -> Reason:
    most = sorted(counts, key=lambda name: -counts[name])[:5]
    shown = ", ".join(f"{name} {counts[name]}" for name in most)
    return Reason("note.operators", (("count", str(sum(counts.values()))), ("most", shown)))


def _numbers(elements: dict[str, int]) -> str | None:
    return max(elements, key=lambda kind: elements[kind]) if elements else None


def _parameters(elements: dict[str, int]) -> int:
    return sum(count for kind, count in elements.items() if kind in _COUNTED)
