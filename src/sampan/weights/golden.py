"""The golden set: what the service must answer, made by the reference and never by the engine under test.

**Embeddings.** Twelve texts, each with the reference's unit vector in float32. For an imported folder the reference
reads the unquantized safetensors; for a GGUF it reads the file's own numbers, unpacked, because no others are there.

**Chats.** A raw prompt and the reference's greedy continuation. The engine also rounds activations (to 8 bits for
quantized weights), which moves logits by a few tenths: where the best token leads the second by less, either is
right, and from there on the texts differ. So only steps that lead by ``CLEAR_MARGIN`` logits are held against the
service: ``minimum_prefix`` is the shortest of the kept prompts' clear beginnings, in characters, and prompts whose
clear beginning is shorter than ``SHORTEST_PREFIX`` are dropped.

Where no reference exists (another architecture or tokenizer, or more numbers than fit), NoReferenceError names the
catalogue key that tells the user so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tokenizers import Tokenizer

from sampan.errors import BadInputError
from sampan.spec.weights import GoldenChat, GoldenEmbedding, GoldenSet, WeightsInfo
from sampan.weights.facts import ChatPrompt, golden_texts
from sampan.weights.gguf_header import GgufHeader
from sampan.weights.layout import Shapes, bert_shapes, llama_shapes, require_shapes
from sampan.weights.reference import bert, llama
from sampan.weights.reference.tensors import Array, GgufTensors, TensorSource
from sampan.weights.reference.tokenizer import NoReferenceError, from_gguf

MINIMUM_COSINE = 0.99
CLEAR_MARGIN = 1.5
SHORTEST_PREFIX = 8
_STEPS = 16
_LONGEST_TEXT = 512  # tokens: attention in numpy grows with the square
_DIGITS = 7
_MOST_PARAMETERS = 1_000_000_000  # a decoder is unpacked whole: 4 GB
_LLAMA_TENSORS = frozenset(
    {"attn_norm", "attn_q", "attn_k", "attn_v", "attn_output", "ffn_norm", "ffn_gate", "ffn_up", "ffn_down"}
    | {"token_embd", "output_norm", "output", "rope_freqs"}
)
_BERT_TENSORS = frozenset(
    {"token_embd", "token_embd_norm", "position_embd", "token_types"}
    | {"attn_q", "attn_k", "attn_v", "attn_output", "attn_output_norm", "ffn_up", "ffn_down", "layer_output_norm"}
)


@dataclass(frozen=True)
class Encoder:
    """A reference for embeddings: ids come from ``tokenizer``, numbers from ``source``."""

    tokenizer: Tokenizer
    source: TensorSource
    shape: bert.BertShape
    longest_text: int  # tokens

    def over(self, source: TensorSource) -> Encoder:
        """The same encoder over other numbers."""
        return replace(self, source=source)

    def vectors(self, texts: Sequence[str]) -> list[Array]:
        """The unit vector of each text."""
        return bert.encode(self.source, self.shape, [self.tokenizer.encode(text).ids for text in texts])

    def texts(self) -> tuple[str, ...]:
        """The golden texts for this model: none longer than it takes, the last as long as it takes."""
        known = golden_texts()
        limit = min(self.longest_text, _LONGEST_TEXT)
        short = (text for text in known.embeddings if self._tokens(text) <= limit)
        return (*short, self._cut(" ".join(known.passage.split()), limit))

    def _tokens(self, text: str) -> int:
        return len(self.tokenizer.encode(text).ids)

    def _cut(self, passage: str, limit: int) -> str:
        """The passage, repeated and cut at a blank, with at most ``limit`` tokens. Found by halving."""
        words = (passage + " ") * (1 + limit // max(1, self._tokens(passage) // 2))
        parts = words.split()
        low, high = 1, len(parts)
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self._tokens(" ".join(parts[:middle])) <= limit else (low, middle - 1)
        return " ".join(parts[:low])


def embedding_set(encoder: Encoder, name: str, reference: str) -> GoldenSet:
    """The golden set of an embedding model; ``reference`` says to people how it was made."""
    texts = encoder.texts()
    embeddings = tuple(
        GoldenEmbedding(text, tuple(round(float(number), _DIGITS) for number in vector))
        for text, vector in zip(texts, encoder.vectors(texts), strict=True)
    )
    return GoldenSet(name, reference, minimum_cosine=MINIMUM_COSINE, embeddings=embeddings)


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
