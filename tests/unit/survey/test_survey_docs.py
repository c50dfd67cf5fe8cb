"""The documentation's tables of known targets are those of the data.

``SAMPAN_UPDATE_GOLDEN=1`` writes them anew; review the difference.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sampan.plan.variants import runnable
from sampan.survey import known

DOCS = Path(__file__).parents[3] / "docs"
BEGIN, END = "<!-- targets: generated -->", "<!-- targets: end -->"
HEADS = {
    "en": ("name", "what it is", "glibc", "libstdc++", "page", "CPU level", "engine variants"),
    "zh": ("名称", "说明", "glibc", "libstdc++", "内存页", "处理器级别", "引擎变体"),
}
LEVELS = {"en": ("exact", "at least"), "zh": ("确定", "至少")}


def rendered(language: str) -> str:
    """The table in one language, Markdown."""
    heads = HEADS[language]
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    for name in known.names():
        profile = known.load(name)
        cpu = profile.cpu
        variants = runnable(profile.arch, cpu.features, features_known=cpu.features_known)
        cells = (
            f"`{name}`",
            known.about(name)[language],
            profile.libc.glibc or "?",
            profile.libc.glibcxx or "?",
            f"{profile.page_size // 1024} KiB",
            LEVELS[language][0 if cpu.features_known else 1],
            " ".join(variant.name for variant in variants),
        )
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


@pytest.mark.parametrize(("file", "language"), [("targets.md", "en"), ("targets.zh-CN.md", "zh")])
def test_the_table_is_that_of_the_data(file: str, language: str) -> None:
    path = DOCS / file
    text = path.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    expected = f"{before}{BEGIN}\n{rendered(language)}\n{END}{after}"
    if os.environ.get("SAMPAN_UPDATE_GOLDEN") == "1":
        path.write_text(expected, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == expected
