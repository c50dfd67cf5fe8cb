"""The lines that hold a needed word: by searching for each, or by looking up the words of each line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sampan.doctor.knowledge import Anchor, Needle
from sampan.doctor.vocabulary import LETTERS, runs

Hot = dict[bytes, tuple[Needle, ...]]


@dataclass
class Effort:
    """How many places of needed words may still be looked at: in one piece, in all, then in each further piece.

    A log of nothing but failures stays below; a text that is made of the words of failures does not.
    """

    piece: int = 5_000
    all: int = 120_000
    then: int = 500
    spent: int = 0

    def most(self) -> int:
        """For the piece that comes now."""
        return self.piece if self.spent < self.all else self.then


def line_at(text: bytes, position: int) -> tuple[int, int]:
    """Start and end of the line around a place."""
    end = text.find(b"\n", position)
    return text.rfind(b"\n", 0, position) + 1, end if end >= 0 else len(text)


def by_search(text: bytes, possible: Iterable[Anchor], effort: Effort) -> Hot | None:
    """One search of the whole text for each anchor; None where there is too much to look at."""
    found: Hot = {}
    left = effort.most()
    for anchor in possible:
        position = text.find(anchor.word)
        while position >= 0:
            start, end = line_at(text, position)
            _add(found, text[start:end], anchor)
            position = text.find(anchor.word, end)
            left -= 1
            if left < 0:
                return None
    effort.spent += effort.most() - left
    return found


def by_words(
    forms: Sequence[bytes], possible: Iterable[Anchor], vocabulary: bytes, effort: Effort
) -> tuple[Hot, int]:
    """Each line's words, looked up: every anchor is filed under words of which its line must have one."""
    filed: dict[bytes, list[Anchor]] = {}
    loose: list[Anchor] = []
    for anchor in possible:
        for key in _keys(anchor, vocabulary):
            filed.setdefault(key, []).append(anchor)
        if not anchor.whole and not anchor.parts:
            loose.append(anchor)
    keys, found, left = frozenset(filed), Hot(), effort.most()
    for number, form in enumerate(forms):
        held = [one for key in keys.intersection(form.translate(LETTERS).split()) for one in filed[key]]
        for anchor in (*held, *loose):
            if anchor.word in form:
                _add(found, form, anchor)
                left -= 1
        if left < 0:
            effort.spent += effort.most()
            return found, len(forms) - number - 1
    effort.spent += effort.most() - left
    return found, 0


def _add(found: Hot, form: bytes, anchor: Anchor) -> None:
    """The needles that the form does not rule out; a phrase in Chinese has none, but is to be translated."""
    known = found.get(form, ())
    more = []
    for needle in anchor.needles:
        for must in needle.musts:
            if must not in form:
                break
        else:
            if needle not in known:
                more.append(needle)
    if more or not anchor.needles:
        found[form] = (*known, *more)


def _keys(anchor: Anchor, vocabulary: bytes) -> Sequence[bytes]:
    """The anchor's whole run that the fewest have; else the words of the text that hold its longest part."""
    if anchor.whole:
        return (min(sorted(anchor.whole), key=lambda run: (runs()[run], -len(run))),)
    return _words_with(anchor.parts[0], vocabulary) if anchor.parts else ()


def _words_with(part: bytes, vocabulary: bytes) -> list[bytes]:
    found = []
    position = vocabulary.find(part)
    while position >= 0:
        start, end = vocabulary.rfind(b" ", 0, position) + 1, vocabulary.find(b" ", position)
        end = end if end >= 0 else len(vocabulary)
        found.append(vocabulary[start:end])
        position = vocabulary.find(part, end)
    return found
