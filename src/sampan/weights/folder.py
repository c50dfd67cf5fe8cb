"""A model folder as the hub and sentence-transformers write it: which model it is, and whether we can import it.

What the engine computes for architecture ``bert`` is fixed (absolute positions, GELU, token type 0), so whatever a
folder asks for beyond that is refused by name instead of giving wrong vectors.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sampan.errors import BadInputError
from sampan.weights.files import inside, integer, member, read_object
from sampan.weights.model_card import licence_of, modules_of, pooling_of, prompts_of, sentence_config_of

_CLASSES = {  # class name in config.json -> is it XLM-R
    "BertModel": False,
    "BertForMaskedLM": False,  # encoder with a head that no embedding needs
    "XLMRobertaModel": True,
    "XLMRobertaForMaskedLM": True,
}
_GELU = frozenset({"gelu", "gelu_new", "gelu_fast", "gelu_pytorch_tanh"})


@dataclass(frozen=True)
class ModelFolder:
    """One encoder of the BERT class. Lengths in tokens; ``positions`` is what the table holds for text.

    ``root`` is the folder that was given, ``model`` the one with config.json and the tensors (they differ in nested
    sentence-transformers layouts). ``pad_token_id`` is XLM-R's offset of positions less one, None for BERT.
    """

    root: Path
    model: Path
    sentence_transformers: bool
    vocabulary: int
    width: int
    layers: int
    heads: int
    feed_forward: int
    positions: int
    token_types: int
    epsilon: float
    pad_token_id: int | None
    pooling: str
    normalize: bool
    longest_text: int | None
    lowercase: bool
    licence: str | None
    query_prefix: str
    passage_prefix: str

    @property
    def position_offset(self) -> int:
        """Rows of the position table before the first that a text uses."""
        return 0 if self.pad_token_id is None else self.pad_token_id + 1


def read_folder(root: Path) -> ModelFolder:
    """Read and check the folder's descriptions. Raises BadInputError."""
    modules = modules_of(root)
    model = inside(root, modules["Transformer"]) if modules.get("Transformer") else root
    path = model / "config.json"
    if not path.is_file():
        raise BadInputError("weights.no_config", path=str(model))
    config = read_object(path)
    pad = _pad_token_id(config, path) if _is_xlm_roberta(config, path) else None
    sentence = sentence_config_of(model)
    query, passage = prompts_of(root)
    _require_supported(config, path)
    return ModelFolder(
        root=root,
        model=model,
        sentence_transformers=bool(modules),
        vocabulary=integer(config, "vocab_size", path),
        width=integer(config, "hidden_size", path),
        layers=integer(config, "num_hidden_layers", path, largest=512),
        heads=integer(config, "num_attention_heads", path),
        feed_forward=integer(config, "intermediate_size", path),
        positions=_positions(config, pad, path),
        token_types=integer(config, "type_vocab_size", path),
        epsilon=_epsilon(config, path),
        pad_token_id=pad,
        pooling=pooling_of(inside(root, modules["Pooling"])) if "Pooling" in modules else "mean",
        normalize="Normalize" in modules or not modules,
        longest_text=integer(sentence, "max_seq_length", model) if sentence.get("max_seq_length") else None,
        lowercase=sentence.get("do_lower_case") is True,
        licence=licence_of(root),
        query_prefix=query,
        passage_prefix=passage,
    )


def _is_xlm_roberta(config: dict[str, object], path: Path) -> bool:
    names = config.get("architectures")
    name = names[0] if isinstance(names, list) and names else config.get("model_type")
    if isinstance(name, str) and name in _CLASSES:
        return _CLASSES[str(name)]
    raise BadInputError("weights.class", path=str(path), found=str(name), supported=", ".join(_CLASSES))


def _require_supported(config: dict[str, object], path: Path) -> None:
    positions = config.get("position_embedding_type", "absolute")
    method = member(config, "quantization_config").get("quant_method")
    for what, value, sound in (
        ("hidden_act", config.get("hidden_act", "gelu"), str(config.get("hidden_act", "gelu")) in _GELU),
        ("quantization_config", method, method is None),
        ("position_embedding_type", positions, positions == "absolute"),
        (
            "is_decoder",
            config.get("is_decoder"),
            config.get("is_decoder") is None or config.get("is_decoder") is False,
        ),
    ):
        if not sound:
            raise BadInputError("weights.unsupported", path=str(path), what=what, value=str(value))
    width, heads = integer(config, "hidden_size", path), integer(config, "num_attention_heads", path)
    if width % heads:
        raise BadInputError("weights.config", path=str(path), detail=f"hidden_size {width} / heads {heads}")


def _pad_token_id(config: dict[str, object], path: Path) -> int:
    value = config.get("pad_token_id", 1)  # 1: the class's own default
    if type(value) is not int or not 0 <= value < 1 << 20:
        raise BadInputError("weights.config", path=str(path), detail=f"pad_token_id = {value!r}")
    return value


def _positions(config: dict[str, object], pad: int | None, path: Path) -> int:
    positions = integer(config, "max_position_embeddings", path)
    usable = positions if pad is None else positions - pad - 1
    if usable < 1:
        raise BadInputError("weights.config", path=str(path), detail=f"max_position_embeddings = {positions}")
    return usable


def _epsilon(config: dict[str, object], path: Path) -> float:
    value = config.get("layer_norm_eps", 1e-12)
    if not isinstance(value, int | float) or not 0 < value < 1:
        raise BadInputError("weights.config", path=str(path), detail=f"layer_norm_eps = {value!r}")
    return float(value)
