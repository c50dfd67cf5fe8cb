"""What ``ship`` does with the findings of the audit: refuse, or pack and say so in the bundle."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from sampan.errors import ExitCode, IncompatibleError
from sampan.flow import stages
from sampan.flow.artefacts import WorkFolder
from sampan.flow.ship import ShipRequest, pack_work, ship
from sampan.flow.tools import Tools
from sampan.spec.artefacts import AuditReport, BundleFolder, Finding, Package, Rehearsal

ERROR = Finding("glibc.ceiling", "error", "app/x.so")
WARNING = Finding("isa.unguarded", "warning", "app/y.so")
TOOLS = cast(Tools, None)  # no stage runs here


@pytest.fixture
def packed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[AuditReport]:
    """Every stage but the audit's judgement taken out; the reports that reach ``pack``."""
    reached: list[AuditReport] = []
    plan = SimpleNamespace(name="mini", release=1, arch="aarch64")
    bundle = BundleFolder("mini", 1, "aarch64", str(tmp_path / "bundle"), 1, 1, 1)

    def pack(folder: Path, rehearsal: Rehearsal, report: AuditReport, *_: Any) -> Package:
        reached.append(report)
        return Package(str(tmp_path / "mini-1.tar"), "0" * 64, 1, "mini", 1, rehearsal.status == "passed")

    fakes: dict[str, Any] = {
        "survey": lambda *_: SimpleNamespace(page_size=65536),
        "weights": lambda *_: None,
        "plan": lambda *_: plan,
        "build": lambda *_: None,
        "runtime": lambda *_: None,
        "wheelhouse": lambda *_: None,
        "assemble": lambda *_: bundle,
        "not_rehearsed": lambda *_: Rehearsal("skipped", None, "", 65536, False),
        "pack": pack,
    }
    for name, fake in fakes.items():
        monkeypatch.setattr(stages, name, fake)
    monkeypatch.setattr(WorkFolder, "save", lambda self, stage, _: self.file(stage))
    return reached


def _request(tmp_path: Path, *, allow: bool) -> ShipRequest:
    return ShipRequest("w", "t", tmp_path / "out", rehearse=False, allow_findings=allow)


def _audit(monkeypatch: pytest.MonkeyPatch, *findings: Finding) -> None:
    report = AuditReport("mini-1", "kylin", 3, 2, findings)
    monkeypatch.setattr(stages, "audit", lambda *_, **__: report)


def test_an_error_ends_before_anything_is_packed(
    packed: list[AuditReport], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _audit(monkeypatch, ERROR, WARNING)
    with pytest.raises(IncompatibleError) as caught:
        ship(_request(tmp_path, allow=False), TOOLS)
    assert (caught.value.key, caught.value.exit_code) == ("audit.refused", ExitCode.INCOMPATIBLE)
    assert caught.value.stage == "audit"
    assert "app/x.so" in caught.value.message
    assert "--allow-findings" in caught.value.hint
    assert packed == []


def test_an_override_hands_the_findings_on_to_the_manifest(
    packed: list[AuditReport], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _audit(monkeypatch, ERROR, WARNING)
    shipped = ship(_request(tmp_path, allow=True), TOOLS)
    assert packed == [shipped.audit]
    assert packed[0].errors == 1


def test_warnings_do_not_stop_it(packed: list[AuditReport], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    _audit(monkeypatch, WARNING)
    ship(_request(tmp_path, allow=False), TOOLS)
    assert len(packed) == 1


def test_packing_a_work_folder_by_hand_refuses_errors_too(
    packed: list[AuditReport], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    report = AuditReport("mini-1", "kylin", 3, 2, (ERROR,))
    monkeypatch.setattr(WorkFolder, "load", lambda *_: report)
    with pytest.raises(IncompatibleError):
        pack_work(tmp_path, tmp_path / "out", TOOLS)
    assert packed == []
