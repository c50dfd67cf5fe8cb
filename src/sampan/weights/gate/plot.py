"""The gate's table as a picture: size against quality, one dot a type with its speed. SVG, no library."""

from __future__ import annotations

import math
from collections.abc import Sequence
from xml.sax.saxutils import escape

from sampan.i18n import text
from sampan.spec.gate import GateReport, GateRow

_WIDTH, _HEIGHT = 720, 420
_LEFT, _RIGHT, _TOP, _BOTTOM = 90, 40, 60, 60
_PASS, _REFUSED, _CHOSEN = "#1a7f37", "#cf222e", "#0969da"
_DECADES = (1e-8, 1.0)


def svg(report: GateReport) -> str:
    """Across: megabytes. Up: what is lost, in powers of ten (1 - worst cosine, or KL divergence); lower is better."""
    rows = [row for row in report.rows if loss(row) is not None]
    bound = report.bounds.max_kl if report.task == "chat" else 1 - report.bounds.min_cosine
    low, high = _decades([loss(row) or 0.0 for row in rows] + [bound])
    largest = max((row.size_bytes for row in rows), default=1) * 1.1

    def x(size: float) -> float:
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * size / largest

    def y(value: float) -> float:
        share = (math.log10(max(value, 10.0**low)) - low) / (high - low)
        return _TOP + (_HEIGHT - _TOP - _BOTTOM) * (1 - share)

    measure = "kl" if report.task == "chat" else "cosine"
    parts = [
        _text(_WIDTH / 2, 28, f"{report.model}: {text(f'gate.plot.{measure}')}", size=16, anchor="middle"),
        _text(_WIDTH / 2, _HEIGHT - 14, text("gate.plot.size"), anchor="middle"),
        *(part for power in range(low, high + 1) for part in _line(y(10.0**power), f"1e{power}", "#d0d7de")),
        *_line(y(bound), text("gate.plot.bound"), _REFUSED, dashed=True),
        *(_text(x(at), _HEIGHT - 38, f"{at / 1e6:g}", anchor="middle") for at in _ticks(largest)),
        *(part for row in rows for part in _dot(x(row.size_bytes), y(loss(row) or 0.0), row, report)),
    ]
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{_HEIGHT}" font-family="sans-serif">'
    return "\n".join([head, f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>', *parts, "</svg>", ""])


def loss(row: GateRow) -> float | None:
    """What the plot's height shows; None where nothing was measured."""
    if row.kl_mean is not None:
        return max(row.kl_mean, 0.0)
    return None if row.cosine_min is None else max(1 - row.cosine_min, 0.0)


def _decades(values: Sequence[float]) -> tuple[int, int]:
    shown = [min(max(value, _DECADES[0]), _DECADES[1]) for value in values]
    low, high = math.floor(math.log10(min(shown))), math.ceil(math.log10(max(shown)))
    return low, max(high, low + 1)


def _ticks(largest: float) -> list[float]:
    step = 10.0 ** math.floor(math.log10(largest))
    step = step / 4 if largest / step < 2 else step / 2 if largest / step < 5 else step
    return [step * index for index in range(int(largest / step) + 1)]


def _line(y: float, label: str, colour: str, *, dashed: bool = False) -> list[str]:
    dash = ' stroke-dasharray="6 4"' if dashed else ""
    at = f'x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"'
    where = (_WIDTH - _RIGHT, y - 5, "end") if dashed else (_LEFT - 8, y + 4, "end")
    return [f'<line {at} stroke="{colour}"{dash}/>', _text(where[0], where[1], label, anchor=where[2])]


def _dot(x: float, y: float, row: GateRow, report: GateReport) -> list[str]:
    chosen = row.quantization == report.chosen
    colour = _CHOSEN if chosen else _REFUSED if row.refused else _PASS
    label = f"{row.quantization} ✓" if chosen else row.quantization
    if row.speed is not None:
        label += f" · {row.speed:.0f} {report.speed_unit}"
    right = x > _WIDTH * 0.75
    return [
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{7 if chosen else 5}" fill="{colour}"/>',
        _text(x - 12 if right else x + 12, y + 4, label, anchor="end" if right else "start"),
    ]


def _text(x: float, y: float, words: str, *, size: int = 12, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}">{escape(words)}</text>'
