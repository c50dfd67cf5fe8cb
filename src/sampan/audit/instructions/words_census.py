"""The census of the architectures whose instructions are words of 32 bits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sampan.audit.instructions import a64sites, lasites, tables
from sampan.audit.instructions.a64flow import A64Flow
from sampan.audit.instructions.binary import Binary
from sampan.audit.instructions.classify import Classifier
from sampan.audit.instructions.facts import CodeFacts
from sampan.audit.instructions.finds import Find, Finder
from sampan.audit.instructions.functions import Functions
from sampan.audit.instructions.imports import Imports
from sampan.audit.instructions.knowledge import load
from sampan.audit.instructions.laflow import LoongArchFlow
from sampan.audit.instructions.reach import Code
from sampan.audit.instructions.tables import Group
from sampan.audit.instructions.words import Found, Hits, Scanner

_FLOWS: dict[str, type[A64Flow] | type[LoongArchFlow]] = {"aarch64": A64Flow, "loongarch64": LoongArchFlow}
_SITES = {"aarch64": a64sites, "loongarch64": lasites}


def read(arch: str, binary: Binary, program: bool) -> CodeFacts:
    """What ``census`` promises."""
    functions = Functions(binary)
    called = _SITES[arch].calls(binary)
    functions.add(called[~functions.covered(called)])
    scanner = Scanner(binary, functions, arch)
    hits = scanner.scan()
    if not hits.found:
        return CodeFacts((), hits.code_bytes)
    knowledge, imports = load(), Imports(binary, arch)
    code = Code(binary, functions, imports, _FLOWS[arch](binary, imports, knowledge), knowledge)
    groups = tables.word_table(arch).groups

    def each(low: int, high: int) -> Iterator[Find]:
        for address, number in scanner.within(low, high):
            group = groups[number - 1]
            yield Find(address, (group.feature,), group.name if group.harmless else "")

    finder = Finder(each, lambda targets: _SITES[arch].find(binary, targets))
    more = [_find(groups[number - 1], one) for number, one in hits.more.items()]
    classifier = Classifier(code, _by_function(hits, groups), finder, more)
    return CodeFacts(classifier.uses(program=program), hits.code_bytes, classifier.limits())


def _by_function(hits: Hits, groups: Sequence[Group]) -> dict[int, list[Find]]:
    found: dict[int, list[Find]] = {}
    for (index, number), one in hits.found.items():
        found.setdefault(index, []).append(_find(groups[number - 1], one))
    return found


def _find(group: Group, one: Found) -> Find:
    return Find(one.first, (group.feature,), group.name if group.harmless else "", one.count)
