"""A case of the knowledge, and what the doctor says of one text or machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

SEVERITIES = ("error", "warning", "info")
CONFIDENCES = ("sure", "likely", "possible")
STATUSES = ("fixable", "no-fix")
TEXTS = ("what", "cause", "fix", "avoid")


@dataclass(frozen=True)
class Cause:
    """One of several causes that print the same text. ``when``: conditions on facts, all must hold.

    ``texts`` maps a language to ``cause`` and ``fix``; ``prove`` is a command.
    """

    name: str
    when: tuple[str, ...]
    prove: str
    texts: Mapping[str, Mapping[str, str]]


@dataclass(frozen=True)
class Collect:
    """How a value is gathered over all hits: every distinct ``each``, or the highest version ``max`` per ``by``."""

    name: str
    each: str = ""
    max: str = ""
    by: str = ""


@dataclass(frozen=True)
class Case:
    """One known failure; see docs/doctor/adding-a-case.md for what each field means."""

    code: str
    rank: int
    severity: str
    confidence: str
    source: tuple[str, ...]
    texts: Mapping[str, Mapping[str, str]]
    prove: str = ""
    match: tuple[str, ...] = ()
    near: tuple[str, ...] = ()
    not_near: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    when: tuple[str, ...] = ()
    must_know: bool = False
    symptom: bool = False
    here: bool = False
    status: str = "fixable"
    collect: tuple[Collect, ...] = ()
    derive: str = ""
    causes: tuple[Cause, ...] = ()
    instead_of: tuple[str, ...] = ()
    explains: tuple[str, ...] = ()
    misleading: tuple[str, ...] = ()
    yes: tuple[str, ...] = ()
    no: tuple[str, ...] = ()
    file: str = ""

    @property
    def topic(self) -> str:
        """The part of the code before the dot."""
        return self.code.partition(".")[0]


@dataclass(frozen=True)
class FactPattern:
    """A fact of the machine that a text may tell: pattern with the group ``value``."""

    name: str
    match: str


@dataclass(frozen=True)
class Evidence:
    """The exact line: ``source`` is a file's path, ``-`` or what was asked of the machine; ``line`` counts from 1."""

    source: str
    line: int
    text: str


@dataclass(frozen=True)
class Hit:
    """One place where a case's pattern was found; ``key`` orders hits of one source."""

    code: str
    evidence: Evidence
    values: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class PossibleCause:
    """A cause that remains. ``decided`` says whether a known fact speaks for it."""

    name: str
    cause: str
    prove: str
    fix: str
    decided: bool
    decided_by: str = ""


@dataclass(frozen=True)
class Finding:
    """``role``: cause, consequence or red-herring; of the last two, ``because`` names the finding that explains it.

    ``times`` counts the lines that show it, beyond 200 perhaps not all; ``evidence`` keeps the first few.
    """

    code: str
    severity: str
    confidence: str
    status: str
    role: str
    because: str
    what: str
    cause: str
    prove: str
    fix: str
    avoid: str
    causes: tuple[PossibleCause, ...]
    evidence: tuple[Evidence, ...]
    times: int
    values: dict[str, str]
    source: tuple[str, ...]


@dataclass(frozen=True)
class Diagnosis:
    """The findings, most telling first. ``unknown`` holds lines that look like failures but are not recognised.

    ``left_out``: about how many lines hold words of failures, and were too many to be read one by one.
    """

    SCHEMA: ClassVar[str] = "sampan/diagnosis/1"

    inputs: tuple[str, ...]
    lines: int
    size_bytes: int
    facts: dict[str, str]
    findings: tuple[Finding, ...]
    unknown: tuple[Evidence, ...] = ()
    left_out: int = 0

    @property
    def known(self) -> tuple[Finding, ...]:
        """The causes above information: what the reader came for."""
        return tuple(one for one in self.findings if one.role == "cause" and one.severity != "info")
