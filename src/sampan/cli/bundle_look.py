"""``sampan bundle inspect | diff``: what a bundle is, and what another one changes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from sampan import i18n
from sampan.cli import options, output
from sampan.cli.sizes import show_size

if TYPE_CHECKING:
    from sampan.bundle.diff import BundleDiff
    from sampan.bundle.inspect import BundleFacts

_MOST_SHOWN = 20


def register(group: typer.Typer) -> None:
    """Add the verbs."""
    for verb in (inspect, diff):
        options.add_to("bundle", group, verb)


def inspect(
    bundle: Path = typer.Argument(..., help=i18n.text("cli.opt.bundle-or-tar"), metavar="BUNDLE"),
    json: options.Json = False,
) -> None:
    """Read manifest and list of files; hash and execute nothing."""
    from sampan.bundle.inspect import inspect as look

    facts = look(bundle)
    title = f"{facts.name}-{facts.release}"
    output.print_value(facts, lambda: output.facts_table(title, _rows(facts)))


def _rows(facts: BundleFacts) -> list[tuple[str, ...]]:
    told = facts.predicate
    yes, no = i18n.text("cli.bundle.there"), i18n.text("cli.bundle.not-there")
    signers = ", ".join(f"SHA256:{one}" for one in facts.signers) or no
    return [
        (i18n.text("row.file"), facts.path),
        (i18n.text("row.size"), f"{show_size(facts.size_bytes)} ({facts.files})"),
        *(("", f"{part} {show_size(size)}") for part, size in facts.parts.items()),
        (i18n.text("row.target"), f"{told.get('target')} ({told.get('arch')})"),
        (i18n.text("row.model"), f"{told.get('model')} ({_of(told, 'weights').get('quantization')})"),
        (i18n.text("row.engine"), f"{_of(told, 'engine').get('name')} {_of(told, 'engine').get('version')}"),
        ("Python", f"{_of(told, 'runtime').get('python')}, glibc {_of(told, 'runtime').get('glibc')}"),
        (i18n.text("row.audit"), str(_of(told, "audit").get("status"))),
        (i18n.text("row.rehearsal"), str(_of(told, "rehearsal").get("status"))),
        ("sbom.cdx.json", yes if facts.materials else no),
        ("APPROVAL.txt", yes if facts.approval else no),
        (i18n.text("row.claimed-signer"), signers),
    ]


def _of(told: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = told.get(name)
    return found if isinstance(found, Mapping) else {}


def diff(
    before: Path = typer.Argument(..., help=i18n.text("cli.opt.before"), metavar="OLD"),
    after: Path = typer.Argument(..., help=i18n.text("cli.opt.after"), metavar="NEW"),
    json: options.Json = False,
) -> None:
    """Compare by digests and facts; read no file's content."""
    from sampan.bundle.diff import diff as compare

    found = compare(before, after)
    output.print_value(found, lambda: "\n".join(_lines(found)))


def _lines(found: BundleDiff) -> list[str]:
    lines = [f"{one.what}: {one.before or '-'} → {one.after or '-'}" for one in found.facts]
    for mark, paths in (("+", found.added), ("-", found.removed), ("*", found.changed)):
        lines += [f"{mark} {path}" for path in paths[:_MOST_SHOWN]]
        rest = len(paths) - _MOST_SHOWN
        lines += [f"{mark} {i18n.text('cli.verify.more', count=rest).strip()}"] if rest > 0 else []
    lines += [f"= {was} → {now}" for was, now in found.moved[:_MOST_SHOWN]]
    counts = {"added": len(found.added), "removed": len(found.removed), "changed": len(found.changed)}
    size = show_size(found.travels_bytes)
    lines.append(i18n.text("cli.bundle.diff-sum", same=found.same, moved=len(found.moved), size=size, **counts))
    return lines
