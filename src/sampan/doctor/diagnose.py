"""Texts and facts in, a diagnosis out."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import BinaryIO

from sampan.doctor import judge, knowledge, normal, wrapped
from sampan.doctor.conditions import Fact
from sampan.doctor.model import Diagnosis, Evidence, Hit
from sampan.doctor.scan import Scanned, Scanner

_ENOUGH = 50  # places of one case: joined lines would add nothing but a wrong count


@dataclass(frozen=True)
class Text:
    """One input: its name for the evidence and its bytes, as they come."""

    source: str
    stream: BinaryIO


@dataclass
class _Kept:
    """The beginning of a text, if it is small enough to have been pasted."""

    parts: list[bytes] = field(default_factory=list)
    size: int = 0

    def add(self, block: bytes) -> None:
        self.size += len(block)
        if self.size <= wrapped.LARGEST:
            self.parts.append(block)

    def whole(self) -> bytes:
        return b"".join(self.parts) if self.size <= wrapped.LARGEST else b""


def diagnose(texts: Iterable[Text], facts: Mapping[str, Fact]) -> Diagnosis:
    """Scan every text; ``facts`` of a profile or machine go before those that the texts tell."""
    cases = knowledge.cases()
    scanner = Scanner()
    names, pasted = [], []
    for text in texts:
        kept = _Kept()
        scanner.read(text.stream, text.source, keep=kept.add)
        names.append(text.source)
        pasted.append((text.source, kept.whole()))
    found = scanner.found
    for source, raw in pasted:
        _unwrapped(found, source, raw)
    known = {**found.facts, **facts}
    findings = judge.judge(cases, found.hits, found.times, known)
    bad = () if any(one.severity != "info" for one in findings) else tuple(found.suspicious)
    return Diagnosis(tuple(names), found.lines, found.size, judge.as_text(known), findings, bad, found.left_out)


def of_text(text: str | bytes, facts: Mapping[str, Fact] | None = None) -> Diagnosis:
    """A diagnosis of one text at hand."""
    raw = text.encode() if isinstance(text, str) else text
    return diagnose([Text("-", io.BytesIO(raw))], facts or {})


def _unwrapped(found: Scanned, source: str, raw: bytes) -> None:
    """Look again at lines that a terminal cut, and at any two or three lines that a mail may have broken."""
    if raw:
        _add(found, source, raw, wrapped.hard(raw))
        _add(found, source, raw, wrapped.soft(raw))


def _add(found: Scanned, source: str, raw: bytes, joined: tuple[wrapped.Joined, ...]) -> None:
    """The hits of the joined lines that the single lines did not give."""
    if not joined:
        return
    again = Scanner()
    again.read(io.BytesIO("\n".join(one.text for one in joined).encode()), source)
    lines = [normal.without_colour(line).decode("utf-8", "replace").strip("\r\n") for line in raw.split(b"\n")]
    seen = {(hit.code, hit.evidence.line) for hit in found.hits if hit.evidence.source == source}
    for hit in again.found.hits:
        one = joined[hit.evidence.line - 1]
        span = range(one.line, one.line + one.count)
        if found.times[hit.code] >= _ENOUGH or any((hit.code, line) in seen for line in span):
            continue
        seen |= {(hit.code, line) for line in span}
        shown = "\n".join(lines[one.line - 1 : one.line - 1 + one.count])
        found.hits.append(Hit(hit.code, Evidence(source, one.line, shown), hit.values))
        found.times[hit.code] += 1
    for name, fact in again.found.facts.items():
        found.facts.setdefault(name, fact)
