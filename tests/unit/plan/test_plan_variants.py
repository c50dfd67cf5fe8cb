"""Which variants travel, and which one runs."""

from __future__ import annotations

import itertools

import pytest

from sampan import i18n
from sampan.errors import ExitCode, IncompatibleError
from sampan.plan.variants import all_variants, choose, missing, runnable

V80 = {"asimd", "fp"}
DOTPROD = V80 | {"asimddp", "asimdrdm", "atomics", "crc32"}
FP16 = DOTPROD | {"asimdhp", "fphp"}


def test_the_baseline_comes_first_and_ranks_rise() -> None:
    for _, group in itertools.groupby(all_variants(), key=lambda variant: variant.arch):
        ranks = [variant.rank for variant in group]
        assert ranks == sorted(set(ranks))


def test_a_higher_variant_demands_all_that_a_lower_one_does() -> None:
    for lower, higher in itertools.pairwise(all_variants()):
        if lower.arch == higher.arch:
            assert set(lower.requires) < set(higher.requires)


@pytest.mark.parametrize(
    ("features", "names"),
    [
        (V80, ["armv8.0"]),
        (DOTPROD, ["armv8.0", "armv8.2-dotprod"]),
        (FP16, ["armv8.0", "armv8.2-dotprod", "armv8.2-dotprod-fp16"]),
        (FP16 - {"atomics"}, ["armv8.0"]),
    ],
)
def test_what_a_known_cpu_can_run_travels(features: set[str], names: list[str]) -> None:
    assert [variant.name for variant in runnable("aarch64", features)] == names


def test_all_travel_where_the_cpu_is_not_known() -> None:
    assert len(runnable("aarch64", V80, features_known=False)) == 3


def test_the_best_is_chosen_whatever_the_order() -> None:
    variants = runnable("aarch64", FP16)
    for order in itertools.permutations(variants):
        assert choose(order, FP16).name == "armv8.2-dotprod-fp16"
        assert choose(order, DOTPROD).name == "armv8.2-dotprod"
        assert choose(order, V80).name == "armv8.0"


def test_a_bundle_without_its_baseline_names_what_the_cpu_lacks() -> None:
    variants = runnable("aarch64", FP16)[1:]
    with pytest.raises(IncompatibleError) as caught:
        choose(variants, V80)
    assert caught.value.key == "variant.none"
    assert caught.value.exit_code == ExitCode.INCOMPATIBLE
    assert "armv8.2-dotprod needs: asimddp asimdrdm atomics crc32" in str(caught.value)
    assert "armv8.2-dotprod-fp16 needs: asimddp asimdhp" in str(caught.value)


def test_no_variant_at_all_is_an_error_too() -> None:
    with pytest.raises(IncompatibleError):
        choose((), FP16)


def test_a_cpu_below_the_baseline_is_refused_at_the_plan() -> None:
    with pytest.raises(IncompatibleError) as caught:
        runnable("x86_64", {"sse", "sse2", "cx16", "pni"})
    assert caught.value.key == "variant.none"
    assert "popcnt" in caught.value.message


def test_an_architecture_without_an_engine_names_those_with_one() -> None:
    with pytest.raises(IncompatibleError) as caught:
        runnable("loongarch64", ())
    assert caught.value.key == "variant.arch"
    assert "aarch64, x86_64" in caught.value.message


def test_the_message_speaks_chinese(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(i18n._state, "language", "zh")
    with pytest.raises(IncompatibleError) as caught:
        choose(runnable("aarch64", FP16)[1:2], V80)
    assert "缺少" in caught.value.message


def test_missing_is_sorted() -> None:
    assert missing(runnable("aarch64", FP16)[1], V80) == ("asimddp", "asimdrdm", "atomics", "crc32")
