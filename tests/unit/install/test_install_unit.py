"""The unit file, for each generation of systemd, compared with files that a person has read."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.install.conftest import make_plan

from sampan.install.model import SYSTEM, USER, user_name
from sampan.install.unit import Limits, UnitFacts, limits, render

GOLDEN = Path(__file__).parent / "golden"
FACTS = UnitFacts(
    name="mini",
    description="sampan: mini (mini-model, embedding)",
    prefix=Path("/opt/sampan/mini"),
    user="sampan-mini",
    host="127.0.0.1",
    port=8080,
    limits=Limits(memory_bytes=656 << 20, tasks=1040),
    systemd=247,
)


@pytest.mark.parametrize("version", [219, 229, 230, 243, 247, 255])
def test_the_unit_is_the_one_that_was_read_and_found_good(version: int) -> None:
    """To renew the files: write ``render(replace(FACTS, systemd=version))`` to them and read the difference."""
    golden = GOLDEN / f"systemd-{version}.service"
    assert render(replace(FACTS, systemd=version)) == golden.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("version", "present", "absent"),
    [
        (
            219,
            ["MemoryLimit=656M", "StartLimitInterval=0", "ProtectSystem=full"],
            ["MemoryMax", "TasksMax", "Restrict"],
        ),
        (226, ["MemoryLimit=656M"], ["TasksMax"]),
        (227, ["TasksMax=1040"], ["MemoryMax"]),
        (230, ["StartLimitIntervalSec=0"], ["StartLimitInterval=", "MemoryMax"]),
        (231, ["MemoryMax=656M"], ["MemoryLimit", "ProtectSystem=strict"]),
        (232, ["ProtectSystem=strict"], ["RestrictAddressFamilies"]),
        (243, ["RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK"], []),
    ],
)
def test_only_directives_that_this_systemd_knows(version: int, present: list[str], absent: list[str]) -> None:
    text = render(replace(FACTS, systemd=version))
    assert [line for line in present if line not in text.splitlines()] == []
    assert [word for word in absent if word in text] == []


def test_the_start_limit_stands_in_the_section_where_it_holds() -> None:
    for version, section in ((229, "[Service]"), (230, "[Unit]")):
        text = render(replace(FACTS, systemd=version))
        assert text[: text.index("StartLimitInterval")].rindex("[") == text.index(section)


@pytest.mark.parametrize("version", [219, 243, 255])
def test_the_engine_can_still_count_its_cpus(version: int) -> None:
    text = render(replace(FACTS, systemd=version))
    for closing in ("ProtectKernelTunables", "ProcSubset", "ProtectProc", "InaccessiblePaths"):
        assert closing not in text


def test_quota_and_locked_memory_only_where_planned() -> None:
    text = render(replace(FACTS, limits=Limits(1 << 30, 100, lock_memory=True, cpu_percent=350)))
    assert "CPUQuota=350%\n" in text
    assert "LimitMEMLOCK=infinity\n" in text
    assert "CPUQuota" not in render(FACTS)


def test_a_prefix_in_a_home_stays_visible_and_percent_signs_are_escaped() -> None:
    text = render(replace(FACTS, prefix=Path("/home/ai/50%"), description="100% offline"))
    assert "ProtectHome=read-only\n" in text
    assert "ExecStart=/home/ai/50%%/current/sampan serve" in text
    assert "Description=100%% offline\n" in text


def test_the_memory_limit_leaves_a_quarter_and_never_less_than_256_mib() -> None:
    small, large = make_plan(), replace(make_plan(), memory_total_bytes=4 << 30)
    assert limits(small).memory_bytes == (400 + 256) << 20
    assert limits(large).memory_bytes == 5 << 30
    assert limits(replace(small, memory_total_bytes=(400 << 20) + 1)).memory_bytes == (400 + 257) << 20


def test_user_names_fit_and_stay_distinct() -> None:
    long = "a" * 40
    names = ["minilm", "mini.lm", "mini_lm", long, long + "b"]
    users = [user_name(name) for name in names]
    assert users[0] == "sampan-minilm"
    assert len(set(users)) == len(users)
    assert all(len(user) <= 31 and "." not in user for user in users)


_KNOWN = json.loads((Path(__file__).parent / "systemd_directives.json").read_text(encoding="utf-8"))["directives"]


@pytest.mark.parametrize("scope", [SYSTEM, USER])
@pytest.mark.parametrize("version", range(219, 258))
def test_every_directive_is_one_that_this_version_introduced_already(version: int, scope: str) -> None:
    most = Limits(656 << 20, 1040, lock_memory=True, cpu_percent=150, cpus="0-3,8")
    text = render(replace(FACTS, systemd=version, scope=scope, limits=most, keys="/k", tls=("/c", "/d")))
    for line in text.splitlines():
        name, equals, value = line.partition("=")
        if not equals or line.startswith("#"):
            continue
        known = _KNOWN[f"{name}-{value}" if f"{name}-{value}" in _KNOWN else name]
        assert known["since"] <= version < known.get("gone", 1000), line
