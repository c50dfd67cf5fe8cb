"""Receipts: they survive what terminals and people do to them, and say which lines did not."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sampan.bundle import receipt, units
from sampan.bundle.receipt import Receipt
from sampan.errors import BadInputError

marks = st.frozensets(st.binary(min_size=6, max_size=6).map(bytes.hex), max_size=200)
MANY = Receipt("mini", 3, frozenset(f"{number * 7919:012x}" for number in range(90)))


@settings(max_examples=25, deadline=None)
@given(marks, st.integers(0, 10**9))
def test_what_was_written_is_read(found: frozenset[str], release: int) -> None:
    given_one = Receipt("a.b_c-d", release, found)
    assert receipt.read(receipt.write(given_one), where="-") == given_one


def test_ninety_units_fit_into_a_kilobyte() -> None:
    assert len(receipt.write(MANY)) < 1024


def test_prompts_indentation_order_and_breaks_do_not_matter() -> None:
    lines = receipt.write(MANY).splitlines()
    mangled = "root@kylin:~# ./sampan receipt\r\n" + "\r\n".join(
        f"  > {line[:30]}\r\n {line[30:]}" for line in lines[::-1]
    )
    assert receipt.read(mangled, where="-") == MANY


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_one_changed_letter_is_found_and_its_line_named(data: st.DataObject) -> None:
    text = receipt.write(MANY)
    places = [place for place, letter in enumerate(text) if letter.isalnum()]
    place = data.draw(st.sampled_from(places))
    other = data.draw(st.sampled_from("aB3x").filter(lambda letter: letter != text[place]))
    line = text[:place].count("\n") + 1
    with pytest.raises(BadInputError) as raised:
        receipt.read(f"{text[:place]}{other}{text[place + 1 :]}", where="-")
    if place - text.rfind("\n", 0, place) <= len("@00"):  # a line's own number: it is missed under the one, or
        return  # named under the other; where it was the last, the end is missing
    assert raised.value.key == "delta.receipt-damaged"
    assert f"@{line:02d}" in raised.value.message


def test_missing_lines_are_named_and_a_missing_end_is_noticed() -> None:
    lines = receipt.write(MANY).splitlines()
    with pytest.raises(BadInputError, match=re.escape("@02, @04")):
        receipt.read("\n".join((lines[0], lines[2], *lines[4:])), where="-")
    with pytest.raises(BadInputError) as raised:
        receipt.read("\n".join(lines[:-1]), where="-")
    assert raised.value.key == "delta.receipt-cut"


@pytest.mark.parametrize("text", ["", "root@10.0.0.1", "hello", "@01 #0000"])
def test_what_is_no_receipt_is_said_to_be_none(text: str) -> None:
    with pytest.raises(BadInputError) as raised:
        receipt.read(text, where="-")
    assert raised.value.key == "delta.no-receipt"


def test_a_newer_form_is_told_apart_from_damage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receipt, "VERSION", "2")
    text = receipt.write(MANY)
    monkeypatch.undo()
    with pytest.raises(BadInputError) as raised:
        receipt.read(text, where="-")
    assert raised.value.key == "delta.receipt-newer"


@pytest.mark.parametrize("name", ["../up", "A B", ""])
def test_a_name_that_no_bundle_has_is_refused(name: str) -> None:
    with pytest.raises(BadInputError):
        receipt.read(receipt.write(Receipt(name, 1, frozenset())), where="-")


def test_what_would_be_too_long_to_copy_is_refused() -> None:
    with pytest.raises(BadInputError) as raised:
        receipt.write(Receipt("mini", 1, frozenset(f"{number:012x}" for number in range(900))))
    assert raised.value.key == "delta.receipt-long"


def test_units_cut_alike_whatever_the_order() -> None:
    digests = {"app/a/x": "1" * 64, "app/a/y": "2" * 64, "runtime/lib/sys/z": "3" * 64, "plan.json": "4" * 64}
    sizes = dict.fromkeys(digests, 10) | {"runtime/lib/sys/z": units.LARGE_BYTES}
    found = units.units(digests, sizes)
    assert found == units.units(dict(reversed(digests.items())), sizes)
    assert sorted(found.values()) == [("app/a/x", "app/a/y"), ("runtime/lib/sys/z",)]
    assert units.known(digests, sizes, {"3" * 12}) == {"runtime/lib/sys/z"}
