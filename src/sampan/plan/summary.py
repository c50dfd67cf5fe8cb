"""The plan as rows for a table: item, value, why. Pure; texts come from the catalogue in the language in force."""

from __future__ import annotations

from typing import NamedTuple

from sampan import i18n
from sampan.plan.sizes import human
from sampan.plan.threads import DECIDE_ON_TARGET
from sampan.spec.plan import Plan, Reason


class Row(NamedTuple):
    """One line of the table; ``why`` may be empty."""

    item: str
    value: str
    why: str


def rows(plan: Plan) -> tuple[Row, ...]:
    """The decisions of a plan, in the order in which they were made."""
    settings = plan.settings
    values = (
        ("plan.item.model", f"{plan.model} ({i18n.text('plan.task.' + plan.task)})", ""),
        ("plan.item.target", f"{plan.target} ({plan.arch})", ""),
        ("plan.item.variants", ", ".join(variant.name for variant in plan.variants), "plan.why.variants"),
        ("plan.item.quantization", plan.quantization, "plan.why.quantization"),
        ("plan.item.context", f"{settings.context} / {settings.batch} / {settings.ubatch}", "plan.why.context"),
        ("plan.item.slots", str(settings.slots), "plan.why.slots"),
        ("plan.item.threads", _threads(settings.threads), "plan.why.threads"),
        ("plan.item.page-size", f"{plan.page_size // 1024} KiB", "plan.why.page-size"),
        ("plan.item.loading", f"{settings.load_mode} / {settings.kv_type}", "plan.why.load"),
        ("plan.item.cache", f"{settings.cache_ram_mib} MiB", "plan.why.cache"),
        ("plan.item.memory", _memory(plan), "plan.why.memory"),
    )
    return tuple(Row(i18n.text(item), value, _why(plan.reasons, why)) for item, value, why in values)


def notes(plan: Plan) -> tuple[str, ...]:
    """Rules of experience that touch this plan, and what to do with the limits."""
    return tuple(i18n.text(each.key, **dict(each.values)) for each in plan.notes)


def memory_rows(plan: Plan) -> tuple[Row, ...]:
    """The memory table with its sum as the last line."""
    parts = (Row(i18n.text(row.item), human(row.bytes), row.why) for row in plan.memory)
    return (*parts, Row(i18n.text("memory.total"), human(plan.memory_total_bytes), ""))


def _why(reasons: tuple[Reason, ...], prefix: str) -> str:
    """The reason whose key is ``prefix`` or begins with it and a point."""
    if not prefix:
        return ""
    for each in reasons:
        if each.key == prefix or each.key.startswith(prefix + "."):
            return i18n.text(each.key, **dict(each.values))
    return ""


def _threads(count: int) -> str:
    return i18n.text("plan.value.threads.target") if count == DECIDE_ON_TARGET else str(count)


def _memory(plan: Plan) -> str:
    needed = human(plan.memory_total_bytes)
    if plan.memory_available_bytes is None:
        return needed
    return i18n.text("plan.value.memory", needed=needed, available=human(plan.memory_available_bytes))
