"""Golden sets of GGUF files: which reference fits the file, and what it answers. See golden.py for the rules."""

from __future__ import annotations

from tokenizers import Tokenizer

from sampan.errors import BadInputError
from sampan.spec.weights import GoldenChat, GoldenSet, WeightsInfo
from sampan.weights.facts import ChatPrompt, golden_texts
from sampan.weights.gguf_header import GgufHeader
from sampan.weights.golden import CLEAR_MARGIN, SHORTEST_PREFIX, Encoder, embedding_set
from sampan.weights.layout import Shapes, bert_shapes, llama_shapes, require_shapes
from sampan.weights.reference import bert, llama
from sampan.weights.reference.tensors import GgufTensors
from sampan.weights.reference.tokenizer import NoReferenceError, from_gguf

_STEPS = 16
_MOST_PARAMETERS = 1_000_000_000  # a decoder is unpacked whole: 4 GB
_LLAMA_TENSORS = frozenset(
    {"attn_norm", "attn_q", "attn_k", "attn_v", "attn_output", "ffn_norm", "ffn_gate", "ffn_up", "ffn_down"}
    | {"token_embd", "output_norm", "output", "rope_freqs"}
)
_BERT_TENSORS = frozenset(
    {"token_embd", "token_embd_norm", "position_embd", "token_types"}
    | {"attn_q", "attn_k", "attn_v", "attn_output", "attn_output_norm", "ffn_up", "ffn_down", "layer_output_norm"}
)


def of_gguf(header: GgufHeader, info: WeightsInfo) -> GoldenSet:
    """The golden set of a GGUF file, from its own numbers. Raises NoReferenceError."""
    unpacked = f"numpy, float32, from the GGUF's own {info.quantization} numbers unpacked"
    if info.architecture == "bert" and info.pooling in ("mean", "cls", "last"):
        return embedding_set(encoder_of(header, info), info.name, f"BERT encoder in {unpacked}")
    if info.architecture == "llama" and info.task == "chat":
        return chat_set(header, info, f"Llama decoder in {unpacked}; greedy")
    raise NoReferenceError("weights.golden.architecture")


def encoder_of(header: GgufHeader, info: WeightsInfo) -> Encoder:
    """The reference encoder over a GGUF of architecture ``bert``. Raises NoReferenceError."""
    _require_known(header, _BERT_TENSORS)
    tokenizer, source = from_gguf(header), GgufTensors.of(header)
    expected = bert_shapes(
        vocabulary=info.vocabulary,
        positions=info.context_length,
        token_types=(source.shape("token_types.weight") or (1,))[0],
        width=info.embedding_length,
        inner=info.feed_forward_length,
        layers=info.layers,
    )
    optional = {name for name in expected if name.endswith(".bias") or name == "token_types.weight"}
    _require_shapes(source, expected, optional)
    if info.embedding_length % info.heads:
        raise BadInputError("weights.damaged", path=info.path, detail=f"heads = {info.heads}")
    epsilon = _real(header, "bert.attention.layer_norm_epsilon", 1e-12)
    shape = bert.BertShape(info.layers, info.heads, epsilon, str(info.pooling))
    return Encoder(tokenizer, source, shape, info.context_length)


def chat_set(header: GgufHeader, info: WeightsInfo, reference: str) -> GoldenSet:
    """The golden set of a chat model. Raises NoReferenceError."""
    tokenizer = from_gguf(header)
    model = llama.Llama(GgufTensors.of(header), llama_shape(header, info))
    stop = _stop_tokens(header, tokenizer)
    chats = [chat for chat in golden_texts().chats if _understands(header, chat)]
    asked = [_ask(model, tokenizer, chat, stop) for chat in chats]
    kept = [(chat, clear) for chat, clear in asked if clear >= SHORTEST_PREFIX]
    if not kept:
        raise NoReferenceError("weights.golden.unclear")
    shortest = min(clear for _, clear in kept)
    return GoldenSet(info.name, reference, minimum_prefix=shortest, chats=tuple(chat for chat, _ in kept))


def llama_shape(header: GgufHeader, info: WeightsInfo) -> llama.LlamaShape:
    """What the reference must know. Raises NoReferenceError for what it does not compute."""
    _require_known(header, _LLAMA_TENSORS)
    if info.parameters > _MOST_PARAMETERS:
        raise NoReferenceError("weights.golden.size")
    if header.fields.get("llama.rope.scaling.type", "none") != "none":
        raise NoReferenceError("weights.golden.architecture")
    size = _whole(header, "llama.attention.key_length", info.embedding_length // info.heads)
    rope_size = _whole(header, "llama.rope.dimension_count", size)
    if info.heads % info.kv_heads or not 0 < rope_size <= size or rope_size % 2:
        detail = f"heads = {info.heads}/{info.kv_heads}, rope = {rope_size}/{size}"
        raise BadInputError("weights.damaged", path=info.path, detail=detail)
    expected = llama_shapes(
        vocabulary=info.vocabulary,
        width=info.embedding_length,
        inner=info.feed_forward_length,
        layers=info.layers,
        query=info.heads * size,
        key=info.kv_heads * size,
    )
    source = GgufTensors.of(header)
    if source.has("output.weight"):
        expected["output.weight"] = expected["token_embd.weight"]
    if source.has("rope_freqs.weight"):
        expected["rope_freqs.weight"] = (rope_size // 2,)
    _require_shapes(source, expected, set())
    return llama.LlamaShape(
        layers=info.layers,
        heads=info.heads,
        kv_heads=info.kv_heads,
        epsilon=_real(header, "llama.attention.layer_norm_rms_epsilon", 1e-5),
        rope_base=_real(header, "llama.rope.freq_base", 10000.0),
        rope_size=rope_size,
    )


def _ask(model: llama.Llama, tokenizer: Tokenizer, chat: ChatPrompt, stop: frozenset[int]) -> tuple[GoldenChat, int]:
    """The continuation, and how many of its characters come from clear choices."""
    choices = model.greedy(tokenizer.encode(chat.prompt).ids, _STEPS, stop)
    tokens = [choice.token for choice in choices]
    unclear = next((at for at, choice in enumerate(choices) if choice.margin < CLEAR_MARGIN), len(choices))
    continuation = tokenizer.decode(tokens, skip_special_tokens=False)
    clear = tokenizer.decode(tokens[:unclear], skip_special_tokens=False)
    return GoldenChat(chat.prompt, continuation), len(clear.rstrip("\ufffd"))  # half a character is none


def _understands(header: GgufHeader, chat: ChatPrompt) -> bool:
    template = header.fields.get("tokenizer.chat_template", "")
    return chat.needs in template if isinstance(template, str) else not chat.needs


def _stop_tokens(header: GgufHeader, tokenizer: Tokenizer) -> frozenset[int]:
    """Tokens that end an answer: the model's own end, and the ends that chat templates know."""
    found = {header.fields.get(f"tokenizer.ggml.{name}_token_id") for name in ("eos", "eot")}
    found |= {tokenizer.token_to_id(token) for token in ("<|im_end|>", "<|endoftext|>", "<|eot_id|>", "</s>")}
    return frozenset(number for number in found if type(number) is int)


def _require_known(header: GgufHeader, known: frozenset[str]) -> None:
    """A tensor that the reference does not use would make it another model."""
    for tensor in header.tensors:
        parts = tensor.name.split(".")
        base = parts[2] if parts[0] == "blk" and len(parts) > 3 else parts[0]
        if base not in known or (known is _LLAMA_TENSORS and parts[-1] != "weight"):
            raise NoReferenceError("weights.golden.architecture")


def _require_shapes(source: GgufTensors, expected: Shapes, optional: set[str]) -> None:
    """What the formulas use is there in its shape; ``optional`` tensors may be missing."""
    wanted = {name: shape for name, shape in expected.items() if source.has(name) or name not in optional}
    require_shapes(source.header.path, wanted, source.shape)


def _whole(header: GgufHeader, key: str, default: int) -> int:
    value = header.fields.get(key, default)
    return value if type(value) is int else default


def _real(header: GgufHeader, key: str, default: float) -> float:
    value = header.fields.get(key, default)
    return float(value) if isinstance(value, int | float) else default
