"""Damaged and hostile files give a finding for that file, soon, and never an exception."""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Callable
from pathlib import Path
from tarfile import PAX_FORMAT
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.unit.audit.test_audit_archives import tar

from sampan.audit import elf, texts
from sampan.audit.audit import audit
from sampan.audit.facts import Damaged, ElfFacts
from sampan.errors import BadInputError
from sampan.spec import codec
from sampan.spec.target import TargetProfile

Put = Callable[[str, bytes], Path]
Make = Callable[..., Any]


def _poke(data: bytes, offset: int, layout: str, value: int) -> bytes:
    size = struct.calcsize(layout)
    return data[:offset] + struct.pack(layout, value) + data[offset + size :]


def _tag(data: bytes, tag: int) -> int:
    """Offset of the value of a dynamic entry."""
    headers = (struct.unpack_from("<IIQ", data, 64 + 56 * index) for index in range(data[56]))
    position = int(next(offset for kind, _, offset in headers if kind == 2))
    while struct.unpack_from("<q", data, position)[0] != tag:
        position += 16
    return position + 8


@pytest.fixture
def rich(make: Make) -> bytes:
    """A library that uses every table."""
    elf_file = make(
        soname="libx.so",
        needed=["libc.so.6", "libm.so.6"],
        runpath="$ORIGIN",
        needs={"libc.so.6": {"GLIBC_2.17": ["a"], "GLIBC_2.28": ["b"]}, "libm.so.6": {"GLIBC_2.17": ["c"]}},
        provides=["X_1", "X_2"],
        interpreter="/lib/ld-linux-aarch64.so.1",
        exports={"f": "X_1", "g": "X_2", "h": ""},
        undefined=["PyInit"],
        tls=64,
        fixed=2,
        kernel=(3, 7, 0),
        data=b"\0<jemalloc>: Unsupported system page size\n\0libplugin.so.1\0",
    )
    data: bytes = elf_file.build()
    return data


def test_the_sound_file_is_sound(put: Put, rich: bytes) -> None:
    facts = elf.read(put("f", rich))
    assert isinstance(facts, ElfFacts)
    assert facts.provides == {"X_1", "X_2"}
    assert [(n.library, n.version, n.symbols) for n in facts.needs] == [
        ("libc.so.6", "GLIBC_2.17", ("a",)),
        ("libc.so.6", "GLIBC_2.28", ("b",)),
        ("libm.so.6", "GLIBC_2.17", ("c",)),
    ]
    assert facts.symbols.given == {"f": ("X_1",), "g": ("X_2",), "h": ("",)}
    assert facts.symbols.wanted == (("a", "GLIBC_2.17"), ("b", "GLIBC_2.28"), ("c", "GLIBC_2.17"), ("PyInit", ""))
    assert (facts.tls.size, facts.tls.fixed, facts.traps.kernel) == (64, 2, (3, 7, 0))


def test_every_truncation_is_damaged(put: Put, rich: bytes) -> None:
    for length in [*range(4, 64), *range(64, len(rich), 19)]:
        assert isinstance(elf.read(put("f", rich[:length])), Damaged), length


NEEDNUM, VERNEED, STRSZ, STRTAB, GNU_HASH = 0x6FFFFFFF, 0x6FFFFFFE, 10, 5, 0x6FFFFEF5
RELA, RELASZ, SYMTAB = 7, 8, 6


def _hash(data: bytes) -> int:
    """Offset of the symbol hash table."""
    return int(struct.unpack_from("<Q", data, _tag(data, GNU_HASH))[0])


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "huge segment count": lambda d: _poke(d, 56, "<H", 0xFFFF),
    "segment headers of no size": lambda d: _poke(d, 54, "<H", 0),
    "segments beyond the file": lambda d: _poke(d, 32, "<Q", 1 << 40),
    "segments at the end of the number line": lambda d: _poke(d, 32, "<Q", (1 << 64) - 1),
    "segment beyond the file": lambda d: _poke(d, 64 + 32, "<Q", 1 << 62),
    "sections beyond the file": lambda d: _poke(_poke(_poke(d, 40, "<Q", 64), 58, "<H", 64), 60, "<H", 10_000),
    "class 7": lambda d: _poke(d, 4, "B", 7),
    "byte order 9": lambda d: _poke(d, 5, "B", 9),
    "two dynamic tables": lambda d: _poke(d, 64 + 56, "<I", 2),
    "strings elsewhere": lambda d: _poke(d, _tag(d, STRTAB), "<Q", 1 << 50),
    "no string table": lambda d: _poke(d, _tag(d, STRSZ), "<Q", 0),
    "endless versions": lambda d: _poke(d, _tag(d, NEEDNUM), "<Q", 1 << 60),
    "versions elsewhere": lambda d: _poke(d, _tag(d, VERNEED), "<Q", 1 << 60),
    "endless symbols": lambda d: _poke(d, _hash(d) + 4, "<I", 0xFFFFFFFF),
    "endless buckets": lambda d: _poke(d, _hash(d), "<I", 0xFFFFFFFF),
    "a bucket far away": lambda d: _poke(d, _hash(d) + 24, "<I", 0x7FFFFFFF),
    "a huge bloom filter": lambda d: _poke(d, _hash(d) + 8, "<I", 0xFFFFFFFF),
    "symbols elsewhere": lambda d: _poke(d, _tag(d, SYMTAB), "<Q", 1 << 50),
    "relocations elsewhere": lambda d: _poke(d, _tag(d, RELA), "<Q", 1 << 50),
    "endless relocations": lambda d: _poke(d, _tag(d, RELASZ), "<Q", (1 << 64) - 1),
    "a relocation of a symbol that is not there": lambda d: _poke(
        d, struct.unpack_from("<Q", d, _tag(d, RELA))[0] + 8, "<Q", 0xFFFFFFF0 << 32 | 1030
    ),
}


@pytest.mark.parametrize("case", DAMAGE)
def test_damage_is_a_finding_for_that_file(put: Put, rich: bytes, kylin: TargetProfile, case: str) -> None:
    path = put("f", DAMAGE[case](rich))
    report = audit([path], kylin)
    assert [(f.code, f.severity) for f in report.findings] == [("elf.damaged", "error")]
    assert report.elf_files == 1


def test_a_hash_chain_without_an_end_is_refused(put: Put, rich: bytes) -> None:
    """Its last word has no end mark, and what follows it has none either."""
    chain = _hash(rich) + 28
    assert isinstance(elf.read(put("f", rich[:chain] + bytes(12) + rich[chain + 12 :])), (Damaged, ElfFacts))
    data = make_longer(rich)
    chain = _hash(data) + 28
    assert isinstance(elf.read(put("f", data[:chain] + bytes(len(data) - chain))), Damaged)


def make_longer(data: bytes) -> bytes:
    """The same file with its symbol hash table moved to the end."""
    table = data[_hash(data) : _hash(data) + 40]
    start = len(data)
    data = _poke(data, _tag(data, GNU_HASH), "<Q", start) + table + bytes(4096)
    return _poke(data, 64 + 32, "<Q", len(data))


def test_names_that_overlap_without_end_are_bounded(put: Put, make: Make) -> None:
    """Half a million symbols that share one long name: the names would take a thousand times the file."""
    data = make(undefined=["x" * 4000]).build()
    count, start = 120_000, len(data)
    symbol = struct.unpack_from("<Q", data, _tag(data, SYMTAB))[0] + 24
    data += bytes(24) + data[symbol : symbol + 24] * count
    data = _poke(_poke(data, _tag(data, SYMTAB), "<Q", start), 64 + 32, "<Q", len(data))
    data = _poke(data, _hash(data) + 4, "<I", count)
    data = _poke(_poke(data, _hash(data) + 24, "<I", 0), _tag(data, 0x6FFFFFF0), "<Q", 0)
    started = time.perf_counter()
    assert isinstance(elf.read(put("f", data)), Damaged)
    assert time.perf_counter() - started < 2


def test_notes_that_lie_are_no_notes(put: Put, make: Make) -> None:
    data = make(kernel=(4, 4, 0)).build()
    note = data.index(struct.pack("<III", 4, 16, 1))
    for position, value in ((0, 0xFFFFFFFF), (4, 0xFFFFFFF0), (8, 7)):
        facts = elf.read(put("f", _poke(data, note + position, "<I", value)))
        assert isinstance(facts, ElfFacts)
        assert facts.traps.kernel == ()


def test_texts_without_number_are_bounded(put: Put, make: Make, kylin: TargetProfile) -> None:
    names = b"".join(b"\0lib%d.so" % index for index in range(50_000))
    started = time.perf_counter()
    assert audit([put("f", make(data=names + b"\0" + b".so" * 100_000).build())], kylin).findings == ()
    assert time.perf_counter() - started < 3


def test_a_version_table_that_points_at_itself_ends(put: Put, rich: bytes) -> None:
    table = struct.unpack_from("<Q", rich, _tag(rich, VERNEED))[0]
    looping = _poke(_poke(rich, table + 12, "<I", 0), table + 2, "<H", 0xFFFF)
    started = time.perf_counter()
    elf.read(put("f", looping))
    circular = _poke(_poke(rich, table + 16 + 12, "<I", 0xFFFFFFF0), table + 2, "<H", 0xFFFF)
    assert isinstance(elf.read(put("f", circular)), Damaged)
    assert time.perf_counter() - started < 2


def test_a_dynamic_table_without_an_end_is_refused(put: Put, make: Make) -> None:
    data = make(needed=["libc.so.6"]).build()
    offset = struct.unpack_from("<Q", data, 64 + 56 + 8)[0]
    data = data[:offset] + struct.pack("<qQ", 1, 1) * 100_000
    data = _poke(_poke(data, 64 + 56 + 32, "<Q", 1_600_000), 64 + 32, "<Q", len(data))
    started = time.perf_counter()
    assert isinstance(elf.read(put("f", data)), Damaged)
    assert time.perf_counter() - started < 2


def test_ten_thousand_sections_are_no_matter(put: Put, rich: bytes) -> None:
    data = rich + bytes(64 * 10_000)
    data = _poke(_poke(_poke(data, 40, "<Q", len(rich)), 58, "<H", 64), 60, "<H", 10_000)
    started = time.perf_counter()
    assert isinstance(elf.read(put("f", data)), ElfFacts)
    assert time.perf_counter() - started < 0.5


def test_names_that_are_not_utf8_are_kept_readable(put: Put, make: Make, kylin: TargetProfile) -> None:
    data = make(needed=["libXY.so"]).build().replace(b"libXY", b"lib\xff\x1b")
    (finding,) = audit([put("f", data)], kylin).findings
    assert dict(finding.values)["libraries"].startswith("lib\\xff")


def test_a_pipe_is_refused_not_waited_for(tmp_path: Path, kylin: TargetProfile) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(BadInputError):
        audit([tmp_path / "pipe"], kylin)
    assert audit([tmp_path], kylin).files == 0


def test_file_names_that_are_not_utf8_can_be_written_down(tmp_path: Path, make: Make, kylin: TargetProfile) -> None:
    (tmp_path / "x\udcff").write_bytes(make(machine=62).build())
    report = audit([tmp_path], kylin)
    assert report.findings[0].path.endswith("x\\udcff")
    codec.to_json(report).encode()


@pytest.mark.parametrize("name", ["\udcff\udc80.so", "a\n\x1b[1m.so", "a\u202eos.b"])
def test_names_of_any_bytes_can_be_written_down_and_shown(
    tmp_path: Path, make: Make, kylin: TargetProfile, name: str
) -> None:
    """As the file's own name, inside of an archive, and as the subject of the report."""
    (tmp_path / name).write_bytes(make(needed=["none.so"], stack=7, exports={"f": ""}).build())
    (tmp_path / f"{name}.tar").write_bytes(tar({name: make(stack=7, needed=["none.so"]).build()}, form=PAX_FORMAT))
    report = audit(sorted(tmp_path.iterdir()), kylin)
    assert {finding.code for finding in report.findings} > {"name.non-ascii"} or name.isascii()
    codec.to_json(report).encode()
    said = [report.subject, *(text for f in report.findings for text in (f.path, *dict(f.values).values()))]
    assert [text for text in said if not text.isprintable()] == []


@settings(max_examples=60, deadline=2000, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    pokes=st.lists(
        st.tuples(
            st.integers(4, 2000),
            st.sampled_from(["B", "<H", "<I", "<Q"]),
            st.sampled_from([0, 1, 2, 7, 255, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, (1 << 63) - 1, 1 << 63, (1 << 64) - 1]),
        ),
        min_size=1,
        max_size=6,
    ),
    cut=st.integers(0, 2000),
)
def test_any_change_gives_facts_or_damage(
    tmp_path: Path, rich: bytes, pokes: list[tuple[int, str, int]], cut: int
) -> None:
    data = rich
    for offset, layout, value in pokes:
        data = _poke(data, min(offset, len(data) - 8), layout, value % (1 << 8 * struct.calcsize(layout)))
    if cut < len(data):
        data = data[: max(cut, 4)]
    path = tmp_path / "f"
    path.write_bytes(b"\x7fELF" + data[4:])
    assert isinstance(elf.read(path, [texts.read]), (ElfFacts, Damaged))
