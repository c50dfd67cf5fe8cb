"""``sampan weights quantize``: several types of one model, each measured by the real engine, and a choice."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from sampan.errors import IncompatibleError, UsageError
from sampan.flow import gate_engine
from sampan.flow.engine_tools import QUANTIZE, engine_tool
from sampan.flow.tools import Tools
from sampan.spec.gate import GateBounds, GateReport, GateRow
from sampan.spec.weights import WeightsInfo

_REQUANTIZED = "F16"  # what a quantized file is unpacked to, to be a base


@dataclass(frozen=True)
class Base:
    """What all types are made from and compared with. ``original``: never quantized before."""

    info: WeightsInfo
    original: bool


@dataclass(frozen=True)
class Quantized:
    """The report, and the chosen type as a stage's value; None where no type passes."""

    report: GateReport
    chosen: WeightsInfo | None


def base_of(source: str, tools: Tools, *, from_quantized: bool = False) -> Base:
    """The unquantized model. Raises UsageError ``gate.quantized`` for a quantized file without permission."""
    from sampan.flow.importing import ORIGINAL, import_model
    from sampan.weights.quantizer import UNQUANTIZED

    info = import_model(source, ORIGINAL, tools)
    if info.quantization in UNQUANTIZED:
        return Base(info, original=True)
    if not from_quantized:
        raise UsageError("gate.quantized", path=info.path, found=info.quantization)
    path, _ = _quantized_file(info, _REQUANTIZED, tools, requantize=True)
    return Base(_described(info, path, tools), original=False)


def make(base: Base, kind: str, tools: Tools) -> WeightsInfo:
    """One type, without its golden set."""
    if kind == base.info.quantization:
        return base.info
    path, _ = _quantized_file(base.info, kind, tools)
    return _described(base.info, path, tools)


def only(source: str, kind: str, tools: Tools) -> WeightsInfo:
    """One type with its golden set, measured by that alone. Raises UsageError ``gate.type`` for an unknown type."""
    from sampan.flow.gate_embeddings import worst_golden
    from sampan.weights.gate.facts import parse_types

    (wanted, *_) = parse_types(kind)
    base = base_of(source, tools)
    made = make(base, wanted, tools)
    return _finished(base, made, worst_golden(base.info, made, tools), tools)


def quantize(
    source: str,
    kinds: Sequence[str],
    bounds: GateBounds,
    tools: Tools,
    *,
    texts: Sequence[str] = (),
    from_quantized: bool = False,
) -> Quantized:
    """Make and measure every type. ``texts``: the user's own, beside the built-in ones.

    Raises UsageError, BadInputError, BuildError, FilesystemError, IncompatibleError ``gate.task``.
    """
    from sampan.weights.gate import verdict

    base = base_of(source, tools, from_quantized=from_quantized)
    if base.info.task not in ("embedding", "chat"):
        raise IncompatibleError("gate.task", path=base.info.path, task=base.info.task)
    files = {kind: make(base, kind, tools) for kind in dict.fromkeys((*kinds, base.info.quantization))}
    rows = _measured(base, files, texts, tools)
    judged = verdict.judged(rows, bounds)
    best = verdict.choose([row for row in judged if row.quantization in kinds])
    chosen = None if best is None else _finished(base, files[best.quantization], best.cosine_min, tools)
    report = GateReport(
        model=base.info.name,
        source=source,
        task=base.info.task,
        base=base.info.quantization,
        base_is_original=base.original,
        engine=_engine_name(),
        texts=len(_all_texts(texts)),
        bounds=bounds,
        rows=judged,
        chosen=best.quantization if best else None,
        speed_unit="texts/s" if base.info.task == "embedding" else "tokens/s",
        threads=gate_engine.threads(),
    )
    return Quantized(report, chosen)


def _measured(base: Base, files: dict[str, WeightsInfo], texts: Sequence[str], tools: Tools) -> list[GateRow]:
    if base.info.task == "embedding":
        from sampan.flow.gate_embeddings import measure
    else:
        from sampan.flow.gate_chats import measure
    fallbacks = {kind: _fallbacks(info) for kind, info in files.items()}
    return [replace(row, fallbacks=fallbacks[row.quantization]) for row in measure(base.info, files, texts, tools)]


def _finished(base: Base, made: WeightsInfo, measured: float | None, tools: Tools) -> WeightsInfo:
    from sampan.weights.gate.facts import tolerance
    from sampan.weights.quantized import with_golden

    least = tolerance().of(made.quantization, measured)
    return with_golden(base.info, made, least, tools.store)


def _described(base: WeightsInfo, path: Path, tools: Tools) -> WeightsInfo:
    from sampan.weights.quantized import describe_quantized

    return describe_quantized(base, path, tools.store, tools.progress)


def _quantized_file(info: WeightsInfo, kind: str, tools: Tools, *, requantize: bool = False) -> tuple[Path, int]:
    """The file in the store, made once for its content, and its number of fallbacks."""
    from sampan.weights.importing import file_stem
    from sampan.weights.quantizer import Quantizer, key_of

    tool = engine_tool(QUANTIZE, tools)
    name = f"{file_stem(info.name)}-{kind}.gguf"

    def write(folder: Path) -> None:
        quantizer = Quantizer(tool, tools.runner, gate_engine.threads())
        fallen = quantizer.write(Path(info.path), kind, folder / name, tools.progress, requantize=requantize)
        (folder / "note.json").write_text(json.dumps({"fallbacks": fallen}), encoding="utf-8")

    key = key_of(info.sha256, kind, {"name": tool.parent.name, "as": name})
    made = tools.store.get_or_make("quantized", key, write)
    return made / name, int(json.loads((made / "note.json").read_text(encoding="utf-8"))["fallbacks"])


def _fallbacks(info: WeightsInfo) -> int:
    note = Path(info.path).parent / "note.json"
    return int(json.loads(note.read_text(encoding="utf-8"))["fallbacks"]) if note.is_file() else 0


def _engine_name() -> str:
    from sampan.build.pins import engine_pin

    return f"{engine_pin().name} {engine_pin().version}"


def _all_texts(own: Sequence[str]) -> tuple[str, ...]:
    from sampan.weights.gate.facts import built_in_texts

    return tuple(dict.fromkeys((*built_in_texts(), *own)))
