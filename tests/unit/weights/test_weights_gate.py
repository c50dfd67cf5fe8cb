"""The quality gate: what is measured, what passes, what is taken."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fakes import tiny_models
from tests.unit.weights.conftest import Resolve

from sampan.errors import BadInputError, UsageError
from sampan.spec import codec
from sampan.spec.gate import GateBounds, GateReport, GateRow
from sampan.spec.weights import GoldenSet
from sampan.weights.gate import divergence, facts, plot, verdict
from sampan.weights.gate.measures import likeness, spearman
from sampan.weights.gate.texts import FEWEST, read_texts

BOUNDS = GateBounds(min_cosine=0.99, min_overlap=0.9, min_spearman=0.99, max_kl=0.01)


def _vectors(seed: int, noise: float = 0.0) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    base = np.random.RandomState(1).standard_normal((40, 16))
    return (base + noise * np.random.RandomState(seed).standard_normal(base.shape)).astype(np.float32)


def _row(name: str, size: int, cosine: float) -> GateRow:
    return GateRow(name, f"/{name}.gguf", "0", size, cosine_min=cosine, overlap=1.0, spearman=1.0)


def test_the_same_vectors_are_alike_whatever_their_length() -> None:
    found = likeness(_vectors(2), _vectors(2) * np.float32(7))
    assert found.cosine_min == pytest.approx(1)
    assert found.overlap == 1
    assert found.spearman == pytest.approx(1)


def test_more_noise_is_less_alike_by_every_measure() -> None:
    little, much = likeness(_vectors(2), _vectors(3, 0.05)), likeness(_vectors(2), _vectors(3, 0.8))
    assert little.cosine_min > much.cosine_min
    assert little.cosine_mean > much.cosine_mean
    assert little.overlap > much.overlap
    assert little.spearman > much.spearman


@pytest.mark.parametrize("bad", [np.nan, np.inf, 0.0])
def test_a_vector_that_is_no_direction_makes_all_worthless(bad: float) -> None:
    broken = _vectors(2)
    broken[3] = bad
    assert likeness(_vectors(2), broken).worse(likeness(_vectors(2), _vectors(2))).cosine_min == 0


def test_the_neighbours_that_stay_are_counted() -> None:
    angles = np.linspace(0, np.pi / 2, 13)
    line = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    swapped = line.copy()
    swapped[[0, 12]] = swapped[[12, 0]]  # the two ends: each middle text loses and wins at most one neighbour
    assert 0.8 < likeness(line, swapped).overlap < 1


def _slow_ranks(values: list[int]) -> list[float]:
    return [
        sum(other < value for other in values) + (sum(other == value for other in values) + 1) / 2 for value in values
    ]


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=3, max_size=12))
def test_rank_correlation_is_the_correlation_of_ranks(pairs: list[tuple[int, int]]) -> None:
    one, two = [a for a, _ in pairs], [b for _, b in pairs]
    found = spearman(np.asarray(one, np.float64), np.asarray(two, np.float64))
    a, b = np.asarray(_slow_ranks(one)), np.asarray(_slow_ranks(two))
    if a.std() and b.std():
        assert found == pytest.approx(float(np.corrcoef(a, b)[0, 1]))
    else:
        assert found in (0.0, 1.0)


def test_the_smallest_that_passes_is_taken() -> None:
    rows = [_row("F16", 200, 0.9999), _row("Q4_0", 90, 0.97), _row("Q8_0", 100, 0.995), _row("Q6_K", 80, 0.98)]
    judged = verdict.judged(rows, BOUNDS)
    assert [row.quantization for row in judged] == ["F16", "Q8_0", "Q4_0", "Q6_K"]
    assert [row.refused for row in judged] == [(), (), ("cosine_min",), ("cosine_min",)]
    chosen = verdict.choose(judged)
    assert chosen is not None
    assert chosen.quantization == "Q8_0"
    assert verdict.choose(row for row in judged if row.refused) is None


def test_what_was_not_measured_or_is_no_number_never_passes() -> None:
    assert verdict.refusals(GateRow("Q8_0", "", "", 1), BOUNDS) == ("unmeasured",)
    assert verdict.refusals(_row("Q8_0", 1, float("nan")), BOUNDS) == ("cosine_min",)
    chat = GateRow("Q8_0", "", "", 1, kl_mean=float("nan"))
    assert verdict.refusals(chat, BOUNDS) == ("kl_mean",)


def test_a_chat_is_judged_by_its_divergence() -> None:
    row = GateRow("Q4_0", "", "", 1, kl_mean=0.02)
    assert verdict.refusals(row, BOUNDS) == ("kl_mean",)
    assert verdict.refusals(GateRow("Q8_0", "", "", 1, kl_mean=0.002), BOUNDS) == ()


def test_the_built_in_texts_are_many_and_in_both_languages() -> None:
    texts = facts.built_in_texts()
    chinese = [text for text in texts if any("\u4e00" <= letter <= "\u9fff" for letter in text)]
    assert len(set(texts)) == len(texts) >= 200
    assert len(chinese) >= 90
    assert len(texts) - len(chinese) >= 90


def test_types_are_taken_in_any_case_and_once() -> None:
    assert facts.parse_types("q8_0, Q4_k_m,Q8_0") == ("Q8_0", "Q4_K_M")
    assert set(facts.tried_types()) <= set(facts.known_types())
    for wrong in ("Q7", "Q8_0,;", ",", " "):
        with pytest.raises(UsageError) as caught:
            facts.parse_types(wrong)
        assert caught.value.key == "gate.type"


def test_tolerance_follows_the_type_and_what_was_measured() -> None:
    known = facts.tolerance()
    assert known.of("F16") > known.of("Q8_0") > known.of("Q4_0")
    assert known.of("Q4_0", 0.95) == pytest.approx(1 - 0.05 * known.growth - known.slack)
    assert known.of("Q4_0", 0.2) == known.least
    assert known.of("F16", 0.999999) == known.of("F16")


def test_auto_asks_the_gates_bound(tmp_path: Path, take: Resolve, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tiny_models.bert_folder(tmp_path / "tiny")
    low = GateBounds(min_cosine=0.5, min_overlap=0, min_spearman=0, max_kl=1)
    monkeypatch.setattr("sampan.weights.importing.default_bounds", lambda: low)
    info = take(root)
    assert info.quantization == "Q8_0"
    assert info.golden_path is not None
    assert codec.load(GoldenSet, Path(info.golden_path)).minimum_cosine == facts.tolerance().of("Q8_0")


def test_own_texts_are_lines_or_json_lines(tmp_path: Path) -> None:
    plain, lines = tmp_path / "a.txt", tmp_path / "a.jsonl"
    plain.write_bytes(b"\xef\xbb\xbf" + "\r\n".join([f"问题 {n}" for n in range(25)] + ["", "问题 3"]).encode())
    lines.write_text("\n".join(f'{{"text": "question {n}", "id": {n}}}' for n in range(30)), "utf-8")
    assert read_texts(plain) == tuple(f"问题 {n}" for n in range(25))
    assert read_texts(lines)[29] == "question 29"


@pytest.mark.parametrize(
    ("name", "content", "key"),
    [
        ("few.txt", b"one\ntwo\n", "gate.texts_count"),
        ("many.txt", b"\n".join(b"%d" % n for n in range(5001)), "gate.texts_count"),
        ("empty.txt", b"", "gate.texts_count"),
        ("gbk.txt", "服务器\n".encode("gb18030") * 30, "gate.texts"),
        ("bad.jsonl", b'{"text": "a"}\n{"text": ', "gate.texts"),
        ("deep.jsonl", b"[" * 100_000, "gate.texts"),
        ("other.jsonl", b'{"body": "a"}\n' * 30, "gate.texts"),
        ("long.txt", b"x" * 9000 + b"\n", "gate.texts"),
    ],
)
def test_unusable_texts_are_refused_with_their_line(tmp_path: Path, name: str, content: bytes, key: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(BadInputError) as caught:
        read_texts(tmp_path / name)
    assert caught.value.key == key
    assert name in caught.value.message
    assert str(FEWEST) in caught.value.hint or "UTF-8" in caught.value.hint


@pytest.mark.parametrize("missing", ["nowhere.txt", "."])
def test_texts_that_cannot_be_read_are_named(tmp_path: Path, missing: str) -> None:
    with pytest.raises(BadInputError) as caught:
        read_texts(tmp_path / missing)
    assert caught.value.key == "file.unreadable"


PRINTED = """
Mean PPL(Q)                   :  18.017484 ±   1.179554
Mean PPL(base)                :  17.933119 ±   1.175331
====== KL divergence statistics ======
Mean    KLD:   0.017516 ±   0.000746
99.9%   KLD:   0.328753
99.0%   KLD:   0.125742
Same top p: 92.585 ± 0.671 %
"""


def test_the_divergence_is_read_from_what_the_tool_prints() -> None:
    found = divergence.parse(PRINTED)
    assert found == divergence.Divergence(18.017484, 0.017516, 0.125742, 92.585 / 100)
    assert divergence.parse(PRINTED.replace("Same top", "same")) is None
    assert divergence.parse(PRINTED.replace("0.017516", "-")) is None


@pytest.mark.parametrize("vocabulary", [300, 49_152, 262_144])
def test_the_kept_logits_stay_below_a_gigabyte_or_so(vocabulary: int) -> None:
    assert 2 <= divergence.chunks(vocabulary) <= 64
    assert divergence.logits_bytes(vocabulary) < 1.2 * (1 << 30)


def _report(*rows: GateRow, chosen: str | None) -> GateReport:
    task = "chat" if rows[0].kl_mean is not None else "embedding"
    return GateReport("a <b> & c", "s", task, "F32", True, "e", 216, BOUNDS, rows, chosen, "texts/s", 2)


@pytest.mark.parametrize(
    "rows",
    [
        (_row("F32", 90_000_000, 1.0), _row("Q4_0", 20_000_000, 0.91)),
        (GateRow("F16", "", "", 1, kl_mean=-1e-9), GateRow("Q4_0", "", "", 5, kl_mean=0.3)),
        (_row("F16", 1, 0.0),),
    ],
)
def test_the_plot_is_sound_svg_with_every_type_inside(rows: tuple[GateRow, ...]) -> None:
    report = _report(*verdict.judged(rows, BOUNDS), chosen=rows[0].quantization)
    picture = ElementTree.fromstring(plot.svg(report))  # noqa: S314  (our own)
    width, height = float(picture.attrib["width"]), float(picture.attrib["height"])
    dots = [element for element in picture if element.tag.endswith("circle")]
    assert len(dots) == len(rows)
    assert all(0 < float(dot.attrib["cx"]) < width and 0 < float(dot.attrib["cy"]) < height for dot in dots)
    words = " ".join(element.text or "" for element in picture)
    assert all(row.quantization in words for row in rows)
    assert "a <b> & c" in words
