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

from sampan.spec.weights import GoldenEmbedding, GoldenSet
from sampan.weights.facts import golden_texts
from sampan.weights.reference import bert
from sampan.weights.reference.tensors import Array, TensorSource

MINIMUM_COSINE = 0.99
CLEAR_MARGIN = 1.5
SHORTEST_PREFIX = 8
_LONGEST_TEXT = 512  # tokens: attention in numpy grows with the square
_DIGITS = 7


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
