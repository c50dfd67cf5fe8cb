"""The record that travels in the bundle: same run, same text. No time, no process number, no folder of ours."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sampan import i18n
from sampan.rehearse.machine import Way
from sampan.rehearse.script import Sandbox, environment
from sampan.rehearse.steps import Record, machine
from sampan.spec.artefacts import Check
from sampan.spec.target import TargetProfile

_SILENT = ("machine", "log", "rest")  # our own looks around, not what a person would type


def render(record: Record, checks: Sequence[Check], profile: TargetProfile, box: Sandbox) -> str:
    """Both languages, whatever the language in force: the bundle must not depend on it."""
    blocks = [_block(language, record, profile, box) for language in i18n.LANGUAGES]
    return "\n".join(["\n\n".join(blocks), "", *_commands(record, checks)]) + "\n"


def _block(language: str, record: Record, profile: TargetProfile, box: Sandbox) -> str:
    step = record.step("machine")
    seen = machine(step) if step else None
    cpu = box.way.cpu
    lines = [
        _say(language, "target", name=profile.name, arch=profile.arch, cpu=profile.cpu.model, page=profile.page_size),
        _cpu(language, box.way),
        *_differences(language, profile, box.way, seen.page_size if seen else 0),
    ]
    if seen:
        lines += [
            _say(language, "root", root=" ".join(seen.root), devices=" ".join(seen.devices)),
            _say(language, "user", user=seen.user),
            _say(language, "network", interfaces=" ".join(seen.interfaces)),
        ]
    variables = " ".join(f"{name}={value}" for name, value in environment(box).items() if name != "SAMPAN_LANG")
    lines.append(_say(language, "environment", variables=variables))
    if cpu.emulated:
        lines.append(_say(language, "speed"))
    return "\n".join(lines)


def _cpu(language: str, way: Way) -> str:
    if not way.cpu.emulated:
        return _say(language, "cpu-native")
    return _say(language, "cpu-emulated", cpu=way.cpu.name, level=way.cpu.level)


def _differences(language: str, profile: TargetProfile, way: Way, page_size: int) -> Iterable[str]:
    """Where the stand-in is not the target; said, never hidden."""
    cpu = way.cpu
    if not profile.cpu.features_known:
        yield _say(language, "floor")
    if cpu.lacks:
        yield _say(language, "lacks", features=" ".join(cpu.lacks))
    if cpu.adds:
        yield _say(language, "adds", features=" ".join(cpu.adds))
    if cpu.exceeds:
        yield _say(language, "exceeds", features=" ".join(cpu.exceeds))
    if page_size not in (0, profile.page_size):
        yield _say(language, "page", here=page_size, there=profile.page_size)


def _commands(record: Record, checks: Sequence[Check]) -> Iterable[str]:
    """Commands as typed, each followed by what was seen."""
    by_step: dict[str, list[Check]] = {}
    for check in checks:
        by_step.setdefault(_step_of(check.name), []).append(check)
    for step in record.steps:
        if step.name not in _SILENT:
            yield f"$ {step.command}"
        yield from (
            f"  {'ok' if check.ok else 'FAILED'}  {check.name}: {check.detail}"
            for check in by_step.get(step.name, ())
        )


def _step_of(check: str) -> str:
    if check.startswith("golden"):
        return "selftest"
    if check in ("cpu", "page-size", "network", "user"):
        return "machine"
    return "serve" if check == "start" else check


def _say(language: str, key: str, **values: object) -> str:
    return i18n.catalogue()[f"rehearse.transcript.{key}"][language].format(**values)
