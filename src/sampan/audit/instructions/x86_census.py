"""The census of x86-64."""

from __future__ import annotations

from sampan.audit.instructions import x86, x86sites
from sampan.audit.instructions.binary import Binary
from sampan.audit.instructions.classify import Classifier
from sampan.audit.instructions.facts import CodeFacts
from sampan.audit.instructions.finds import Finder
from sampan.audit.instructions.functions import Functions
from sampan.audit.instructions.imports import Imports
from sampan.audit.instructions.knowledge import load
from sampan.audit.instructions.reach import Code
from sampan.audit.instructions.x86flow import X86Flow


def read(binary: Binary, program: bool) -> CodeFacts:
    """What ``census`` promises."""
    size = sum(span.end - span.start for span in binary.code)
    functions = Functions(binary)
    hits = x86.scan(binary, functions)
    if not hits:
        return CodeFacts((), size)
    knowledge, imports = load(), Imports(binary, "x86_64")
    code = Code(binary, functions, imports, X86Flow(binary, imports, knowledge), knowledge)
    finder = Finder(
        lambda low, high: x86.each(binary, functions, low, high), lambda targets: x86sites.find(binary, targets)
    )
    classifier = Classifier(code, hits, finder)
    return CodeFacts(classifier.uses(program=program), size, classifier.limits())
