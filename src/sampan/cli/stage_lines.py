"""What ``sampan ship`` says of each stage and at its end: pure text from the values."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sampan import i18n
from sampan.cli.options import audit_counts
from sampan.cli.sizes import show_size

if TYPE_CHECKING:
    from sampan.flow.ship import Shipped, StageDone
    from sampan.spec.artefacts import Package, Rehearsal

_GOLDEN = "golden-"

Rows = list[tuple[str, ...]]


def describe(done: StageDone) -> str:
    """One line on the value of a stage."""
    return _DESCRIBE[done.stage](done.value)


def _weights(value: Any) -> str:
    return i18n.text(
        "line.weights", file=value.file_name, size=show_size(value.size_bytes), architecture=value.architecture
    )


def _plan(value: Any) -> str:
    return i18n.text(
        "line.plan",
        variants=", ".join(variant.name for variant in value.variants),
        context=value.settings.context,
        memory=show_size(value.memory_total_bytes),
    )


def _audit(value: Any) -> str:
    return i18n.text("line.audit", **audit_counts(value))


def _rehearsal(value: Any) -> str:
    if value.status == "skipped":
        return f"[yellow]{i18n.text('line.rehearse-skipped', reason=value.reason)}[/]"
    return i18n.text(
        "line.rehearse",
        passed=sum(check.ok for check in value.checks),
        checks=len(value.checks),
        cpu=value.cpu_model,
        page=value.page_size >> 10,
    )


_DESCRIBE: dict[str, Callable[[Any], str]] = {
    "survey": lambda value: f"{value.name} ({value.cpu.model}, {value.arch})",
    "weights": _weights,
    "plan": _plan,
    "build": lambda value: f"{value.engine} {value.version}, {len(value.variants)} × {value.arch}",
    "runtime": lambda value: f"CPython {value.python}, glibc {value.glibc}",
    "wheelhouse": lambda value: i18n.text("line.wheelhouse", count=len(value.wheels)),
    "bundle": lambda value: i18n.text("line.bundle", files=value.files, size=show_size(value.size_bytes)),
    "audit": _audit,
    "rehearse": _rehearsal,
    "pack": lambda value: f"{Path(value.path).name} ({show_size(value.size_bytes)})",
}


def built_rows(shipped: Shipped) -> Rows:
    """What was built."""
    package, plan = shipped.package, shipped.plan
    return [
        (i18n.text("row.file"), package.path),
        (i18n.text("row.size"), show_size(package.size_bytes)),
        ("SHA-256", package.sha256),
        (i18n.text("row.target"), plan.target),
        (i18n.text("row.model"), f"{plan.model} ({plan.quantization})"),
        (i18n.text("row.variants"), ", ".join(variant.name for variant in plan.variants)),
        (i18n.text("row.work"), str(shipped.work)),
    ]


def measured_rows(shipped: Shipped) -> Rows:
    """What was measured: audit, rehearsal, time of each stage."""
    rows: Rows = [
        (i18n.text("row.audit"), _audit(shipped.audit)),
        (i18n.text("row.rehearsal"), _rehearsal(shipped.rehearsal)),
    ]
    for name, detail, ok in check_lines(shipped.rehearsal):
        rows.append(("", f"{'✓' if ok else '✗'} {name}: {detail}"))
    for timing in shipped.rehearsal.timings:
        rows.append(("", i18n.text("row.timing", name=timing.name, seconds=f"{timing.seconds:.1f}")))
    total = sum(done.seconds for done in shipped.stages)
    rows.append((i18n.text("row.total"), f"{total:.1f} s"))
    return rows


def check_lines(rehearsal: Rehearsal) -> list[tuple[str, str, bool]]:
    """(name, detail, ok) of each check; the golden answers that are right share one line."""
    right = [check for check in rehearsal.checks if check.ok and check.name.startswith(_GOLDEN)]
    lines = [(check.name, check.detail, check.ok) for check in rehearsal.checks if check not in right]
    if right:
        last = min(right, key=lambda check: check.detail)
        lines.append(("golden", i18n.text("line.golden", count=len(right), worst=last.detail), True))
    return lines


def next_lines(package: Package) -> tuple[str, ...]:
    """The lines to type on the target."""
    name = Path(package.path).name
    folder = name.removesuffix(".tar")
    return (f"sha256sum -c {name}.sha256", f"tar xf {name}", f"cd {folder} && sudo ./install.sh")
