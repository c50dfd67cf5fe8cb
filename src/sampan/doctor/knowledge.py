"""All cases, read once; and the index by which the scanner finds the few that a text may concern."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from sampan.doctor import data, patterns, schema
from sampan.doctor.model import Case, FactPattern
from sampan.errors import BadInputError, UsageError

_LETTERS, _OTHER = re.compile(rb"[a-z]+"), re.compile(rb"[\x80-\xff]+")

#: facts that a profile or the machine may give; conditions and texts may name them
MACHINE_FACTS = (
    "arch", "features", "page_size", "cpu", "vendor", "kernel", "os", "glibc", "glibcxx", "cxxabi", "memory_mib",
    "memory_limit_mib", "cpu_quota", "systemd", "cgroup", "python", "gpu", "compute_capability", "driver",
    "selinux", "kysec", "fapolicyd", "noexec_prefix", "noexec_tmp", "prefix", "tmpdir", "unit", "unit_state",
    "unit_result", "exit_code", "exit_status", "memlock", "nofile", "nproc", "port", "port_owner", "health",
    "health_by_proxy", "proxy", "oom_kills", "throttled_percent", "disk_free_mib", "restarts", "clock_year", "here",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Needle:
    """One needed word: the case's (or the fact's) pattern is tried on lines that hold it."""

    word: bytes
    pattern: str
    case: Case | None
    fact: str = ""
    form: bytes = b""  # the word without digits: forms of lines have none either


@dataclass(frozen=True)
class Anchor:
    """A needed word with its needles. A text without one of its letter runs need not be searched for it.

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
    by_word: dict[str, list[Needle]] = {}
    for pattern, one, fact in owners:
        for word in patterns.words(pattern):
            form = "".join(letter for letter in word if not letter.isdigit())
            by_word.setdefault(word, []).append(Needle(word.encode(), pattern, one, fact, form.encode()))
    return tuple(anchor(word.encode(), tuple(needles)) for word, needles in by_word.items())


def anchor(word: bytes, needles: tuple[Needle, ...]) -> Anchor:
    """A word with its runs of letters."""
    runs = [(match.start(), match.end(), match[0]) for match in _LETTERS.finditer(word)]
    whole = frozenset(run for start, end, run in runs if start > 0 and end < len(word))
    parts = sorted((run for start, end, run in runs if start == 0 or end == len(word)), key=len, reverse=True)
    other = max(_OTHER.findall(word), key=len, default=b"")
    return Anchor(word, whole, tuple(parts), other, needles)
