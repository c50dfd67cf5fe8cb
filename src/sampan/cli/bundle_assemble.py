"""``sampan bundle WORK``: assemble the folder from a work folder's artefacts."""

from __future__ import annotations

from pathlib import Path

import typer

from sampan import i18n
from sampan.cli import options, output


def register(group: typer.Typer) -> None:
    """Add the verb."""
    options.add_to("bundle", group, assemble)


def assemble(
    work: Path = typer.Argument(..., help=i18n.text("cli.opt.work"), metavar="WORK"),
    json: options.Json = False,
) -> None:
    """Take artefacts 01 to 06 and give 07."""
    from sampan.cli.sizes import show_size
    from sampan.flow import stages
    from sampan.flow.artefacts import WorkFolder
    from sampan.flow.tools import workshop_tools
    from sampan.spec.artefacts import EngineBuild, RuntimeTree, Wheelhouse
    from sampan.spec.plan import Plan
    from sampan.spec.target import TargetProfile
    from sampan.spec.weights import WeightsInfo

    folder = WorkFolder(work)
    made = stages.assemble(
        folder.load("plan", Plan),
        folder.load("survey", TargetProfile),
        folder.load("weights", WeightsInfo),
        folder.load("build", EngineBuild),
        folder.load("runtime", RuntimeTree),
        folder.load("wheelhouse", Wheelhouse),
        work / "bundle",
        workshop_tools(output.progress()),
    )
    folder.save("bundle", made)
    rows = [(i18n.text("row.folder"), made.path), (i18n.text("row.size"), show_size(made.size_bytes))]
    output.print_value(made, lambda: output.facts_table(f"{made.name}-{made.release}", rows))
