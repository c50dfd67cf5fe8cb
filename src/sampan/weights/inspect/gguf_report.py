"""A GGUF, whole or in native shards, as a ModelReport: headers only, whatever the size."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from sampan.errors import BadInputError
from sampan.spec.model_report import ModelReport, ReportFile, ReportTemplate
from sampan.spec.plan import Reason
from sampan.weights.describe import Origin, describe
from sampan.weights.facts import engine_table
from sampan.weights.gguf_header import GgufHeader, read_header
from sampan.weights.inspect import support, template
from sampan.weights.inspect.parts import refuse_raw_parts, shards_of

_TEMPLATE = "tokenizer.chat_template"


def report(path: Path, name: str) -> ModelReport:
    """Describe the model; digests are filled in by the caller. Raises BadInputError."""
    refuse_raw_parts(path)
    shards = shards_of(path)
    headers = [read_header(shard) for shard in shards]
    header = whole(headers)
    architecture = header.fields.get("general.architecture")
    if not isinstance(architecture, str) or not header.tensors:
        return _headless(header, name)
    try:
        info = describe(header, architecture, Origin(name, str(path), "gguf", ""))
    except BadInputError:
        if architecture in engine_table().architectures:
            raise
        return _headless(header, name)  # an architecture may name its sizes as it likes
    return ModelReport(
        path=str(path),
        format="gguf",
        name=name,
        files=tuple(ReportFile(shard.name, shard.stat().st_size) for shard in shards),
        size_bytes=sum(shard.stat().st_size for shard in shards),
        support=support.of_gguf(header),
        architecture=architecture,
        task=info.task,
        numbers=info.quantization,
        parameters=info.parameters,
        layers=info.layers,
        heads=info.heads,
        kv_heads=info.kv_heads,
        embedding_length=info.embedding_length,
        feed_forward_length=info.feed_forward_length or None,
        context_length=info.context_length,
        vocabulary=info.vocabulary,
        tokenizer=info.tokenizer,
        tokenizer_pre=info.tokenizer_pre,
        pooling=info.pooling,
        templates=tuple(templates_of(header)),
        licence=info.licence,
        made_by=_word(header, "general.quantized_by") or _word(header, "general.author"),
        notes=tuple(_notes(headers)),
    )


def templates_of(header: GgufHeader) -> Iterator[ReportTemplate]:
    """The chat templates of the header, the default one first."""
    for key, value in sorted(header.fields.items()):
        if isinstance(value, str) and (key == _TEMPLATE or key.startswith(f"{_TEMPLATE}.")):
            yield template.examine(key.removeprefix(_TEMPLATE).lstrip(".") or "default", key, value)


def refuse_hostile(header: GgufHeader) -> None:
    """Raise BadInputError where a chat template holds what only an attack needs."""
    template.refuse_hostile(header.path, templates_of(header))


def whole(headers: list[GgufHeader]) -> GgufHeader:
    """One header for all shards: the first has the metadata, each has its own tensors. Raises BadInputError."""
    first = headers[0]
    if len(headers) == 1:
        return first
    stated = first.fields.get("split.count")
    if stated != len(headers):
        raise BadInputError("weights.shards_differ", path=str(first.path), count=len(headers), stated=str(stated))
    tensors = tuple(tensor for header in headers for tensor in header.tensors)
    total = first.fields.get("split.tensors.count")
    if isinstance(total, int) and total != len(tensors):
        raise BadInputError("weights.shards_differ", path=str(first.path), count=len(tensors), stated=str(total))
    return replace(first, tensors=tensors, size_bytes=sum(header.size_bytes for header in headers))


def _headless(header: GgufHeader, name: str) -> ModelReport:
    """A GGUF without a model of its own in it: a vocabulary, an adapter, a projector."""
    size = header.size_bytes
    return ModelReport(
        path=str(header.path),
        format="gguf",
        name=name,
        files=(ReportFile(header.path.name, size),),
        size_bytes=size,
        support=support.of_gguf(header),
        notes=(Reason("note.no_model"),),
    )


def _notes(headers: list[GgufHeader]) -> Iterator[Reason]:
    if len(headers) > 1:
        yield Reason("note.shards", (("count", str(len(headers))),))
    if headers[0].fields.get("general.type", "model") != "model":
        yield Reason("note.type", (("type", str(headers[0].fields["general.type"])),))


def _word(header: GgufHeader, key: str) -> str | None:
    value = header.fields.get(key)
    return value if isinstance(value, str) else None
