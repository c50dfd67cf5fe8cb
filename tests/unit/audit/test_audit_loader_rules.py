"""ABI, loader, symbols, page sizes compiled in and hardening traps: each fault its finding, each clean twin none."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sampan.audit.audit import audit
from sampan.spec.artefacts import AuditReport
from sampan.spec.target import CpuFacts, LibcFacts, OsFacts, TargetProfile

Put = Callable[[str, bytes], Path]
Make = Callable[..., Any]
RISCV, LOONGARCH, ARM = 243, 258, 40
JEMALLOC = b"\0<jemalloc>: Unsupported system page size\n\0"
C = {"needed": ["libc.so.6"]}


def _target(arch: str, glibc: str, page: int = 4096) -> TargetProfile:
    return TargetProfile(arch, arch, OsFacts("x", "X"), CpuFacts("any"), page, LibcFacts(glibc, "3.4.24", "1.3.11"))


TARGETS = {
    "kylin": _target("aarch64", "2.28", 65536),
    "new glibc": _target("aarch64", "2.41", 65536),
    "4 KiB": _target("aarch64", "2.28"),
    "x86-64": _target("x86_64", "2.28"),
    "riscv64": _target("riscv64", "2.36"),
    "loongarch, old": _target("loongarch64", "2.28", 16384),
    "loongarch, new": _target("loongarch64", "2.38", 16384),
    "armv7l": _target("armv7l", "2.28"),
}


def _glibc(version: str) -> dict[str, Any]:
    return {"needed": ["libc.so.6"], "needs": {"libc.so.6": {version: ["f"]}}}


LA = {"machine": LOONGARCH, "flags": 0x43}
NEW_LOADER, OLD_LOADER = "/lib64/ld-linux-loongarch-lp64d.so.1", "/lib64/ld.so.1"

#: target, file name, the file, its findings
CASES: dict[str, tuple[str, str, dict[str, Any], list[tuple[str, str]]]] = {
    "RISC-V soft float": ("riscv64", "f", {"machine": RISCV, "flags": 0x1}, [("arch.abi", "error")]),
    "RISC-V double float": ("riscv64", "f", {"machine": RISCV, "flags": 0x5}, []),
    "LoongArch single float": ("loongarch, new", "f", {**LA, "flags": 0x42}, [("arch.abi", "error")]),
    "LoongArch double float, either object ABI": ("loongarch, new", "f", {**LA, "flags": 0x3}, []),
    "old world by version": ("loongarch, new", "f", {**LA, **_glibc("GLIBC_2.27")}, [("arch.world", "error")]),
    "old world on the old world": ("loongarch, old", "f", {**LA, **_glibc("GLIBC_2.27")}, []),
    "new world by version": ("loongarch, old", "f", {**LA, **_glibc("GLIBC_2.36")}, [("arch.world", "error")]),
    "new world on the new world": ("loongarch, new", "f", {**LA, **_glibc("GLIBC_2.36")}, []),
    "old world by loader": (
        "loongarch, new", "f", {**LA, "kind": 2, "interpreter": OLD_LOADER}, [("arch.world", "error")],
    ),
    "old loader on the old world": ("loongarch, old", "f", {**LA, "kind": 2, "interpreter": OLD_LOADER}, []),
    "new loader on the new world": ("loongarch, new", "f", {**LA, "kind": 2, "interpreter": NEW_LOADER}, []),
    "4 KiB segments on 16 KiB pages": (
        "loongarch, new", "f", {**LA, "segments": [(4096, 0)]}, [("page.alignment", "error")],
    ),
    "64 KiB segments on 16 KiB pages": ("loongarch, new", "f", LA, []),
    "16 KiB segments on 16 KiB pages": ("loongarch, new", "f", {**LA, "segments": [(16384, 0)]}, []),
    "64-bit file in a 32-bit userland": ("armv7l", "f", {}, [("arch.machine", "error")]),
    "wrong name": (
        "x86-64", "m.cpython-311-aarch64-linux-gnu.so", {"machine": 62}, [("arch.module-name", "error")],
    ),
    "wrong name and wrong machine": (
        "kylin",
        "m.cpython-311-aarch64-linux-gnu.so",
        {"machine": 62},
        [("arch.machine", "error"), ("arch.module-name", "error")],
    ),
    "right name": ("kylin", "m.cpython-311-aarch64-linux-gnu.so", {}, []),
    "stable ABI": ("kylin", "m.abi3.so", {}, []),
    "named for musl": ("kylin", "m.cpython-311-aarch64-linux-musl.so", C, [("arch.module-name", "error")]),
    "musl library": ("kylin", "f.so", {"needed": ["libc.musl-aarch64.so.1"]}, [("loader.musl", "error")]),
    "musl library of another toolchain": ("kylin", "f.so", {"needed": ["libc.so"]}, [("loader.musl", "error")]),
    "musl program": (
        "kylin",
        "f",
        {"pie": True, "needed": ["libc.so"], "interpreter": "/lib/ld-musl-aarch64.so.1"},
        [("loader.interpreter", "error")],
    ),
    "jemalloc, page unknown": ("kylin", "f", {"data": JEMALLOC}, [("page.allocator", "warning")]),
    "jemalloc on 4 KiB pages": ("4 KiB", "f", {"data": JEMALLOC}, []),
    "script engine": (
        "kylin", "f", {"data": b"\0CeilingOnPageSize is too low, raise it\0"}, [("page.allocator", "warning")],
    ),
    "executable stack": ("kylin", "f.so", {"stack": 7}, [("stack.executable", "warning")]),
    "no stack header": ("kylin", "f.so", {**C, "stack": None}, [("stack.executable", "warning")]),
    "executable stack refused": ("new glibc", "f.so", {"stack": 7}, [("stack.executable", "error")]),
    "executable stack of a program": ("new glibc", "f", {"kind": 2, "stack": 7}, [("stack.executable", "warning")]),
    "text relocations": ("kylin", "f.so", {"textrel": True}, [("text.relocations", "warning")]),
    "static TLS by relocations": ("kylin", "f.so", {"tls": 120, "fixed": 5}, [("tls.static", "warning")]),
    "static TLS by flag": (
        "x86-64", "f.so", {"machine": 62, "tls": 120, "static_tls": True}, [("tls.static", "warning")],
    ),
    "static TLS with room": ("new glibc", "f.so", {"tls": 120, "fixed": 5}, [("tls.static", "info")]),
    "static TLS without room": ("new glibc", "f.so", {"tls": 4096, "fixed": 1}, [("tls.static", "warning")]),
    "static TLS of a program": ("kylin", "f", {"kind": 2, "tls": 120, "fixed": 5}, []),
    "dynamic TLS": ("kylin", "f.so", {"tls": 4096}, []),
    "working folder": ("kylin", "f.so", {"runpath": "$ORIGIN/../lib:"}, [("path.working-folder", "warning")]),
    "relative search path": ("kylin", "f.so", {"rpath": "lib"}, [("path.working-folder", "warning")]),
    "build path": ("kylin", "f.so", {"runpath": "/home/user/build/lib"}, [("path.absolute", "warning")]),
    "fixed path": ("kylin", "f.so", {"runpath": "/usr/local/lib"}, [("path.absolute", "info")]),
    "own folder": ("kylin", "f.so", {"runpath": "$ORIGIN/../lib:${ORIGIN}"}, []),
    "Chinese name": ("kylin", "模型.so", {}, [("name.non-ascii", "warning")]),
    "libgcc too new": (
        "kylin",
        "f.so",
        {"needed": ["libgcc_s.so.1"], "needs": {"libgcc_s.so.1": {"GCC_7.0.0": ["a"], "GCC_13.0.0": ["b"]}}},
        [("gcc.ceiling", "error")],
    ),
    "libgcc of the same GCC": (
        "kylin", "f.so", {"needed": ["libgcc_s.so.1"], "needs": {"libgcc_s.so.1": {"GCC_7.0.0": ["a"]}}}, [],
    ),
    "a marker of a glibc that is not known yet": (
        "new glibc", "f.so", _glibc("GLIBC_ABI_FUTURE"), [("glibc.ceiling", "error")],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_each_file_has_exactly_its_findings(put: Put, make: Make, case: str) -> None:
    target, name, fields, expected = CASES[case]
    report = audit([put(name, make(**fields).build())], TARGETS[target])
    assert [(finding.code, finding.severity) for finding in report.findings] == expected


def _values(report: AuditReport) -> dict[str, str]:
    return dict(report.findings[0].values)


def test_the_kernel_of_the_note_is_compared_as_numbers(put: Put, make: Make, kylin: TargetProfile) -> None:
    path = put("f", make(kernel=(4, 20, 0)).build())
    assert audit([path], kylin).findings == ()  # the profile does not say
    older = replace(kylin, os=OsFacts("kylin", "Kylin", kernel="4.9.337-52.22.v2207.ky10.aarch64"))
    assert [finding.code for finding in audit([path], older).findings] == ["kernel.minimum"]
    assert _values(audit([path], older))["needs"] == "4.20.0"
    newer = replace(kylin, os=OsFacts("kylin", "Kylin", kernel="5.10.0"))
    assert audit([path], newer).findings == ()


def test_rights_are_told_from_contents(put: Put, make: Make, kylin: TargetProfile) -> None:
    path = put("f", make().build())
    path.chmod(0o4755)
    assert [finding.code for finding in audit([path], kylin).findings] == ["mode.set-id"]


def _code_with_jemalloc(make: Make, words: list[int]) -> bytes:
    """A program whose code starts at a page, and whose text stands 4096 bytes after that."""
    data = bytearray(make(kind=2, dynamic=False, executable=True).build())
    code, text = 0x1000, 0x2000
    data += bytes(code - len(data)) + struct.pack(f"<{len(words)}I", *words)
    data += bytes(text - len(data)) + JEMALLOC
    size = len(data)
    struct.pack_into("<QQ", data, 64 + 32, size, size)  # PT_LOAD maps all of it
    return bytes(data)


NOP, RETURN = 0xD503201F, 0xD65F03C0
ADRP_NEXT_PAGE, ADD_1 = 0xB0000000, 0x91000400  # adrp x0, +4096; add x0, x0, #1: the text, after its zero byte
B_LS_3 = 0x54000069


def _compare(pages: int) -> int:
    return 0xF140011F | pages << 10  # cmp x8, #pages, lsl #12


READ = {
    "on the way": ([_compare(1), B_LS_3, ADRP_NEXT_PAGE, ADD_1, RETURN], "4096"),
    "16 KiB": ([_compare(4), B_LS_3, ADRP_NEXT_PAGE, NOP, ADD_1, RETURN], "16384"),
    "behind a branch": ([_compare(1), 0x54000068, RETURN, NOP, ADRP_NEXT_PAGE, ADD_1, RETURN], "4096"),
    "not of the comparison before a return": ([_compare(1), RETURN, ADRP_NEXT_PAGE, ADD_1], "?"),
    "no comparison with a page size": ([0xF100051F, B_LS_3, ADRP_NEXT_PAGE, ADD_1], "?"),
    "another text": ([_compare(1), B_LS_3, ADRP_NEXT_PAGE, 0x91000C00, RETURN], "?"),
    "two sizes": ([_compare(1), ADRP_NEXT_PAGE, ADD_1, RETURN, _compare(4), ADRP_NEXT_PAGE, ADD_1], "?"),
}


@pytest.mark.parametrize("case", READ)
def test_the_page_size_compiled_in_is_read_from_the_code(
    put: Put, make: Make, kylin: TargetProfile, case: str
) -> None:
    words, size = READ[case]
    (finding,) = audit([put("f", _code_with_jemalloc(make, words))], kylin).findings
    assert (finding.code, finding.severity) == ("page.allocator", "warning" if size == "?" else "error")
    assert dict(finding.values)["built"] == size


def test_an_allocator_for_pages_as_large_as_the_targets_is_clean(put: Put, make: Make, kylin: TargetProfile) -> None:
    words = [_compare(16), B_LS_3, ADRP_NEXT_PAGE, ADD_1, RETURN]
    assert audit([put("f", _code_with_jemalloc(make, words))], kylin).findings == ()
