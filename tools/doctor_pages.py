"""Write docs/doctor/: an index and one page a case, in both languages, from the doctor's data.

.venv/bin/python tools/doctor_pages.py
"""

from __future__ import annotations

from pathlib import Path

from sampan import i18n
from sampan.doctor import explain, knowledge

FOLDER = Path(__file__).parents[1] / "docs" / "doctor"
PIPE = r"\|"
ENDINGS = {"en": ".md", "zh": ".zh-CN.md"}
HAND_WRITTEN = ("adding-a-case.md", "adding-a-case.zh-CN.md")


def pages() -> dict[str, str]:
    """File name -> text of every generated page."""
    before = i18n.language()
    found = {}
    for language, ending in ENDINGS.items():
        i18n.use(language)
        cases = sorted(knowledge.cases().values(), key=lambda case: case.code)
        rows = [
            f"| [{case.code}]({case.code}{ending}) | {explain.title(case).replace('|', PIPE)} |" for case in cases
        ]
        head = (
            f"# {i18n.text('doctor.pages.title')}",
            "",
            i18n.text("doctor.pages.intro"),
            "",
            f"| {i18n.text('doctor.pages.code')} | {i18n.text('doctor.pages.what')} |",
            "|---|---|",
        )
        found[f"README{ending}"] = "\n".join((*head, *rows)) + "\n"
        found.update({f"{case.code}{ending}": explain.page(case) for case in cases})
    i18n.use(before)
    return found


def main() -> None:
    """Write what is due and remove what no longer is."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    due = pages()
    for old in FOLDER.glob("*.md"):
        if old.name not in due and old.name not in HAND_WRITTEN:
            old.unlink()
    for name, text in due.items():
        (FOLDER / name).write_text(text, encoding="utf-8")
    print(f"{len(due)} pages in {FOLDER}")


if __name__ == "__main__":
    main()
