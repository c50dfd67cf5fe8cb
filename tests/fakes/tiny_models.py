"""Real models, only tiny: random weights from a frozen generator, so that the truth beside them stays true."""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt
from gguf import GGUFValueType, GGUFWriter, TokenType
from safetensors.numpy import save_file

Array = npt.NDArray[np.float32]

WIDTH, LAYERS, HEADS, INNER, POSITIONS = 32, 2, 4, 48, 40
WORDS = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "[MASK]",
    "the",
    "boat",
    "carries",
    "cargo",
    "to",
    "other",
    "shore",
    "##s",
    "##ing",
    "今",
    "天",
    ".",
    "!",
    ",",
    "a",
    "b",
    "c",
    "1",
    "2",
    "3",
    "##1",
    "##2",
    "cafe",
]
PIECES = [("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0)] + [
    (piece, -1.0 - 0.1 * rank)
    for rank, piece in enumerate(
        [
            "▁the",
            "▁boat",
            "s",
            "▁",
            "b",
            "o",
            "a",
            "t",
            "e",
            "h",
            "ca",
            "rr",
            "ies",
            "▁cargo",
            "今天",
            "今",
            "天",
            ".",
            "!",
            "1",
            "2",
            "3",
        ]
    )
]
HARMLESS_CHARSMAP = struct.pack("<I", 1024) + bytes(1024 + 1)  # an array whose every step leads nowhere


class Numbers:
    """Random tensors; RandomState's stream is frozen by numpy's own promise."""

    def __init__(self, seed: int) -> None:
        self._state = np.random.RandomState(seed)

    def tensor(self, *shape: int, scale: float = 0.3, around: float = 0.0) -> Array:
        return (around + scale * self._state.standard_normal(shape)).astype(np.float32)


def bert_tensors(vocabulary: int, positions: int, numbers: Numbers) -> dict[str, Array]:
    """A BERT encoder under the names of the transformers library."""
    tensors = {
        "embeddings.word_embeddings.weight": numbers.tensor(vocabulary, WIDTH),
        "embeddings.position_embeddings.weight": numbers.tensor(positions, WIDTH),
        "embeddings.token_type_embeddings.weight": numbers.tensor(2, WIDTH),
    }
    for name in ["embeddings.LayerNorm", *_per_layer("attention.output.LayerNorm", "output.LayerNorm")]:
        tensors[f"{name}.weight"] = numbers.tensor(WIDTH, scale=0.1, around=1.0)
        tensors[f"{name}.bias"] = numbers.tensor(WIDTH, scale=0.1)
    matrices = {
        "attention.self.query": (WIDTH, WIDTH),
        "attention.self.key": (WIDTH, WIDTH),
        "attention.self.value": (WIDTH, WIDTH),
        "attention.output.dense": (WIDTH, WIDTH),
        "intermediate.dense": (INNER, WIDTH),
        "output.dense": (WIDTH, INNER),
    }
    for name, shape in matrices.items():
        for full in _per_layer(name):
            tensors[f"{full}.weight"] = numbers.tensor(*shape)
            tensors[f"{full}.bias"] = numbers.tensor(shape[0], scale=0.1)
    return tensors


def _per_layer(*names: str) -> list[str]:
    return [f"encoder.layer.{layer}.{name}" for layer in range(LAYERS) for name in names]


def bert_config(**changes: object) -> dict[str, object]:
    return {
        "architectures": ["BertModel"],
        "model_type": "bert",
        "hidden_act": "gelu",
        "hidden_size": WIDTH,
        "intermediate_size": INNER,
        "layer_norm_eps": 1e-12,
        "max_position_embeddings": POSITIONS,
        "num_attention_heads": HEADS,
        "num_hidden_layers": LAYERS,
        "pad_token_id": 0,
        "type_vocab_size": 2,
        "vocab_size": len(WORDS) + 2,  # two ids without a token
        **changes,
    }


def word_piece_tokenizer() -> dict[str, object]:
    ids = {word: number for number, word in enumerate(WORDS)}
    return {
        "version": "1.0",
        "truncation": {"direction": "Right", "max_length": 4, "strategy": "LongestFirst", "stride": 0},
        "padding": None,
        "added_tokens": [_added(word, ids[word]) for word in WORDS[:5]],
        "normalizer": {
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": True,
            "strip_accents": None,
            "lowercase": True,
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": _enclosing("[CLS]", "[SEP]", ids),
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {
            "type": "WordPiece",
            "unk_token": "[UNK]",
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": ids,
        },
    }


def unigram_tokenizer() -> dict[str, object]:
    ids = {piece: number for number, (piece, _) in enumerate(PIECES)} | {"<mask>": len(PIECES)}
    charsmap = base64.b64encode(HARMLESS_CHARSMAP).decode()
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [_added(piece, ids[piece]) for piece in ("<s>", "<pad>", "</s>", "<unk>", "<mask>")],
        "normalizer": {"type": "Precompiled", "precompiled_charsmap": charsmap},
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [
                {"type": "WhitespaceSplit"},
                {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True},
            ],
        },
        "post_processor": _enclosing("<s>", "</s>", ids),
        "decoder": None,
        "model": {"type": "Unigram", "unk_id": 3, "vocab": [list(piece) for piece in PIECES]},
    }


def _added(content: str, number: int) -> dict[str, object]:
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    return {"id": number, "content": content, "special": True, **flags}


def _enclosing(first: str, last: str, ids: Mapping[str, int]) -> dict[str, object]:
    def special(token: str) -> dict[str, object]:
        return {"SpecialToken": {"id": token, "type_id": 0}}

    return {
        "type": "TemplateProcessing",
        "single": [special(first), {"Sequence": {"id": "A", "type_id": 0}}, special(last)],
        "pair": [special(first), {"Sequence": {"id": "A", "type_id": 0}}, special(last)],
        "special_tokens": {t: {"id": t, "ids": [ids[t]], "tokens": [t]} for t in (first, last)},
    }


def write_json(path: Path, data: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(data, ensure_ascii=False), encoding="utf-8")


def write_sentence_transformers(root: Path, pooling: str = "mean_tokens", model: str = "") -> None:
    """modules.json and what it names; ``model`` is the folder of the encoder below ``root``."""
    kinds = ("Transformer", model), ("Pooling", "1_Pooling"), ("Normalize", "2_Normalize")
    write_json(
        root / "modules.json",
        [
            {"idx": i, "path": path, "type": f"sentence_transformers.models.{kind}"}
            for i, (kind, path) in enumerate(kinds)
        ],
    )
    modes = ("cls_token", "mean_tokens", "max_tokens", "lasttoken")
    write_json(root / "1_Pooling" / "config.json", {f"pooling_mode_{mode}": mode == pooling for mode in modes})


def bert_folder(root: Path, change: Callable[[dict[str, Array]], object] | None = None, **config: object) -> Path:
    """A sentence-transformers folder with a tiny BERT; ``change`` may edit its tensors."""
    tensors = bert_tensors(len(WORDS) + 2, POSITIONS, Numbers(7))
    if change:
        change(tensors)
    write_json(root / "config.json", bert_config(**config))
    write_json(root / "tokenizer.json", word_piece_tokenizer())
    write_json(root / "sentence_bert_config.json", {"max_seq_length": 24, "do_lower_case": False})
    write_sentence_transformers(root)
    (root / "README.md").write_text("---\nlanguage: en\nlicense: apache-2.0\n---\n# tiny\n", encoding="utf-8")
    save_file(tensors, root / "model.safetensors")
    return root


def xlm_roberta_folder(root: Path) -> Path:
    """A plain Hugging Face folder with a tiny XLM-R, as `XLMRobertaForMaskedLM` saves it."""
    vocabulary = len(PIECES) + 3
    tensors = bert_tensors(vocabulary, POSITIONS + 2, Numbers(11))
    config = bert_config(
        architectures=["XLMRobertaForMaskedLM"],
        model_type="xlm-roberta",
        pad_token_id=1,
        max_position_embeddings=POSITIONS + 2,
        vocab_size=vocabulary,
        layer_norm_eps=1e-5,
    )
    write_json(root / "config.json", config)
    write_json(root / "tokenizer.json", unigram_tokenizer())
    named = {f"roberta.{name}": tensor for name, tensor in tensors.items()}
    save_file(named | {"lm_head.bias": np.zeros(vocabulary, np.float32)}, root / "model.safetensors")
    return root


LLAMA_VOCABULARY = 3 + 256 + 1


def llama_tensors() -> dict[str, Array]:
    """A Llama decoder under the names of the transformers library, with tied embeddings."""
    numbers, width, inner, kv = Numbers(13), 32, 40, 16
    tensors = {
        "model.embed_tokens.weight": numbers.tensor(LLAMA_VOCABULARY, width, scale=1.0),
        "model.norm.weight": numbers.tensor(width, scale=0.1, around=1.0),
    }
    shapes = {
        "self_attn.q_proj": (width, width),
        "self_attn.k_proj": (kv, width),
        "self_attn.v_proj": (kv, width),
        "self_attn.o_proj": (width, width),
        "mlp.gate_proj": (inner, width),
        "mlp.up_proj": (inner, width),
        "mlp.down_proj": (width, inner),
    }
    for layer in range(2):
        for name, shape in shapes.items():
            tensors[f"model.layers.{layer}.{name}.weight"] = numbers.tensor(*shape)
        for name in ("input_layernorm", "post_attention_layernorm"):
            tensors[f"model.layers.{layer}.{name}.weight"] = numbers.tensor(width, scale=0.1, around=1.0)
    return tensors


_LLAMA_NAMES = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
}


def _side_by_side(weight: Array, heads: int) -> Array:
    """From halves of a head to pairs: how GGUF stores Q and K for rotary positions."""
    rows, columns = weight.shape
    pairs: Array = weight.reshape(heads, 2, rows // heads // 2, columns).swapaxes(1, 2).reshape(rows, columns)
    return pairs


def llama_gguf(path: Path, **fields: object) -> Path:
    """The decoder of ``llama_tensors`` as GGUF, with a byte-level vocabulary of single bytes and one merge."""
    writer = GGUFWriter(path, "llama")
    writer.add_block_count(2)
    writer.add_context_length(64)
    writer.add_embedding_length(32)
    writer.add_feed_forward_length(40)
    writer.add_head_count(4)
    writer.add_head_count_kv(2)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(8)
    writer.add_rope_freq_base(10000.0)
    tokens = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", *byte_tokens(), "th"]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(tokens)
    writer.add_token_types([TokenType.CONTROL] * 3 + [TokenType.NORMAL] * 257)
    writer.add_token_merges(["t h"])
    writer.add_eos_token_id(2)
    for key, value in fields.items():
        writer.add_key_value(key.replace("__", "."), value, _kind_of(value))
    for name, tensor in llama_tensors().items():
        writer.add_tensor(*_llama_tensor(name, tensor))
    for step in (
        writer.write_header_to_file,
        writer.write_kv_data_to_file,
        writer.write_tensors_to_file,
        writer.close,
    ):
        step()
    return path


def _kind_of(value: object) -> GGUFValueType:
    return {int: GGUFValueType.UINT32, str: GGUFValueType.STRING, bool: GGUFValueType.BOOL}[type(value)]


def _llama_tensor(name: str, tensor: Array) -> tuple[str, Array]:
    if not name.startswith("model.layers."):
        return {"model.embed_tokens.weight": "token_embd.weight", "model.norm.weight": "output_norm.weight"}[
            name
        ], tensor
    _, _, layer, *middle, _ = name.split(".")
    short = _LLAMA_NAMES[".".join(middle)]
    heads = {"attn_q": 4, "attn_k": 2}.get(short)
    return f"blk.{layer}.{short}.weight", _side_by_side(tensor, heads) if heads else tensor


def byte_tokens() -> list[str]:
    """GPT-2's printable stand-ins for the 256 bytes, in the order of the bytes."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    spare = iter(range(256, 512))
    return [chr(byte) if byte in plain else chr(next(spare)) for byte in range(256)]


# A GGUF by hand, for what no writer would write.


def string(text: str) -> bytes:
    raw = text.encode()
    return struct.pack("<Q", len(raw)) + raw


def field(key: str, kind: int, value: bytes) -> bytes:
    return string(key) + struct.pack("<I", kind) + value


def raw_gguf(*fields: bytes, tensors: tuple[bytes, ...] = (), data: bytes = b"", version: int = 3) -> bytes:
    head = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(fields)) + b"".join(fields) + b"".join(tensors)
    return head + bytes(-len(head) % 32) + data


def raw_tensor(name: str, shape: tuple[int, ...], kind: int = 0, offset: int = 0) -> bytes:
    return string(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, kind, offset)


def raw_safetensors(dtype: str, tensors: Mapping[str, npt.NDArray[np.generic]]) -> bytes:
    """A safetensors file whose numbers are given as they lie in the file."""
    header: dict[str, object] = {}
    at = 0
    for name, tensor in tensors.items():
        header[name] = {"dtype": dtype, "shape": list(tensor.shape), "data_offsets": [at, at + tensor.nbytes]}
        at += tensor.nbytes
    raw = json.dumps(header).encode()
    return struct.pack("<Q", len(raw)) + raw + b"".join(tensor.tobytes() for tensor in tensors.values())
