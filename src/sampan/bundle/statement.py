"""What a manifest's predicate says: the facts of the build, the audit's and the rehearsal's outcome."""

from __future__ import annotations

import hashlib
from typing import Any

from sampan import __version__
from sampan.bundle import layout
from sampan.bundle.parts import BundleParts
from sampan.spec.artefacts import AuditReport, Rehearsal

_MAX_LISTED = 200  # findings: the manifest is read by people


def facts(parts: BundleParts, plan_json: bytes) -> dict[str, Any]:
    """The predicate as far as it is known when the parts are joined; ``seal`` adds audit and rehearsal."""
    plan, engine, runtime, weights = parts.plan, parts.engine, parts.runtime, parts.weights
    return {
        "schema": "sampan/manifest/1",
        "name": plan.name,
        "release": plan.release,
        "target": plan.target,
        "arch": plan.arch,
        "page_size": plan.page_size,
        "task": plan.task,
        "model": plan.model,
        "sampan": __version__,
        "plan": {"sha256": hashlib.sha256(plan_json).hexdigest()},
        "engine": {
            "name": engine.engine,
            "version": engine.version,
            "source_sha256": engine.source_sha256,
            "compiler": engine.compiler,
            "variants": [
                {"name": built.name, "sha256": built.sha256}
                for built in engine.variants
                if built.name in _names(parts)
            ],
        },
        "runtime": {
            "python": runtime.python,
            "glibc": runtime.glibc,
            "glibcxx": runtime.glibcxx,
            "packages": [
                {"name": one.name, "version": one.version, "arch": one.arch, "sha256": one.sha256}
                for one in runtime.packages
            ],
        },
        "wheels": [
            {
                "name": wheel.name,
                "version": wheel.version,
                "file_name": wheel.file_name,
                "sha256": wheel.sha256,
                "licence": wheel.licence,
            }
            for wheel in parts.wheelhouse.wheels
        ],
        "weights": {
            "name": weights.name,
            "file": f"{layout.WEIGHTS}/{weights.file_name}",
            "sha256": weights.sha256,
            "quantization": weights.quantization,
            "licence": weights.licence,
        },
    }


def _names(parts: BundleParts) -> set[str]:
    return {variant.name for variant in parts.plan.variants}


def audit_summary(report: AuditReport | None) -> dict[str, Any]:
    """The audit in numbers. A bundle with errors is packed only where a person insisted: which ones must show."""
    if report is None:
        return {"status": "not run"}
    found = [finding for finding in report.findings if finding.severity == "error"]
    errors = sorted({finding.code for finding in found})
    listed = [{"code": finding.code, "path": finding.path} for finding in found[:_MAX_LISTED]]
    override = {"override": {"by": "--allow-findings", "errors": len(found), "findings": listed}} if found else {}
    return {
        "status": "failed" if errors else "passed",
        "target": report.target,
        "files": report.files,
        "elf_files": report.elf_files,
        "errors": report.errors,
        "error_codes": errors,
        "warnings": sum(finding.severity == "warning" for finding in report.findings),
        **override,
    }


def rehearsal_summary(rehearsal: Rehearsal | None) -> dict[str, Any]:
    """The rehearsal's outcome, without its timings."""
    if rehearsal is None:
        return {"status": "not run"}
    return {
        "status": rehearsal.status,
        "cpu_model": rehearsal.cpu_model,
        "page_size": rehearsal.page_size,
        "emulated": rehearsal.emulated,
        "checks": [{"name": check.name, "ok": check.ok} for check in rehearsal.checks],
    }
