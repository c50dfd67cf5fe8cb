"""All cases, read once; and the index by which the scanner finds the few that a text may concern."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from sampan.doctor import data, literals, schema
from sampan.doctor.model import Case, FactPattern
from sampan.doctor.normal import FORM
from sampan.errors import BadInputError, UsageError

_LETTERS, _OTHER = re.compile(rb"[a-z]+"), re.compile(rb"[\x80-\xff]+")

#: facts that a profile or the machine may give; conditions and texts may name them
MACHINE_FACTS = (
    "arch", "features", "page_size", "cpu", "vendor", "kernel", "os", "glibc", "glibcxx", "cxxabi", "memory_mib",
    "memory_limit_mib", "cpu_quota", "systemd", "cgroup", "python", "gpu", "compute_capability", "driver",
    "selinux", "kysec", "fapolicyd", "noexec_prefix", "noexec_tmp", "prefix", "tmpdir", "unit", "unit_state",
    "unit_result", "exit_code", "exit_status", "memlock", "nofile", "nproc", "port", "port_owner", "health",
    "health_by_proxy", "proxy", "oom_kills", "throttled_percent", "disk_free_mib", "restarts", "last_words",
    "clock_year", "here",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Needle:
    """A pattern of a case, or of a fact, and the words without which it cannot match.

    ``musts`` are in the form of forms (FORM); ``exact`` are those with digits, as they must stand.
    ``blind``: one digit is as good as another to the pattern.
    """

    pattern: str
    case: Case | None
    fact: str
    musts: tuple[bytes, ...]
    exact: tuple[bytes, ...]
    blind: bool

    @property
    def name(self) -> str:
        """The case's code, or ``=`` and the fact's name."""
        return self.case.code if self.case else f"={self.fact}"


@dataclass(frozen=True)
class Anchor:
    """A needed word, in the form of forms, with its needles. Without one of its letter runs it is not in a text.

    ``whole`` are runs that the word itself delimits, ``parts`` those at its ends, which may go on in the text;
    ``other`` is its longest run in another script than ASCII.
    """

    word: bytes
    whole: frozenset[bytes]
    parts: tuple[bytes, ...]
    other: bytes
    needles: tuple[Needle, ...]


@cache
def cases() -> dict[str, Case]:
    """Every case by its code. Raises BadInputError where the data is wrong."""
    found: dict[str, Case] = {}
    known = (*MACHINE_FACTS, *(fact.name for fact in facts()))
    for file in data.case_files():
        for case in schema.read_cases(data.table(file), file, known):
            if case.code in found:
                raise BadInputError("doctor.case", path=file, code=case.code, detail="the code is taken")
            found[case.code] = case
    for case in found.values():
        unknown = {*case.instead_of, *case.explains, *case.misleading} - set(found)
        if unknown:
            raise BadInputError(
                "doctor.case", path=case.file, code=case.code, detail=f"unknown codes {sorted(unknown)}"
            )
    return found


@cache
def facts() -> tuple[FactPattern, ...]:
    """What a text may tell of its machine."""
    return schema.read_facts(data.table("facts.toml"), "facts.toml")


def case(code: str) -> Case:
    """One case. Raises UsageError ``doctor.unknown-code``."""
    if code not in cases():
        from difflib import get_close_matches  # noqa: PLC0415

        near = get_close_matches(code, cases(), n=4, cutoff=0.4) or sorted(cases())[:4]
        raise UsageError("doctor.unknown-code", code=code, known=", ".join(near))
    return cases()[code]


@cache
def index() -> tuple[Anchor, ...]:
    """The scanner's index over all cases and facts."""
    owners: list[tuple[str, Case | None, str]] = []
    owners += [(pattern, one, "") for one in cases().values() for pattern in one.match]
    owners += [(fact.match, None, fact.name) for fact in facts()]
    by_word: dict[bytes, list[Needle]] = {}
    for pattern, one, fact in owners:
        needle = _needle(pattern, one, fact)
        for word in dict.fromkeys(word.encode().translate(FORM) for word in sorted(literals.words(pattern))):
            by_word.setdefault(word, []).append(needle)
    return tuple(anchor(word, tuple(needles)) for word, needles in by_word.items())


def _needle(pattern: str, case: Case | None, fact: str) -> Needle:
    musts = sorted((word.encode() for word in literals.musts(pattern)), key=len, reverse=True)
    exact = tuple(word for word in musts if word.translate(FORM) != word)
    return Needle(
        pattern, case, fact, tuple(word.translate(FORM) for word in musts), exact, literals.digit_blind(pattern)
    )


def anchor(word: bytes, needles: tuple[Needle, ...]) -> Anchor:
    """A word with its runs of letters."""
    runs = [(match.start(), match.end(), match[0]) for match in _LETTERS.finditer(word)]
    whole = frozenset(run for start, end, run in runs if start > 0 and end < len(word))
    parts = sorted((run for start, end, run in runs if start == 0 or end == len(word)), key=len, reverse=True)
    other = max(_OTHER.findall(word), key=len, default=b"")
    return Anchor(word, whole, tuple(parts), other, needles)
