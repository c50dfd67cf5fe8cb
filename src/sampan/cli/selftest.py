"""``sampan selftest``: golden questions to the running service."""

from __future__ import annotations

import typer

from sampan import i18n
from sampan.cli import options, output
from sampan.errors import ExitCode


def register(app: typer.Typer) -> None:
    """Add the verb."""
    options.add(app, selftest, options.TARGET_PANEL)


def selftest(
    url: str | None = typer.Option(None, "--url", help=i18n.text("cli.opt.url")),
    once: bool = typer.Option(False, "--once", help=i18n.text("cli.opt.once")),
    json: options.Json = False,
) -> None:
    """Compare and show each answer; exit code 11 where one is wrong."""
    from sampan.flow import asking, target

    result = asking.selftest(target.bundle_root(), url, once=once)
    rows = [
        ("✓" if each.ok else "✗", each.text[:48], f"{each.score:.4f}", f"{each.minimum:g}")
        for each in (*result.embeddings, *result.chats)
    ]
    headings = ("", i18n.text("cli.selftest.text"), i18n.text("cli.selftest.score"), i18n.text("cli.selftest.needed"))
    title = i18n.text(f"cli.selftest.title-{result.basis}", model=result.model, url=result.url)
    output.print_value(result, lambda: output.facts_table(title, rows, headings))
    if not result.ok:
        raise SystemExit(int(ExitCode.SERVICE))
