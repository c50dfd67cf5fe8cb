"""``sampan weights import`` and ``quantize``: make the file that the engine loads, and know what it costs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sampan import i18n
from sampan.cli import options, output, weights_onnx
from sampan.errors import ExitCode, UsageError, VerificationError

if TYPE_CHECKING:
    from sampan.flow.quantizing import Quantized
    from sampan.spec.gate import GateBounds, GateReport
    from sampan.spec.weights import WeightsInfo

_FORMS = ("gguf", "onnx")
Texts = Annotated[Path | None, typer.Option("--texts", help=i18n.text("gate.opt.texts"), metavar="FILE")]
ImportOut = Annotated[Path | None, typer.Option("--out", "-o", help=i18n.text("import.opt.out"), file_okay=False)]
OutFolder = Annotated[Path | None, typer.Option("--out", "-o", help=i18n.text("gate.opt.out"), file_okay=False)]


def register(group: typer.Typer) -> None:
    """Add the verbs."""
    import_.__name__ = "import"  # the verb's name, which Python keeps for itself
    options.add_to("weights", group, import_)
    options.add_to("weights", group, quantize)


def import_(
    source: str = typer.Argument(..., help=i18n.text("import.opt.folder"), metavar="FOLDER"),
    form: str = typer.Option("gguf", "--to", help=i18n.text("import.opt.to"), metavar="gguf|onnx"),
    kind: str = typer.Option("original", "--type", help=i18n.text("import.opt.type"), metavar="T"),
    pre: str = typer.Option("", "--pre-tokenizer", help=i18n.text("import.opt.pre"), metavar="NAME"),
    torch: str = typer.Option("", "--torch", help=i18n.text("import.opt.torch"), metavar="REQUIREMENT"),
    out: ImportOut = None,
    json: options.Json = False,
) -> None:
    """A folder as one unquantized GGUF, or as ONNX, with its golden set."""
    from sampan.cli import weights_lines
    from sampan.flow.converter_env import TORCH
    from sampan.flow.importing import import_model
    from sampan.flow.tools import workshop_tools

    if form.lower() not in _FORMS:
        raise UsageError("import.form", found=form, known=", ".join(_FORMS))
    if form.lower() == "onnx":
        weights_onnx.run(source, kind.lower(), torch or TORCH, out)
        return
    info = import_model(source, kind.lower(), workshop_tools(output.progress()), torch=torch or TORCH, pre=pre)
    if pre and info.tokenizer_pre == pre:
        output.error_console().print(i18n.text("import.pre_warning", pre=pre), style="yellow", markup=False)
    elif pre:
        output.error_console().print(i18n.text("import.pre_ignored", pre=pre), style="yellow", markup=False)
    if out is not None:
        info = _take_out(info, out)
    output.print_value(info, lambda: output.facts_table(info.name, weights_lines.rows(info)))


def quantize(
    source: str = typer.Argument(..., help=i18n.text("cli.opt.weights"), metavar="W"),
    types: str = typer.Option("", "--types", help=i18n.text("gate.opt.types"), metavar="A,B,…"),
    texts: Texts = None,
    min_cosine: float = typer.Option(None, "--min-cosine", min=0, max=1, help=i18n.text("gate.opt.min-cosine")),
    min_overlap: float = typer.Option(None, "--min-overlap", min=0, max=1, help=i18n.text("gate.opt.min-overlap")),
    min_spearman: float = typer.Option(
        None, "--min-spearman", min=-1, max=1, help=i18n.text("gate.opt.min-spearman")
    ),
    max_kl: float = typer.Option(None, "--max-kl", min=0, max=100, help=i18n.text("gate.opt.max-kl")),
    from_quantized: bool = typer.Option(False, "--from-quantized", help=i18n.text("gate.opt.from-quantized")),
    all_files: bool = typer.Option(False, "--all", help=i18n.text("gate.opt.all")),
    out: OutFolder = None,
    json: options.Json = False,
) -> None:
    """Make several types, measure each, choose."""
    from sampan.flow.quantizing import quantize as run
    from sampan.flow.tools import workshop_tools
    from sampan.weights.gate import facts
    from sampan.weights.gate.texts import read_texts

    asked = {"min_cosine": min_cosine, "min_overlap": min_overlap, "min_spearman": min_spearman, "max_kl": max_kl}
    bounds: GateBounds = replace(
        facts.default_bounds(), **{name: value for name, value in asked.items() if value is not None}
    )
    kinds = facts.parse_types(types) if types else facts.tried_types()
    own = read_texts(texts) if texts else ()
    made = run(source, kinds, bounds, workshop_tools(output.progress()), texts=own, from_quantized=from_quantized)
    if out is not None:
        _write(made, out, all_files=all_files)
    _show(made.report, out)
    if made.chosen is None:
        if output.wants_json():  # the report says it all; a second document would be none
            raise SystemExit(int(ExitCode.VERIFICATION_FAILED))
        raise VerificationError("gate.none", types=", ".join(row.quantization for row in made.report.rows))


def _show(report: GateReport, out: Path | None) -> None:
    from sampan.cli import gate_lines

    output.print_value(
        report, lambda: output.facts_table(report.model, gate_lines.rows(report), gate_lines.headings(report))
    )
    if output.wants_json():
        return
    output.console().print(gate_lines.note(report))
    if report.chosen is not None and out is not None:
        output.console().print(i18n.text("gate.next", path=str(out / "weights.json")), markup=False)


def _write(made: Quantized, out: Path, *, all_files: bool) -> None:
    """The report in three forms, and the files. Raises FilesystemError."""
    from sampan.cli import gate_lines
    from sampan.edge.files import copy_atomically, write_atomically
    from sampan.spec.codec import to_json
    from sampan.weights.gate.plot import svg

    write_atomically(out / "gate.json", to_json(made.report).encode())
    write_atomically(out / "gate.md", gate_lines.markdown(made.report).encode())
    write_atomically(out / "gate.svg", svg(made.report).encode())
    for row in made.report.rows:
        if all_files and row.quantization != made.report.chosen:
            copy_atomically(Path(row.path), out / Path(row.path).name)
    if made.chosen is not None:
        _take_out(made.chosen, out)


def _take_out(info: WeightsInfo, out: Path) -> WeightsInfo:
    """Copy the file and its golden set into ``out``, with the artefact that names them there."""
    from sampan.edge.files import copy_atomically, write_atomically
    from sampan.spec.codec import to_json

    path = (out / info.file_name).absolute()
    copy_atomically(Path(info.path), path)
    golden = (out / "golden.json").absolute() if info.golden_path else None
    if golden is not None and info.golden_path is not None:
        copy_atomically(Path(info.golden_path), golden)
    here = replace(info, path=str(path), golden_path=str(golden) if golden else None)
    write_atomically(out / "weights.json", to_json(here).encode())
    return here
