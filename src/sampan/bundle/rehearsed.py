"""rehearsal.txt: how the bundle ran in an emulated target."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sampan import disk, i18n
from sampan.bundle import layout
from sampan.spec.artefacts import Rehearsal
from sampan.spec.plan import Reason


def write(folder: Path, rehearsal: Rehearsal | None, name: str, checked: Mapping[str, Any]) -> None:
    """Write rehearsal.txt; ``checked`` is the audit's summary, whose overridden errors stand first."""
    text = text_of(rehearsal, name)
    if checked.get("errors"):
        codes = ", ".join(checked["error_codes"])
        text = f"{_both('bundle.audit-overridden', errors=checked['errors'], codes=codes)}\n{text}"
    disk.write(folder / layout.REHEARSAL, text.encode())


def text_of(rehearsal: Rehearsal | None, name: str) -> str:
    """What rehearsal.txt says, in both languages whatever the language in force: the bundle must not depend on it."""
    if rehearsal is None:
        return _both("bundle.not-rehearsed", name=name)
    if rehearsal.status == "skipped":
        return _both("bundle.rehearsal-skipped", rehearsal.why, name=name)
    head = "bundle.rehearsal-passed" if rehearsal.status == "passed" else "bundle.rehearsal-failed"
    lines = _both(head, rehearsal.why, name=name, cpu=rehearsal.cpu_model, page=rehearsal.page_size)
    checks = "".join(f"[{'ok' if c.ok else 'FAILED'}] {c.name}: {c.detail}\n" for c in rehearsal.checks)
    return "\n".join(part for part in (lines, checks, rehearsal.transcript) if part).rstrip("\n") + "\n"


def _both(key: str, why: Reason | None = None, **values: object) -> str:
    """The message in every language; its ``reason`` is ``why``, each time in that language."""

    def line(language: str) -> str:
        reason = i18n.text_in(language, why.key, **dict(why.values)) if why else ""
        return i18n.text_in(language, key, **{"reason": reason, **values})

    return "".join(f"{line(language)}\n" for language in i18n.LANGUAGES)
