"""A case as a page of Markdown, in the language in force: for ``--explain`` and for docs/doctor."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sampan import i18n
from sampan.doctor.checks import PLACEHOLDER
from sampan.doctor.model import Case

_FENCE = "```"


def page(case: Case) -> str:
    """The whole page, with a final newline. Placeholders stand as ‹name›."""
    return "\n".join(_lines(case)).rstrip() + "\n"


def title(case: Case) -> str:
    """What happened, in one line."""
    return _open(case.texts[i18n.language()]["what"])


def _lines(case: Case) -> Iterator[str]:
    text = case.texts[i18n.language()]
    yield f"# {case.code}"
    yield ""
    yield _open(text["what"])
    yield ""
    yield f"{_label('severity')}: {i18n.text('doctor.severity.' + case.severity)} · " + (
        f"{_label('confidence')}: {i18n.text('doctor.confidence.' + case.confidence)}"
    )
    if case.status == "no-fix":
        yield ""
        yield f"**{i18n.text('doctor.no-fix')}**"
    if case.when:
        yield ""
        yield f"{_label('when')}: {', '.join(f'`{each}`' for each in case.when)}"
    yield from _paragraph("cause", text.get("cause"))
    yield from _command("prove", case.prove)
    yield from _paragraph("fix", text.get("fix"))
    for cause in case.causes:
        own = cause.texts[i18n.language()]
        yield ""
        yield f"## {_label('possible')}: {cause.name}"
        if cause.when:
            yield ""
            yield f"{_label('when')}: {', '.join(f'`{each}`' for each in cause.when)}"
        yield from _paragraph("cause", own["cause"])
        yield from _command("prove", cause.prove)
        yield from _paragraph("fix", own["fix"])
    yield from _paragraph("avoid", text.get("avoid"))
    if case.yes:
        yield from ("", f"**{_label('looks')}**", "", f"{_FENCE}text", case.yes[0], _FENCE)
    yield ""
    yield f"{_label('source')}: {', '.join(case.source)}"


def _label(name: str) -> str:
    return i18n.text(f"doctor.label.{name}")


def _paragraph(label: str, text: str | None) -> Iterator[str]:
    if text:
        yield ""
        yield f"**{_label(label)}.** {_open(text)}"


def _command(label: str, command: str) -> Iterator[str]:
    if command:
        yield from ("", f"**{_label(label)}**", "", f"{_FENCE}sh", _open(command), _FENCE)


def _open(text: str) -> str:
    return re.sub(PLACEHOLDER, r"‹\1›", i18n.typed_here(text))
