"""From tokenizer.json to the vocabulary as GGUF holds it: WordPiece (``bert``) and Unigram (``t5``).

Conventions of the engine: a WordPiece that starts a word carries ``▁`` before it and one that continues a word loses
its ``##``; control tokens stay as they are. Ids without a token are ``[PAD<id>]``, unused.
"""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gguf.constants import TokenType

from sampan.errors import BadInputError
from sampan.i18n import text
from sampan.weights.charsmap import is_sound
from sampan.weights.files import member, read_object
from sampan.weights.folder import ModelFolder

_UNUSED_SCORE = -10000.0
_MERGING = {"WhitespaceSplit", "Strip", "Replace"}  # steps by which several blanks count as one


@dataclass(frozen=True)
class Vocabulary:
    """Tokens with their types, and what the engine must know to split a text like the model's own tokenizer.

    ``model`` and ``special`` (``bos``, ``eos``, ``cls``… -> id) as in GGUF's ``tokenizer.ggml`` keys; ``scores`` and
    ``charsmap`` only for ``t5``, ``lowercase`` and ``strip_accents`` only for ``bert``.
    """

    model: str
    tokens: tuple[str, ...]
    types: tuple[int, ...]
    special: dict[str, int]
    scores: tuple[float, ...] = ()
    charsmap: bytes = b""
    lowercase: bool = False
    strip_accents: bool = False
    merge_spaces: bool = True


def read_vocabulary(folder: ModelFolder) -> Vocabulary:
    """The vocabulary of the folder's tokenizer.json. Raises BadInputError."""
    path = folder.model / "tokenizer.json"
    if not path.is_file():
        raise BadInputError("weights.no_tokenizer", path=str(folder.model))
    tokenizer = read_object(path)
    kind = member(tokenizer, "model").get("type")
    if kind == "WordPiece":
        return _word_piece(tokenizer, folder, path)
    if kind == "Unigram":
        return _unigram(tokenizer, folder, path)
    raise BadInputError("weights.unsupported", path=str(path), what="tokenizer", value=str(kind))


def _word_piece(tokenizer: dict[str, object], folder: ModelFolder, path: Path) -> Vocabulary:
    model, normalizer = member(tokenizer, "model"), member(tokenizer, "normalizer")
    if model.get("continuing_subword_prefix", "##") != "##" or normalizer.get("type") != "BertNormalizer":
        value = f"{model.get('continuing_subword_prefix')}, {normalizer.get('type')}"
        raise BadInputError("weights.unsupported", path=str(path), what="tokenizer", value=value)
    ids = {token: _id(number, path) for token, number in member(model, "vocab").items()}
    controls = _added(tokenizer, ids, path)
    tokens, types = _table(ids, controls, folder.vocabulary, path)
    lowercase = normalizer.get("lowercase") is True or folder.lowercase
    strip = normalizer.get("strip_accents")
    return Vocabulary(
        model="bert",
        tokens=tuple(_phantom(token, kind) for token, kind in zip(tokens, types, strict=True)),
        types=tuple(types),
        special=_special(
            ids, {"cls": "[CLS]", "sep": "[SEP]", "pad": "[PAD]", "mask": "[MASK]", "unk": "[UNK]"}, path
        ),
        lowercase=lowercase,
        # null means: as lowercase (documented of BertNormalizer)
        strip_accents=strip if isinstance(strip, bool) else normalizer.get("lowercase") is True,
    )


def _phantom(token: str, kind: int) -> str:
    if kind in (TokenType.CONTROL, TokenType.UNUSED):
        return token
    return token[2:] if token.startswith("##") else "\u2581" + token


def _unigram(tokenizer: dict[str, object], folder: ModelFolder, path: Path) -> Vocabulary:
    if folder.lowercase:
        raise BadInputError("weights.unsupported", path=str(path), what="do_lower_case", value="true")
    pieces = _pieces(member(tokenizer, "model").get("vocab"), path)
    ids = {piece: number for number, (piece, _) in enumerate(pieces)}
    if len(ids) != len(pieces):
        raise BadInputError("weights.tokenizer", path=str(path), detail=text("weights.damage.duplicate_token"))
    controls = _added(tokenizer, ids, path)
    tokens, types = _table(ids, controls, folder.vocabulary, path)
    special = _special(ids, {"cls": "<s>", "sep": "</s>", "pad": "<pad>", "mask": "<mask>", "unk": "<unk>"}, path)
    types[special["unk"]] = TokenType.UNKNOWN
    scores = [score for _, score in pieces] + [_UNUSED_SCORE] * (len(tokens) - len(pieces))
    for number in controls:
        scores[number] = 0.0
    return Vocabulary(
        model="t5",
        tokens=tuple(tokens),
        types=tuple(types),
        special=special,
        scores=tuple(scores),
        charsmap=_charsmap(tokenizer, path),
        merge_spaces=bool(_MERGING & {step.get("type") for step in _steps(tokenizer)}),
    )


def _steps(tokenizer: dict[str, object]) -> Iterator[dict[str, object]]:
    """Every normalizer and pre-tokenizer, also those within a sequence."""
    for part, inner in (("normalizer", "normalizers"), ("pre_tokenizer", "pretokenizers")):
        outer = member(tokenizer, part)
        steps = outer.get(inner)
        yield from (step for step in (outer, *(steps if isinstance(steps, list) else ())) if isinstance(step, dict))


def _pieces(vocab: object, path: Path) -> list[tuple[str, float]]:
    pieces: list[tuple[str, float]] = []
    for entry in vocab if isinstance(vocab, list) else []:
        piece, score = entry if isinstance(entry, list) and len(entry) == 2 else (None, None)
        if not isinstance(piece, str) or not isinstance(score, int | float) or not math.isfinite(score):
            raise BadInputError("weights.tokenizer", path=str(path), detail=repr(entry)[:80])
        pieces.append((piece, float(score)))
    return pieces


def _added(tokenizer: dict[str, object], ids: dict[str, int], path: Path) -> set[int]:
    """Put the added tokens into ``ids``; gives the ids of those that never come from a text."""
    controls: set[int] = set()
    entries = tokenizer.get("added_tokens")
    for entry in entries if isinstance(entries, list) else []:
        content = entry.get("content") if isinstance(entry, dict) else None
        if not isinstance(content, str):
            raise BadInputError("weights.tokenizer", path=str(path), detail=repr(entry)[:80])
        ids[content] = _id(entry.get("id"), path)
        if entry.get("special") is True:
            controls.add(ids[content])
    return controls


def _id(value: object, path: Path) -> int:
    if type(value) is not int or value < 0:
        raise BadInputError("weights.tokenizer", path=str(path), detail=f"id = {value!r}")
    return value


def _table(ids: dict[str, int], controls: set[int], size: int, path: Path) -> tuple[list[str], list[int]]:
    """Tokens and types by id, ``size`` of them."""
    tokens = [f"[PAD{number}]" for number in range(size)]
    types: list[int] = [TokenType.UNUSED] * size
    for token, number in ids.items():
        if number >= size:
            detail = text("weights.damage.token_id", token=token, id=number, size=size)
            raise BadInputError("weights.tokenizer", path=str(path), detail=detail)
        tokens[number] = token
        types[number] = TokenType.CONTROL if number in controls else TokenType.NORMAL
    return tokens, types


def _special(ids: dict[str, int], names: dict[str, str], path: Path) -> dict[str, int]:
    """Ids of the special tokens. The mask is only used in training; the others must be there."""
    missing = [token for role, token in names.items() if token not in ids and role != "mask"]
    if missing:
        detail = text("weights.damage.no_token", tokens=", ".join(missing))
        raise BadInputError("weights.tokenizer", path=str(path), detail=detail)
    found = {role: ids[token] for role, token in names.items() if token in ids}
    # A text is enclosed in these two, whatever they are called.
    return {"bos": found.pop("cls"), "eos": found["sep"], **found}


def _charsmap(tokenizer: dict[str, object], path: Path) -> bytes:
    """SentencePiece's precompiled normalizer, also within a sequence; empty where there is none."""
    for step in _steps(tokenizer):
        if step.get("type") == "Precompiled":
            try:
                raw = base64.b64decode(str(step.get("precompiled_charsmap") or ""), validate=True)
            except (binascii.Error, ValueError) as error:
                raise BadInputError("weights.tokenizer", path=str(path), detail=str(error)) from error
            if raw and not is_sound(raw):
                detail = text("weights.damage.charsmap")
                raise BadInputError("weights.tokenizer", path=str(path), detail=detail)
            return raw
    return b""
