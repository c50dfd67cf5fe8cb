"""What ``sampan survey`` shows of several profiles: the known ones, or where two differ."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sampan import i18n
from sampan.cli import output

if TYPE_CHECKING:
    from sampan.spec.target import TargetProfile


def known() -> None:
    """The table, or the JSON, of the known targets."""
    from sampan.survey import known as targets

    if output.wants_json():
        output.print_json({"schema": "sampan/targets/1", "targets": list(targets.names())})
        return
    profiles = ((name, targets.load(name)) for name in targets.names())
    rows = [(name, profile.arch, profile.os.name, profile.cpu.model) for name, profile in profiles]
    output.console().print(output.facts_table(i18n.text("cli.survey.known"), rows))


def differences(name_a: str, name_b: str, a: TargetProfile, b: TargetProfile) -> None:
    """The table, or the JSON, of what two profiles say differently."""
    from dataclasses import asdict

    from sampan.survey.diff import differences as compare

    found = compare(a, b)
    if output.wants_json():
        told = [asdict(difference) for difference in found]
        output.print_json({"schema": "sampan/target-diff/1", "a": name_a, "b": name_b, "differences": told})
        return
    if not found:
        output.console().print(i18n.text("cli.survey.same"), markup=False)
        return
    unknown = i18n.text("word.unknown")
    rows = [(one.fact, unknown if one.a is None else one.a, unknown if one.b is None else one.b) for one in found]
    output.console().print(output.facts_table(i18n.text("cli.survey.diff"), rows, ("", name_a, name_b)))
