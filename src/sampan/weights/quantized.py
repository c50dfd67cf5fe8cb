"""A quantized file as a WeightsInfo of its own, held against what the unquantized model answers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from sampan.spec import codec
from sampan.spec.ports import Progress, Store
from sampan.spec.weights import GoldenSet, WeightsInfo
from sampan.weights.describe import Origin, describe
from sampan.weights.digest import sha256_of
from sampan.weights.gguf_checks import architecture_of
from sampan.weights.gguf_header import read_header
from sampan.weights.golden_gguf import of_gguf
from sampan.weights.reference.tokenizer import NoReferenceError, refusals


def describe_quantized(base: WeightsInfo, gguf: Path, store: Store, progress: Progress) -> WeightsInfo:
    """What ``gguf``, made from ``base``, is; still without a golden set. Raises BadInputError."""
    header = read_header(gguf)
    sha256 = sha256_of(gguf, store, progress)
    info = describe(header, architecture_of(header), Origin(base.name, base.source, base.origin, sha256))
    return replace(
        info,
        context_length=base.context_length,
        normalize=base.normalize,
        query_prefix=base.query_prefix,
        passage_prefix=base.passage_prefix,
        golden_note=base.golden_note,
    )


def with_golden(base: WeightsInfo, made: WeightsInfo, minimum_cosine: float, store: Store) -> WeightsInfo:
    """``made`` with its golden set, both kept in the store.

    Vectors are the unquantized model's, to be kept within ``minimum_cosine``. A chat's greedy text changes with the
    quantization, so it is continued anew by the reference over the file's own numbers.
    """
    original = codec.load(GoldenSet, Path(base.golden_path)) if base.golden_path else None

    def make(folder: Path) -> None:
        golden, note = _golden(original, made, minimum_cosine)
        (folder / "weights.json").write_text(codec.to_json(replace(made, golden_note=note)), encoding="utf-8")
        if golden:
            (folder / "golden.json").write_text(codec.to_json(golden), encoding="utf-8")

    key: dict[str, object] = {"recipe": 1, "quantized": made.sha256, "minimum_cosine": minimum_cosine}
    key |= {"golden": codec.to_json(original) if original else None, "name": made.name}
    folder = store.get_or_make("weights", key, make)
    info = codec.load(WeightsInfo, folder / "weights.json")
    golden = folder / "golden.json"
    return replace(
        info,
        source=made.source,
        path=made.path,
        file_name=made.file_name,
        golden_path=str(golden) if golden.is_file() else None,
    )


def _golden(
    original: GoldenSet | None, made: WeightsInfo, minimum_cosine: float
) -> tuple[GoldenSet | None, str | None]:
    if original is None:
        return None, made.golden_note
    if original.embeddings:
        return replace(original, minimum_cosine=minimum_cosine), None
    path = Path(made.path)
    try:
        with refusals(path):
            return of_gguf(read_header(path), made), None
    except NoReferenceError as reason:
        return None, str(reason.args[0])
