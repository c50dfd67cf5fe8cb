"""``sampan runtime``: the private Python of one architecture."""

from __future__ import annotations

import typer

from sampan import i18n
from sampan.cli import options, output
from sampan.errors import UsageError


def register(app: typer.Typer) -> None:
    """Add the verb."""
    options.add(app, runtime, options.STAGES)


def _checked(arch: str) -> str:
    """Raises UsageError for a word that is no architecture's name, with the name that it is likely to mean."""
    from sampan.spec import arch as names

    if arch not in names.KNOWN:
        raise UsageError("cli.arch", arch=arch, meant=names.meant(arch) or ", ".join(names.KNOWN))
    return arch


def runtime(
    arch: str = typer.Argument(..., help=i18n.text("cli.opt.arch"), metavar="ARCH", callback=_checked),
    refresh: bool = typer.Option(False, "--refresh", help=i18n.text("cli.opt.refresh")),
    out: options.SaveTo = None,
    json: options.Json = False,
) -> None:
    """Make it from Debian's packages, or show the one in the cache."""
    from sampan.flow import stages
    from sampan.flow.tools import workshop_tools

    tree = stages.runtime(arch, workshop_tools(output.progress()), refresh=refresh)
    options.save(tree, out)
    rows = [(each.name, each.version, each.sha256) for each in tree.packages]
    title = f"CPython {tree.python}, glibc {tree.glibc}: {tree.path}"
    output.print_value(tree, lambda: output.facts_table(title, rows))
