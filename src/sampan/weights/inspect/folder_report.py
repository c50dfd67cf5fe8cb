"""A Hugging Face or sentence-transformers folder as a ModelReport: descriptions and tensor headers only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from sampan.errors import BadInputError
from sampan.i18n import text
from sampan.spec.model_report import ModelReport, ReportFile
from sampan.spec.plan import Reason
from sampan.weights.files import inside, member, read_object
from sampan.weights.inspect import support
from sampan.weights.inspect.folder_tokenizer import read_tokenizer, templates_of
from sampan.weights.inspect.links import files_below, refuse_links_out
from sampan.weights.inspect.stored import PICKLES, stored_elements
from sampan.weights.model_card import licence_of, modules_of, pooling_of, prompts_of, sentence_config_of

# Names under which configurations of different classes say the same, the common one first.
_NAMES: dict[str, tuple[str, ...]] = {
    "layers": ("num_hidden_layers", "n_layer", "num_layers", "n_layers"),
    "heads": ("num_attention_heads", "n_head", "n_heads", "num_heads"),
    "kv_heads": ("num_key_value_heads", "num_kv_heads", "multi_query_group_num"),
    "embedding_length": ("hidden_size", "n_embd", "d_model", "dim"),
    "feed_forward_length": ("intermediate_size", "n_inner", "d_ff", "ffn_hidden_size"),
    "context_length": ("max_position_embeddings", "n_positions", "n_ctx", "max_seq_len", "seq_length"),
    "vocabulary": ("vocab_size", "padded_vocab_size"),
}


def report(root: Path, name: str) -> ModelReport:
    """Describe the folder; digests are filled in by the caller. Raises BadInputError."""
    refuse_links_out(root)
    modules = modules_of(root, every=True)
    model = inside(root, modules["Transformer"]) if modules.get("Transformer") else root
    config = _config(model)
    elements = stored_elements(model)
    classes = _classes(config)
    tokenizer = read_tokenizer(model)
    sentence = sentence_config_of(model)
    query, passage = prompts_of(root)
    sizes = {field: _size({**config, **member(config, "text_config")}, names) for field, names in _NAMES.items()}
    longest = sentence.get("max_seq_length")
    files = tuple(ReportFile(str(path.relative_to(root)), path.stat().st_size) for path in files_below(root))
    pooling = _pooling(root, modules)
    return ModelReport(
        path=str(root),
        format="sentence-transformers" if modules else "huggingface",
        name=name,
        files=files,
        size_bytes=sum(file.size_bytes for file in files),
        support=support.of_folder(root, classes, tokenizer.pre, tokenizer.byte_pairs),
        architecture=classes[0] if classes else None,
        task=_task(classes, modules),
        numbers=max(elements, key=lambda kind: elements[kind]) if elements else None,
        parameters=sum(elements.values()),
        tokenizer=tokenizer.kind,
        tokenizer_pre=tokenizer.pre,
        pooling=pooling,
        normalize="Normalize" in modules if modules else None,
        longest_text=longest if type(longest) is int else None,
        query_prefix=query,
        passage_prefix=passage,
        prompts=_prompts(root),
        templates=tuple(templates_of(model)),
        licence=licence_of(root),
        notes=tuple(_notes(root, config)),
        layers=sizes["layers"],
        heads=sizes["heads"],
        kv_heads=sizes["kv_heads"],
        embedding_length=sizes["embedding_length"],
        feed_forward_length=sizes["feed_forward_length"],
        context_length=sizes["context_length"],
        vocabulary=sizes["vocabulary"],
    )


def _config(model: Path) -> dict[str, object]:
    path = model / "config.json"
    if not path.is_file():
        raise BadInputError("weights.no_config", path=str(model))
    return read_object(path)


def _classes(config: Mapping[str, object]) -> tuple[str, ...]:
    names = config.get("architectures")
    return tuple(str(name) for name in names[:8]) if isinstance(names, list) else ()


def _size(config: Mapping[str, object], names: tuple[str, ...]) -> int | None:
    values = (config.get(name) for name in names)
    return next((value for value in values if type(value) is int and value > 0), None)


def _pooling(root: Path, modules: Mapping[str, str]) -> str | None:
    """As the folder says; None where it does not."""
    if "Pooling" not in modules:
        return None
    try:
        return pooling_of(inside(root, modules["Pooling"]))
    except BadInputError as error:
        if error.key != "weights.unsupported":
            raise
        return str(error.values["value"])


def _task(classes: tuple[str, ...], modules: Mapping[str, str]) -> str | None:
    if modules:
        return "embedding"
    if any(name.endswith("ForSequenceClassification") for name in classes):
        return "rerank"
    if any(name.endswith(("ForCausalLM", "LMHeadModel", "ForConditionalGeneration")) for name in classes):
        return "chat"
    return "embedding" if any(name.endswith(("Model", "ForMaskedLM")) for name in classes) else None


def _prompts(root: Path) -> tuple[tuple[str, str], ...]:
    path = root / "config_sentence_transformers.json"
    prompts = member(read_object(path), "prompts") if path.is_file() else {}
    return tuple((key, value) for key, value in prompts.items() if isinstance(value, str) and value)


def _notes(root: Path, config: Mapping[str, object]) -> Iterator[Reason]:
    pickles = sorted(path.name for path in root.rglob("*") if path.suffix in PICKLES)
    if pickles:
        yield Reason("note.pickles", (("files", ", ".join(pickles[:5])),))
    if config.get("auto_map"):
        yield Reason(
            "note.remote_code", (("files", ", ".join(sorted(path.name for path in root.glob("*.py"))) or "-"),)
        )
    method = member(dict(config), "quantization_config").get("quant_method")
    if method:
        yield Reason("note.quantized", (("method", str(method)),))
    if licence_of(root) is None:
        yield Reason("note.no_licence", (("where", text("note.where.card")),))
