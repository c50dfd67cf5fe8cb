"""Text to token ids by the ``tokenizers`` library: from tokenizer.json, or rebuilt from a GGUF's metadata."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from gguf.constants import TokenType
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from sampan.errors import BadInputError
from sampan.i18n import text
from sampan.weights.charsmap import is_sound
from sampan.weights.gguf_header import GgufHeader

# tokenizer.ggml.pre -> how a text is cut before byte-level BPE. source: the engine's table of pre-tokenizers.
_BYTE_LEVEL: dict[str, Callable[[], pre_tokenizers.PreTokenizer]] = {
    "gpt-2": lambda: pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
    "smollm": lambda: pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    ),
}
_SPACE = "\u2581"


class NoReferenceError(Exception):
    """There is no reference for this model; ``args[0]`` is the catalogue key that says why."""


@contextmanager
def refusals(path: Path) -> Iterator[None]:
    """What the ``tokenizers`` library refuses becomes BadInputError of ``path``.

    It raises plain Exception for damage, and a BaseException of its own (PanicException) where its Rust gave up.
    """
    try:
        yield
    except BaseException as error:
        if type(error) is not Exception and type(error).__name__ != "PanicException":
            raise
        raise BadInputError("weights.tokenizer", path=str(path), detail=str(error)) from error


def from_file(path: Path) -> Tokenizer:
    """The folder's own tokenizer, without the padding and truncation that the file may ask for."""
    with refusals(path):
        tokenizer = Tokenizer.from_file(str(path))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def from_gguf(header: GgufHeader) -> Tokenizer:
    """A tokenizer from the metadata of a GGUF. Raises NoReferenceError where its kind is not known here."""
    build = {"bert": _word_piece, "t5": _unigram, "gpt2": _byte_level_bpe}.get(str(_field(header, "model")))
    if build is None:
        raise NoReferenceError("weights.golden.tokenizer")
    sizes = {len(tokens_of(header)), len(_types(header))}
    if len(sizes) > 1 or 0 in sizes:
        detail = text("weights.damage.types")
        raise BadInputError("weights.tokenizer", path=str(header.path), detail=detail)
    with refusals(header.path):
        return build(header)


def _field(header: GgufHeader, name: str, default: object = None) -> object:
    return header.fields.get(f"tokenizer.ggml.{name}", default)


def _number(header: GgufHeader, name: str, default: int) -> int:
    """The id of a special token, -1 for none. Raises BadInputError where the vocabulary has no such id."""
    value = _field(header, f"{name}_token_id", default)
    if type(value) is not int or not -1 <= value < len(tokens_of(header)):
        detail = text("weights.damage.field", name=f"{name}_token_id", value=str(value))
        raise BadInputError("weights.damaged", path=str(header.path), detail=detail)
    return value


def tokens_of(header: GgufHeader) -> tuple[str, ...]:
    """The vocabulary in the order of its ids."""
    tokens = _field(header, "tokens")
    return tokens if isinstance(tokens, tuple) else ()


def _types(header: GgufHeader) -> Sequence[int]:
    types = _field(header, "token_type")
    return types.tolist() if isinstance(types, np.ndarray) else [TokenType.NORMAL] * len(tokens_of(header))


def _flag(header: GgufHeader, name: str, default: bool) -> bool:
    value = _field(header, name, default)
    return value if isinstance(value, bool) else default


def _word_piece(header: GgufHeader) -> Tokenizer:
    """GGUF marks a word's start where WordPiece marks its continuation; this turns it back."""
    vocab: dict[str, int] = {}
    tokens = tokens_of(header)
    for number, (token, kind) in enumerate(zip(tokens, _types(header), strict=True)):
        plain = token[1:] if token.startswith(_SPACE) else f"##{token}"
        vocab[plain if kind == TokenType.NORMAL else token] = number
    cls, sep, unk = _number(header, "bos", 101), _number(header, "seperator", 102), _number(header, "unknown", 100)
    tokenizer = Tokenizer(models.WordPiece(vocab, unk_token=tokens[unk]))
    lowercase = _flag(header, "normalizer.lowercase", True)
    strip = _flag(header, "normalizer.strip_accents", lowercase)
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lowercase, strip_accents=strip)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return _enclosed(tokenizer, tokens, cls, sep)


def _unigram(header: GgufHeader) -> Tokenizer:
    tokens, scores = tokens_of(header), _field(header, "scores")
    if not isinstance(scores, np.ndarray) or len(scores) != len(tokens):
        raise NoReferenceError("weights.golden.tokenizer")
    pieces = list(zip(tokens, scores.tolist(), strict=True))
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=_number(header, "unknown", 2), byte_fallback=False))
    charsmap = _field(header, "precompiled_charsmap")
    steps: list[normalizers.Normalizer] = []
    if isinstance(charsmap, np.ndarray) and charsmap.size:
        if not is_sound(charsmap.tobytes()):
            detail = text("weights.damage.charsmap")
            raise BadInputError("weights.tokenizer", path=str(header.path), detail=detail)
        steps.append(normalizers.Precompiled(charsmap.tobytes()))
    if _flag(header, "remove_extra_whitespaces", False):
        steps += [normalizers.Strip(), normalizers.Replace(Regex(" {2,}"), " ")]
    tokenizer.normalizer = normalizers.Sequence(steps)
    scheme = "always" if _flag(header, "add_space_prefix", True) else "never"
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement=_SPACE, prepend_scheme=scheme)
    bos = _number(header, "bos", -1) if _flag(header, "add_bos_token", False) else -1
    eos = _number(header, "eos", 1) if _flag(header, "add_eos_token", True) else -1
    return _enclosed(tokenizer, tokens, bos, eos)


def _byte_level_bpe(header: GgufHeader) -> Tokenizer:
    cut = _BYTE_LEVEL.get(str(_field(header, "pre")))
    merges = _field(header, "merges")
    if cut is None or not isinstance(merges, tuple):
        raise NoReferenceError("weights.golden.tokenizer")
    tokens = tokens_of(header)
    pairs = [(left, right) for left, _, right in (merge.partition(" ") for merge in merges)]
    tokenizer = Tokenizer(models.BPE({token: number for number, token in enumerate(tokens)}, pairs))
    tokenizer.pre_tokenizer = cut()
    tokenizer.decoder = decoders.ByteLevel()
    for number, kind in enumerate(_types(header)):
        if kind in (TokenType.CONTROL, TokenType.USER_DEFINED):
            tokenizer.add_special_tokens([AddedToken(tokens[number], special=True, normalized=False)])
    bos = _number(header, "bos", -1) if _flag(header, "add_bos_token", False) else -1
    eos = _number(header, "eos", -1) if _flag(header, "add_eos_token", False) else -1
    return _enclosed(tokenizer, tokens, bos, eos)


def _enclosed(tokenizer: Tokenizer, tokens: tuple[str, ...], first: int, last: int) -> Tokenizer:
    """Put a token before and one after each text; -1 means none."""
    names = [tokens[number] if number >= 0 else "" for number in (first, last)]
    special = [(name, number) for name, number in zip(names, (first, last), strict=True) if name]
    if special:
        template = " ".join(part for part in (names[0], "$A", names[1]) if part)
        tokenizer.post_processor = processors.TemplateProcessing(single=template, special_tokens=special)
    return tokenizer
