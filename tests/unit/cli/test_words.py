"""The command-line library's own words are said in the user's language, and its texts are still the ones we know."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import pytest
import typer
from typer import rich_utils
from typer._click.exceptions import ClickException
from typer.testing import CliRunner

from sampan import i18n
from sampan.cli import words


@pytest.fixture
def chinese() -> Iterator[None]:
    before = i18n.language()
    i18n.use("zh")
    words.speak()
    yield
    i18n.use(before)
    words.speak()


def small_app() -> typer.Typer:
    app = typer.Typer(cls=words.Verbs, add_completion=False)

    @app.command(cls=words.Verb, help="一" * 300)
    def ship(
        path: Annotated[Path, typer.Argument(exists=True, dir_okay=False)],
        weights: Annotated[str, typer.Option()],
        port: Annotated[int, typer.Option(min=1, max=9, help="二" * 300)] = 1,
        share: Annotated[float, typer.Option()] = 1.0,
        dry: Annotated[bool, typer.Option("--dry")] = False,
    ) -> None: ...

    @app.command(cls=words.Verb)
    def pack() -> None: ...

    return app


WRONG = {
    "pakc": "没有命令 'pakc'。是否想输入 'pack'？",
    "zzz": "没有命令 'zzz'。",
    "pack x": "多余的参数：x",
    "pack --zzz": "没有选项 --zzz",
    "ship --prt 1": "没有选项 --prt（相近的有：--dry, --port）",
    "ship /dev/null": "缺少选项 '--weights'。",
    "ship": "缺少参数 'path'。",
    "ship /dev/null --weights": "选项 '--weights' 需要一个值。",
    "ship --dry=1": "选项 '--dry' 不带值。",
    "ship --weights w --port x /dev/null": "'--port' 的值无效：'x' 不是整数。",
    "ship --weights w --port 10 /dev/null": "'--port' 的值无效：10 超出范围 1<=x<=9。",
    "ship --weights w --share x /dev/null": "'--share' 的值无效：'x' 不是数字。",
    "ship --weights w /": "'path' 的值无效：文件 '/' 是目录，这里需要文件。",
    "ship --weights w /nowhere": "'path' 的值无效：文件 '/nowhere' 不存在。",
}


@pytest.mark.parametrize("typed", WRONG)
def test_each_fault_of_the_words_is_said_in_chinese(typed: str, chinese: None) -> None:
    with pytest.raises(ClickException) as raised:
        small_app()(typed.split(), standalone_mode=False)
    assert words.said(raised.value.format_message()) == WRONG[typed]


def test_an_unknown_text_stays_as_it_is(chinese: None) -> None:
    assert words.said("Something new.") == "Something new."


def test_english_stays_the_librarys_own() -> None:
    for key, entry in i18n.catalogue().items():
        if key.startswith("words.") and "{" not in entry["en"]:
            assert words.said(entry["en"]) == entry["en"]


def test_help_is_wholly_chinese_and_never_cut_short(chinese: None) -> None:
    shown = CliRunner().invoke(small_app(), ["ship", "--help"], env={"COLUMNS": "80"}, prog_name="sampan").stdout
    assert "用法：sampan ship" in shown
    assert "显示本帮助并退出。" in shown
    assert "[默认：1]" in shown
    assert shown.count("一") == shown.count("二") == 300
    for english in (rich_utils.RANGE_STRING.strip(" []{}"), "Usage", "Options", "Arguments", "required", "default"):
        assert not english or english not in shown
