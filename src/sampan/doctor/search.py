"""Which forms of lines may concern a case: by plain substring search, for words that can be there at all.

The vocabulary of a text (its distinct words) rules most of the needed words out before anything is searched. Where
many remain, searching for each costs more than taking the lines apart; then each line's words are looked up.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sampan.doctor import normal
from sampan.doctor.places import Effort, Hot, by_search, by_words, line_at
from sampan.doctor.vocabulary import LETTERS, possible

_MOST_BAD = 12
_MANY = 90  # possible words; with more, lines are taken apart
#: words of failure that need not concern any case
BAD = (
    *(b"error:", b"fatal", b"traceback (most", b"panic:", b"assert", b"exception:"),
    *(b"failed to ", b"cannot ", b"unable to ", b"could not "),
)
_HARMLESS = (b" 0 error", b"no error", b"0 failed", b"werror", b"non-fatal")


def hot(forms: Sequence[bytes], effort: Effort) -> tuple[Hot, int]:
    """The forms that hold a needed word, with the needles that they do not rule out; and how many were left out."""
    found, left = _found(forms, effort)
    said = {normal.translated_form(form): form for form in found if not form.isascii()}
    meant, _ = _found([form for form in said if form != said[form]], effort)
    for form, needles in meant.items():
        own = found[said[form]]
        found[said[form]] = (*own, *(needle for needle in needles if needle not in own))
    return {form: needles for form, needles in found.items() if needles}, left


def _found(forms: Sequence[bytes], effort: Effort) -> tuple[Hot, int]:
    text = b"\n".join(forms)
    words = set(text.translate(LETTERS).split())
    vocabulary = b" ".join(words)
    anchors = possible(text, words, vocabulary)
    if len(anchors) <= _MANY:
        found = by_search(text, anchors, effort)
        if found is not None:
            return found, 0
    return by_words(forms, anchors, vocabulary, effort)


def looks_bad(form: bytes) -> bool:
    """Whether the line looks like a failure, whatever it may be."""
    return any(word in form for word in BAD) and not any(word in form for word in _HARMLESS)


def bad(forms: Sequence[bytes]) -> list[bytes]:
    """Some of the forms that look like failures: of each word the first ones and the last ones."""
    text = b"\n".join(forms)
    found = {start: text[start:end] for word in BAD for start, end in (*_first(text, word), *_last(text, word))}
    return [found[start] for start in sorted(found)]


def _first(text: bytes, word: bytes) -> Iterator[tuple[int, int]]:
    position = text.find(word)
    for _ in range(_MOST_BAD):
        if position < 0:
            return
        start, end = line_at(text, position)
        yield start, end
        position = text.find(word, end)


def _last(text: bytes, word: bytes) -> Iterator[tuple[int, int]]:
    position = text.rfind(word)
    for _ in range(_MOST_BAD):
        if position < 0:
            return
        start, end = line_at(text, position)
        yield start, end
        position = text.rfind(word, 0, start)
