"""Names of services."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampan.errors import ExitCode, UsageError
from sampan.plan import names


@pytest.mark.parametrize(
    ("weights", "target", "name"),
    [
        ("all-MiniLM-L6-v2", "kylin-v10-sp3-kunpeng920", "all-minilm-l6-v2-kylin-v10-sp3-kunpeng920"),
        ("SmolLM2-135M-Instruct", "this", "smollm2-135m-instruct-this"),
        ("Qwen/Qwen3_Embedding (0.6B)", "uos-20", "qwen-qwen3-embedding-0-6b-uos-20"),
        (
            "bge",
            "a-target-whose-own-profile-has-a-very-long-name-indeed",
            "bge-a-target-whose-own-profile-has-a-very-long",
        ),
        ("模型", "目标", "service"),
    ],
)
def test_a_default_name_is_readable(weights: str, target: str, name: str) -> None:
    assert names.default(weights, target) == name


@given(st.text(), st.text())
def test_every_default_name_is_valid(weights: str, target: str) -> None:
    assert names.check(names.default(weights, target))


@pytest.mark.parametrize(
    "name", ["", "Bge", "a--b", "-a", "a-", "a_b", "a/b", "../x", "a b", "模型", "x" * 49, "a\n"]
)
def test_a_bad_name_is_refused_with_one_that_would_do(name: str) -> None:
    with pytest.raises(UsageError) as caught:
        names.check(name)
    assert caught.value.key == "plan.name"
    assert caught.value.exit_code == ExitCode.USAGE
    assert names.check(str(caught.value.values["better"]))
