"""Code written to be slow or endless to follow: the reading of code stays near linear, and says what it left out."""

from __future__ import annotations

import struct
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.unit.audit import a64_file
from tests.unit.audit.a64_file import NOP, RET, SDOT, bl, cbz, flag_into

from sampan.audit.audit import audit
from sampan.audit.instructions import body, layouts, words
from sampan.spec.target import CpuFacts, OsFacts, TargetProfile

X86 = TargetProfile("x", "x86_64", OsFacts("linux", "Linux"), CpuFacts("any", ("sse2",)), 4096)
LOONGARCH = TargetProfile("la", "loongarch64", OsFacts("linux", "Linux"), CpuFacts("any", ()), 16384)
ADD, LDRB = 0x91000400, 0x39400000  # add x0, x0, #1; ldrb w0, [x0]
VPADDD = bytes.fromhex("c5f5fed0")


def _codes(folder: Path, data: bytes, target: TargetProfile) -> list[str]:
    """Findings on instructions, within two seconds of the processor."""
    path = folder / "program"
    path.write_bytes(data)
    started = time.process_time()
    found = [finding.code for finding in audit([path], target).findings if finding.code.startswith("isa.")]
    assert time.process_time() - started < 2
    return found


def _x86(code: bytes, functions: int) -> bytes:
    code += b"\x90" * (-len(code) % 4)
    words = struct.unpack(f"<{functions * len(code) // 4}I", code * functions)
    names = [(f"f{number}", number * len(code) // 4, 2) for number in range(functions)]
    return a64_file.program(words, machine=62, symbols=names)


def _a64(words: Sequence[int], functions: int) -> bytes:
    names = [(f"f{number}", number * len(words), 2) for number in range(functions)]
    return a64_file.program(list(words) * functions, symbols=names)


def test_a_value_made_of_a_thousand_additions_is_not_followed(tmp_path: Path, kylin: TargetProfile) -> None:
    words = [*[ADD] * 3000, LDRB, cbz(2), SDOT, RET]
    assert _codes(tmp_path, a64_file.program(words), kylin) == ["isa.start"]


def test_a_flag_behind_a_thousand_loads_is_not_followed(tmp_path: Path) -> None:
    load, branch, vector, back = 0x28C00084, 0x40000880, 0x700A0C41, 0x4C000020  # ld.d; beqz $a0, 2; vadd.b; jr $ra
    data = a64_file.program([*[load] * 3000, branch, vector, back], machine=258)
    data = data[:48] + struct.pack("<I", 0x43) + data[52:]  # lp64d
    assert _codes(tmp_path, data, LOONGARCH) == ["isa.start"]


def test_a_thousand_ways_into_one_run_of_a64_code(tmp_path: Path, kylin: TargetProfile) -> None:
    words = [*[cbz(3000)] * 3000, *[NOP] * 3000, SDOT, RET]
    assert _codes(tmp_path, _a64(words, 4), kylin) == ["isa.start", "isa.unguarded", "isa.limits"]


def test_a_thousand_ways_into_one_run_of_x86_code(tmp_path: Path) -> None:
    branches = b"".join(b"\x0f\x84" + struct.pack("<i", 6 * (3000 - at) - 6 + at) for at in range(3000))
    assert _codes(tmp_path, _x86(branches + b"\x90" * 9000 + VPADDD + b"\xc3", 4), X86) == [
        "isa.start",
        "isa.unguarded",
        "isa.limits",
    ]


def test_a_thousand_tests_of_the_cpu_in_one_function(
    tmp_path: Path, kylin: TargetProfile, monkeypatch: pytest.MonkeyPatch
) -> None:
    walks: list[int] = []
    real = body._reached

    def counted(*given: Any) -> set[int]:
        walks.append(1)
        return real(*given)

    monkeypatch.setattr(body, "_reached", counted)
    code: list[int] = []
    for _ in range(1900):
        code += [*flag_into(0, len(code)), cbz(2), NOP]
    assert _codes(tmp_path, _a64([*code, SDOT, RET], 1), kylin) == ["isa.start"]
    assert 0 < len(walks) * 3800 < 8 * body._MAX_WORK


@pytest.mark.parametrize("segments", [1, 900])
def test_a_table_of_constructors_larger_than_the_file(tmp_path: Path, kylin: TargetProfile, segments: int) -> None:
    data = bytearray(a64_file.program([SDOT, RET]))
    at = len(data)
    dynamic = struct.pack("<6Q", 25, a64_file.BASE, 27, 1 << 40, 0, 0)
    rows = data[64:120] * segments + struct.pack("<IIQQQQQQ", 2, 6, at, 0, 0, len(dynamic), len(dynamic), 8)
    data += dynamic + rows
    data[32:40] = struct.pack("<Q", at + len(dynamic))
    data[56:58] = struct.pack("<H", segments + 1)
    assert _codes(tmp_path, bytes(data), kylin) == ["isa.start"]


def _chain(calls: int) -> bytes:
    """Functions of which each calls the next, the last with an instruction that the CPU lacks."""
    words = [word for _ in range(calls) for word in (bl(2), RET)] + [SDOT, RET]
    return a64_file.program(words, symbols=[(f"f{number}", 2 * number, 2) for number in range(calls + 1)])


@pytest.mark.parametrize(("calls", "codes"), [(12, ["isa.start"]), (13, ["isa.unguarded", "isa.limits"])])
def test_calls_too_deep_to_be_followed_are_said(
    tmp_path: Path, kylin: TargetProfile, calls: int, codes: list[str]
) -> None:
    assert _codes(tmp_path, _chain(calls), kylin) == codes


def test_a_table_too_large_to_be_taken_whole_is_said(
    tmp_path: Path, kylin: TargetProfile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layouts, "MAX_ROWS", 3)
    assert _codes(tmp_path, _chain(2), kylin) == ["isa.start", "isa.limits"]


def test_finds_in_too_many_functions_are_counted_all_the_same(
    tmp_path: Path, kylin: TargetProfile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(words, "_MAX_FOUND", 2)
    path = tmp_path / "program"
    path.write_bytes(_a64([SDOT, RET], 5))
    found = {finding.code: dict(finding.values)["features"] for finding in audit([path], kylin).findings}
    assert found == {"isa.start": "asimddp ×1", "isa.unguarded": "asimddp ×4"}
