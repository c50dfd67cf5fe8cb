"""The block survives what terminals, mail programs and people do to it; damage is found and named."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fakes.surveys import make_block

from sampan.errors import BadInputError, ExitCode
from sampan.survey import block

BODY = (
    "ab=0201b700;m=aarch64;k=4.19.90-89.11.v2401.ky10.aarch64;oi=kylin;on=Kylin_Linux_Advanced_Server;"
    "ov=V10_(Halberd);pg=65536;ci=0x48;cp=0xd01;hw=917fff;hx=0;so=2;co=96;nu=4;u=root,0,root,yes;px=;p=22,8080;"
)
BLOCK = make_block(BODY)
FIELDS = block.read(BLOCK, "-")
BLANKS = ["", " ", "  ", "\t", "\u3000", "\u00a0", "\u200b", "\ufeff", "\u2060", "\r", "\x1b[0m", "\x1b[1;32m"]
AROUND = [
    "",
    "[root@kylin-01 ~]# sh survey.sh\n",
    "root@10.0.0.1:~$ ",
    "# ",
    "复制以 @ 开头的各行\n",
    "@01 nothing #1\n",
    "@",
]


def test_the_block_is_read() -> None:
    assert dict(FIELDS)["on"] == "Kylin_Linux_Advanced_Server"
    assert ";".join(f"{key}={value}" for key, value in FIELDS) + ";" == BODY


@st.composite
def pasted(draw: st.DrawFn) -> str:
    """The block wrapped at some width, indented, with other line ends, strange blanks and text around it."""
    width = draw(st.integers(1, 200))
    end = draw(st.sampled_from(["\n", "\r\n", "\r", "\n\n", "\u2028"]))
    indent = draw(st.sampled_from([*BLANKS, "> ", "| ", "    "]))
    tail = draw(st.sampled_from(BLANKS))
    lines = [line[at : at + width] for line in BLOCK.splitlines() for at in range(0, len(line), width)]
    text = end.join(f"{indent}{line}{tail}" for line in lines)
    if draw(st.booleans()):
        text = text.replace(" ", draw(st.sampled_from(["\u3000", "", "   ", "\u200b"])))
    for at in sorted(draw(st.lists(st.integers(0, len(text)), max_size=5)), reverse=True):
        if "\x1b" not in text[max(0, at - 8) : at]:  # not inside an escape
            text = text[:at] + draw(st.sampled_from(BLANKS)) + text[at:]
    return draw(st.sampled_from(AROUND)) + text + end + draw(st.sampled_from(AROUND))


@given(pasted())
@settings(max_examples=150, deadline=None)
def test_pasting_does_no_harm(text: str) -> None:
    assert block.read(text, "-") == FIELDS


def test_full_width_letters_are_read() -> None:
    wide = "".join(chr(ord(char) + 0xFEE0) if "!" <= char <= "~" else char for char in BLOCK)
    assert block.read(wide.replace(" ", "\u3000"), "-") == FIELDS


def test_lines_may_come_in_any_order_and_twice() -> None:
    lines = BLOCK.splitlines()
    assert block.read("\n".join([*reversed(lines), lines[1]]), "-") == FIELDS


def failure(text: str) -> BadInputError:
    with pytest.raises(BadInputError) as caught:
        block.read(text, "paste.txt")
    assert caught.value.exit_code == ExitCode.BAD_INPUT
    return caught.value


def named_or_harmless(text: str, number: int) -> bool:
    """Whether the text is read as if nothing had happened; else its error must name that line."""
    try:
        assert block.read(text, "-") == FIELDS
    except BadInputError as error:
        assert error.key == "survey.block-damaged", error.key
        assert f"@{number:02d}" in str(error.values["lines"])
        return False
    return True


TEXT_AT = [at for at, letter in enumerate(BLOCK) if letter not in " \n"]


def line_of(at: int) -> int:
    return BLOCK[:at].count("\n") + 1


def test_every_single_lost_letter_is_found_and_its_line_named() -> None:
    harmless = [at for at in TEXT_AT if named_or_harmless(BLOCK[:at] + BLOCK[at + 1 :], line_of(at))]
    assert harmless == []


def test_every_single_wrong_letter_is_found_and_its_line_named() -> None:
    for at in TEXT_AT:
        letter = {"0": "O", "@": "2", "#": "3"}.get(BLOCK[at], "0")
        assert not named_or_harmless(BLOCK[:at] + letter + BLOCK[at + 1 :], line_of(at))


@given(st.sampled_from(TEXT_AT), st.sampled_from("0aZ;=#@.O%"), st.booleans())
@settings(max_examples=200, deadline=None)
def test_a_letter_changed_or_added_anywhere(at: int, letter: str, added: bool) -> None:
    if added or BLOCK[at] != letter:
        number, rest = line_of(at), BLOCK[at if added else at + 1 :]
        harmless = named_or_harmless(BLOCK[:at] + letter + rest, number)
        assert not harmless or added  # what stands between two lines, or repeats the sum's last digit, does no harm


@given(st.integers(1, BLOCK.count("\n")), st.integers(0, 60), st.integers(1, 60))
@settings(max_examples=100, deadline=None)
def test_a_hole_in_a_line_names_it(number: int, start: int, length: int) -> None:
    lines = BLOCK.splitlines()
    line = lines[number - 1]
    lines[number - 1] = line[:start] + line[start + length :]
    if lines[number - 1].replace(" ", "") != line.replace(" ", ""):
        assert not named_or_harmless("\n".join(lines), number)


def test_a_lost_letter_is_found_in_its_line() -> None:
    error = failure(BLOCK.replace("Advanced", "Advnced"))
    assert error.key == "survey.block-damaged"
    assert (error.values["lines"], error.values["missing"]) == ("@03", "-")


@pytest.mark.parametrize("number", range(1, len(BLOCK.splitlines()) + 1))
def test_a_missing_line_is_named(number: int) -> None:
    lines = BLOCK.splitlines()
    error = failure("\n".join(lines[: number - 1] + lines[number:]))
    assert error.key in {"survey.block-damaged", "survey.no-block"}
    if error.key == "survey.block-damaged":
        assert error.values["missing"] == f"@{number:02d}"


def test_a_damaged_line_may_be_pasted_again_below() -> None:
    lines = BLOCK.splitlines()
    broken = [*lines[:2], lines[2].replace("Advanced", "Advnced"), *lines[3:]]
    assert block.read("\n".join([*broken, "and once more:", lines[2]]), "-") == FIELDS


def test_lines_of_two_surveys_are_told_apart() -> None:
    other = make_block(BODY.replace("8080", "8081"))
    mixed = BLOCK.splitlines()[:-1] + other.splitlines()[-1:]
    assert failure("\n".join(mixed)).key == "survey.block-mixed"


@pytest.mark.parametrize("text", ["", "hello", "root@10.0.0.1", "@07 something", "\0" * 100])
def test_no_block_at_all(text: str) -> None:
    assert failure(text).key == "survey.no-block"


def test_a_block_of_a_later_form() -> None:
    head = f"sampan2.02.{block.cksum('a=1;')}"
    text = f"@01 {head} #{block.cksum('01' + head)}\n@02 a=1; #{block.cksum('02a=1;')}\n"
    assert failure(text).key == "survey.block-newer"


@pytest.mark.skipif(shutil.which("cksum") is None, reason="no cksum here")
@pytest.mark.parametrize("text", ["", "a", BODY, "x" * 1000])
def test_the_sum_is_that_of_posix(text: str) -> None:
    done = subprocess.run(["cksum"], input=text.encode(), capture_output=True, check=True)
    assert int(done.stdout.split()[0]) == int(block.cksum(text), 16)
