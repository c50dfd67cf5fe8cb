"""Features from the auxiliary vector."""

from __future__ import annotations

from pathlib import Path

from tests.fakes.machines import AARCH64, auxv, library, write
from tests.fakes.machines import cpuinfo as recorded

from sampan.survey import cpuinfo, features

# HWCAP words as the kernel gives them on these CPUs.
KUNPENG = 0x917FFF & ~(1 << 15)  # fp … fcma, dcpop, asimddp, asimdfhm; no lrcpc
D2000 = 0x8FF


def test_the_bits_of_a_kunpeng_are_named_as_its_cpuinfo_names_them() -> None:
    assert features.aarch64(KUNPENG, 0) == frozenset(cpuinfo.parse(recorded("kunpeng-920"), "aarch64").features)


def test_the_bits_of_a_d2000() -> None:
    assert features.aarch64(D2000, 0) == frozenset(cpuinfo.parse(recorded("d2000-8"), "aarch64").features)


def test_the_second_word_has_its_own_names() -> None:
    assert features.aarch64(0, 1 << 13 | 1 << 14 | 1 << 1) == {"i8mm", "bf16", "sve2"}


def test_a_bit_of_the_future_is_left_out() -> None:
    assert features.aarch64(1 << 63, 0) == frozenset()


def test_the_vector_ends_at_its_null_entry_and_may_be_cut() -> None:
    data = auxv(page_size=65536, hwcap=3) + auxv(page_size=4096)
    assert features.auxv(data)[features.AT_PAGESZ] == 65536
    assert features.auxv(data[:20]) == {features.AT_PAGESZ: 65536}
    assert features.auxv(b"") == {}


def test_on_arm64_the_vector_wins_over_cpuinfo(tmp_path: Path) -> None:
    """qemu-user emulates the vector and shows the host's cpuinfo."""
    files: dict[str, str | bytes] = {
        "proc/self/exe": library([], machine=AARCH64),
        "proc/self/auxv": auxv(page_size=4096, hwcap=D2000),
        "proc/cpuinfo": recorded("kunpeng-920"),
    }
    assert "asimddp" not in features.current(write(tmp_path, files))


def test_without_a_vector_cpuinfo_counts(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {"bin/sh": library([]), "proc/cpuinfo": recorded("kunpeng-920")}
    assert "asimddp" in features.current(write(tmp_path, files))


def test_nothing_to_read_gives_no_features(tmp_path: Path) -> None:
    assert features.current(tmp_path) == frozenset()
