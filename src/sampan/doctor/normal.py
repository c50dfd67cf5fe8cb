"""One form for the same message: without colours, in ASCII punctuation, in English, whatever the terminal did.

All of it keeps the number of lines, so a line's number and its exact words can be found again.
"""

from __future__ import annotations

import codecs
import re
from functools import cache

from sampan.doctor.data import table

#: upper case as lower, every digit as 0: lines that differ in nothing else have one form
FORM = bytes(byte | 32 if 65 <= byte <= 90 else 48 if 48 <= byte <= 57 else byte for byte in range(256))
_ANSI = re.compile(
    rb"\x1b(?:\[[0-9;?]{0,24}[ -/]{0,2}[@-~]|\][^\x07\x1b\n]{0,200}(?:\x07|\x1b\\)|[()][0-9A-B]|[=>78cM])"
)
_PREFIX = re.compile(
    r"(?:"
    r"[A-Z][a-z]{2} [ 0-3]\d \d\d:\d\d:\d\d(?:\.\d{1,9})? \S{1,80} \S{1,80}: "  # syslog, journal
    r"|\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)? (?:\S{1,80} \S{1,80}\[\d{1,8}\]: )?"
    r"|\[ {0,5}\d{1,9}\.\d{6}\] "  # dmesg
    r"|\[[A-Z][a-z]{2} [A-Z][a-z]{2} [ 0-3]\d \d\d:\d\d:\d\d \d{4}\] "  # dmesg -T
    r"|[\w.-]{1,60} {0,20}\| "  # docker compose
    r"|(?:> ?){1,4}|\d{1,6}[:.] "  # quoted, numbered
    r")"
)
LONGEST = 2000  # bytes of a line that patterns see


_BINARY = 1000  # a text with one NUL in so many bytes has no other script than ASCII
_ASCII_ONLY = bytes(byte if byte < 128 else 32 for byte in range(256))


@cache
def _phrases() -> tuple[tuple[bytes, bytes], ...]:
    """(said, meant) in UTF-8, longest first."""
    phrases = table("phrases.toml")["phrases"].items()
    pairs = {said.encode(): meant.encode() for meant, all_said in phrases for said in all_said}
    return tuple(sorted(pairs.items(), key=lambda pair: -len(pair[0])))


@cache
def _signs() -> dict[bytes, tuple[tuple[bytes, bytes], ...]]:
    """By the first two bytes, so that a text without them costs one search each."""
    grouped: dict[bytes, list[tuple[bytes, bytes]]] = {}
    for said, meant in table("phrases.toml")["signs"].items():
        grouped.setdefault(said.encode()[:2], []).append((said.encode(), meant.encode()))
    return {lead: tuple(pairs) for lead, pairs in grouped.items()}


@cache
def phrases() -> tuple[bytes, ...]:
    """All that ``translated`` knows."""
    return tuple(said for said, _ in _phrases())


def plain(raw: bytes) -> bytes:
    """The text without colours, with \\n as its only line end and ASCII punctuation."""
    text = raw
    if b"\x1b" in text:
        text = _ANSI.sub(b"", text)
    if b"\r" in text:
        text = text.replace(b"\r\n", b"\n").replace(b"\r", b" ")
    if text.isascii():
        return text
    if text.count(0) * _BINARY > len(text):
        return text.translate(_ASCII_ONLY)
    for lead, pairs in _signs().items():
        if lead in text:
            for said, meant in pairs:
                text = text.replace(said, meant)
    return text


def translated(line: bytes) -> bytes:
    """One line with what programs say in Chinese put into the words of the C locale."""
    if line.isascii():
        return line
    for said, meant in _phrases():
        line = line.replace(said, meant)
    return line


@cache
def _phrases_of_forms() -> tuple[tuple[bytes, bytes], ...]:
    return tuple((said.translate(FORM), meant.translate(FORM)) for said, meant in _phrases())


def translated_form(form: bytes) -> bytes:
    """As ``translated``, of a form."""
    for said, meant in _phrases_of_forms():
        form = form.replace(said, meant)
    return form


def without_colour(line: bytes) -> bytes:
    """The line as a terminal would show it, but for colours."""
    return _ANSI.sub(b"", line) if b"\x1b" in line else line


def line_text(line: bytes) -> str:
    """One line as patterns see it: decoded, without what a logger put in front of it."""
    text = translated(line[:LONGEST]).decode("utf-8", "replace").strip()
    for _ in range(3):
        match = _PREFIX.match(text)
        if match is None or match.end() >= len(text):
            break
        text = text[match.end() :].lstrip()
    return text


def decoder(sample: bytes) -> codecs.IncrementalDecoder | None:
    """How to read a text that is not UTF-8: UTF-16 by its mark, else GB18030 where that fits; None for UTF-8."""
    if sample.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return codecs.getincrementaldecoder("utf-16")("replace")
    if not sample.isascii() and not _decodes(sample, "utf-8") and _decodes(sample, "gb18030"):
        return codecs.getincrementaldecoder("gb18030")("replace")
    return None


def _decodes(sample: bytes, encoding: str) -> bool:
    try:
        codecs.getincrementaldecoder(encoding)().decode(sample)
    except UnicodeDecodeError:
        return False
    return True
