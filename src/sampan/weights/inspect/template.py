"""Chat templates: parsed, never run. What no honest template does is named.

A template is a program that serving software runs on every request; transformers and vLLM run it in Jinja's sandbox,
whose escapes all go through underscored attributes. source: Jinja's documentation, "Sandbox".
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from jinja2 import Environment, TemplateError, nodes
from jinja2.ext import Extension
from jinja2.parser import Parser

from sampan.errors import BadInputError
from sampan.i18n import text
from sampan.spec.model_report import ReportTemplate
from sampan.spec.plan import Reason

LONGEST = 1 << 20  # characters; the longest known template has some 30 000
_MOST_TURNS = 100_000  # of a range() with constant bounds
_DANGEROUS_NAMES = frozenset(
    {"lipsum", "cycler", "joiner", "self", "config", "request", "url_for", "get_flashed_messages"}
)
_DANGEROUS_WORDS = re.compile(r"\b(?:popen|subprocess|os\.system|builtins|eval|exec|__import__)\b")
_HIDDEN = re.compile("[\u202a-\u202e\u2066-\u2069\u200b\u2060\U000e0000-\U000e007f]")  # reordered or unseen text
_ADDRESS = re.compile(r"https?://[^\s'\"<>]{4,}", re.IGNORECASE)


class _Generation(Extension):
    """``{% generation %}``: how transformers marks the assistant's words; its inside is looked at."""

    tags = {"generation"}  # noqa: RUF012  (jinja's own way)

    def parse(self, parser: Parser) -> list[nodes.Node]:
        """See jinja2.ext.Extension."""
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


_JINJA = Environment(extensions=["jinja2.ext.loopcontrols", "jinja2.ext.do", _Generation], autoescape=False)  # noqa: S701  (nothing is rendered)


def examine(name: str, origin: str, source: str) -> ReportTemplate:
    """Describe one template with all that is suspicious in it."""
    found = dict.fromkeys(_findings(source))
    digest = hashlib.sha256(source.encode("utf-8", "replace")).hexdigest()
    return ReportTemplate(name, origin, len(source), digest, tuple(found))


def is_hostile(template: ReportTemplate) -> bool:
    """Whether it holds what only an attack needs; the other findings are for people to judge."""
    return any(reason.key in ("template.escape", "template.huge", "template.endless") for reason in template.findings)


def refuse_hostile(path: Path, templates: Iterable[ReportTemplate]) -> None:
    """Raise BadInputError ``weights.template`` for the first hostile one; ``path`` is the model's."""
    for template in templates:
        if is_hostile(template):
            what = "; ".join(text(finding.key, **dict(finding.values)) for finding in template.findings)
            raise BadInputError("weights.template", path=str(path), template=template.origin, what=what)


def _findings(source: str) -> Iterator[Reason]:
    if len(source) > LONGEST:
        yield Reason("template.huge", (("characters", str(len(source))),))
        return
    if match := _HIDDEN.search(source):
        yield Reason("template.hidden", (("character", f"U+{ord(match[0]):04X}"),))
    if match := _ADDRESS.search(source):
        yield Reason("template.address", (("address", match[0][:60]),))
    try:
        tree = _JINJA.parse(source)
    except (TemplateError, RecursionError, ValueError) as error:
        yield Reason("template.syntax", (("detail", str(error)[:120] or type(error).__name__),))
        if match := _DANGEROUS_WORDS.search(source) or re.search(r"__\w+__", source):
            yield _escape(match[0])
        return
    for node in tree.find_all(_LOOKED_AT):
        yield from _of_node(node)


_LOOKED_AT = (nodes.Getattr, nodes.Getitem, nodes.Filter, nodes.Call, nodes.Concat, nodes.Add, nodes.Const)


def _of_node(node: nodes.Node) -> Iterator[Reason]:
    if isinstance(node, nodes.Getattr):
        if node.attr.startswith("_") or (isinstance(node.node, nodes.Name) and node.node.name in _DANGEROUS_NAMES):
            yield _escape(node.attr)
    elif isinstance(node, nodes.Getitem):
        yield from _suspicious(_constant(node.arg))
    elif isinstance(node, nodes.Filter) and node.name == "attr":
        yield _escape("|attr")
    elif isinstance(node, nodes.Call):
        yield from _of_call(node)
    elif isinstance(node, nodes.Const) and isinstance(node.value, str) and "__" in node.value:
        yield Reason("template.underscores", (("what", node.value[:40]),))
    elif isinstance(node, nodes.Concat | nodes.Add):
        yield from _suspicious(_constant(node))


def _of_call(node: nodes.Call) -> Iterator[Reason]:
    called = node.node
    if isinstance(called, nodes.Name) and called.name == "range":
        if any(isinstance(argument, nodes.Pow) for argument in node.args):
            yield Reason("template.endless", (("count", "**"),))
        bounds = [_constant(argument) for argument in node.args]
        if any(isinstance(bound, int) and abs(bound) > _MOST_TURNS for bound in bounds):
            yield Reason(
                "template.endless", (("count", str(max(bound for bound in bounds if isinstance(bound, int)))),)
            )
    if isinstance(called, nodes.Getattr) and called.attr in ("format", "format_map"):
        yield from _suspicious(_constant(called.node))  # "{0.__class__}".format(x)


def _suspicious(value: object) -> Iterator[Reason]:
    if isinstance(value, str) and ("__" in value or _DANGEROUS_WORDS.search(value)):
        yield _escape(value[:40])


def _constant(node: nodes.Node) -> object:
    """What a constant expression gives, put together from its parts; None where it is not constant."""
    try:
        return node.as_const() if isinstance(node, nodes.Expr) and _is_small(node) else None
    except (nodes.Impossible, TemplateError, ValueError, TypeError, OverflowError, MemoryError):
        return None


def _is_small(node: nodes.Expr) -> bool:
    """Joining texts costs nothing; powers and products can cost everything."""
    costly = (nodes.Pow, nodes.Mul, nodes.Call, nodes.Filter, nodes.Test)
    return not isinstance(node, costly) and next(node.find_all(costly), None) is None


def _escape(what: str) -> Reason:
    return Reason("template.escape", (("what", what),))
