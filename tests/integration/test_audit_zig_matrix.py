"""Architecture x C library x version x flags, from a real linker: each file gives exactly its findings."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest

from sampan.audit.audit import audit
from sampan.spec.target import CpuFacts, LibcFacts, OsFacts, TargetProfile

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(find_spec("ziglang") is None, reason="the compiler (package ziglang) is not installed"),
]

HELLO = '#include <stdio.h>\nint main(void) { puts("hi"); return 0; }\n'
LIBRARY = '#include <stdio.h>\nvoid hello(void) { puts("hi"); }\n'
RANDOM = "#include <stdlib.h>\nunsigned f(void) { return arc4random(); }\n"  # new in glibc 2.36
STAT = '#include <sys/stat.h>\nint f(struct stat *s) { return stat("/", s); }\n'  # an own symbol since glibc 2.33
ALONE = "int f(void) { return 1; }\n"
MODULE = "extern void *PyModule_Create2(void *, int);\nvoid *PyInit_m(void) { return PyModule_Create2(0, 3); }\n"
FIXED = "static __thread int a[30];\nint *f(int i) { return &a[i]; }\n"
ADDRESS = 'int x;\n__asm__(".text\\n.globl t\\nt: .quad x\\n");\n'  # an address among the code


def _target(arch: str, glibc: str, page: int) -> TargetProfile:
    # the features that the compiler's floor takes for granted, so that no instruction is in question
    features = {"loongarch64": ("lam", "ual", "fpu", "lsx", "crc32"), "riscv64": ("rv64imafdc",)}
    cpu = CpuFacts("any", features.get(arch, ()), features_known=False)
    return TargetProfile(f"{arch}-{glibc}", arch, OsFacts("x", "X"), cpu, page, LibcFacts(glibc, "3.4.24", "1.3.11"))


@dataclass(frozen=True)
class Case:
    """One file: ``triple`` for the compiler, and its findings on the target of that architecture and glibc."""

    triple: str
    glibc: str
    findings: tuple[str, ...]
    source: str = LIBRARY
    flags: tuple[str, ...] = ("-shared",)
    name: str = "f.so"
    page: int = 65536

    @property
    def arch(self) -> str:
        return self.triple.partition("-")[0]


SHARED, BARE = ("-shared",), ("-shared", "-nostdlib")
CASES: dict[str, Case] = {
    # every architecture: built for the target's glibc or an older one, for a newer one, for musl, static
    "aarch64 2.17": Case("aarch64-linux-gnu.2.17", "2.28", ()),
    "aarch64 2.28": Case("aarch64-linux-gnu.2.28", "2.28", ()),
    "aarch64 2.31 on 2.28, nothing new used": Case("aarch64-linux-gnu.2.31", "2.28", ()),
    "aarch64 2.36 on 2.28": Case("aarch64-linux-gnu.2.36", "2.28", ("glibc.ceiling",), STAT),
    "aarch64 2.36 on 2.36": Case("aarch64-linux-gnu.2.36", "2.36", (), RANDOM),
    "aarch64 program": Case("aarch64-linux-gnu.2.28", "2.28", (), HELLO, (), "f"),
    "aarch64 musl library": Case("aarch64-linux-musl", "2.28", ("loader.musl",)),
    "aarch64 musl program": Case("aarch64-linux-musl", "2.28", ("loader.interpreter",), HELLO, ("-dynamic",), "f"),
    "aarch64 static": Case("aarch64-linux-musl", "2.28", (), HELLO, ("-static",), "f"),
    "aarch64 static-pie": Case("aarch64-linux-musl", "2.28", (), HELLO, ("-static-pie",), "f"),
    "aarch64 static, 4 KiB": Case(
        "aarch64-linux-musl", "2.28", ("page.alignment",), HELLO, ("-static", "-Wl,-z,max-page-size=4096"), "f"
    ),
    "aarch64 4 KiB": Case(
        "aarch64-linux-gnu.2.28", "2.28", ("page.alignment",), flags=("-shared", "-Wl,-z,max-page-size=4096")
    ),
    "aarch64 4 KiB on 4 KiB": Case(
        "aarch64-linux-gnu.2.28", "2.28", (), flags=("-shared", "-Wl,-z,max-page-size=4096"), page=4096
    ),
    "x86-64 2.17": Case("x86_64-linux-gnu.2.17", "2.17", (), page=4096),
    "x86-64 2.36 on 2.28": Case("x86_64-linux-gnu.2.36", "2.28", ("glibc.ceiling",), RANDOM, page=4096),
    "x86-64 musl program": Case(
        "x86_64-linux-musl", "2.28", ("loader.interpreter",), HELLO, ("-dynamic",), "f", page=4096
    ),
    "x86-64 static": Case("x86_64-linux-musl", "2.17", (), HELLO, ("-static",), "f", page=4096),
    "riscv64 2.31": Case("riscv64-linux-gnu.2.31", "2.31", (), page=4096),
    "riscv64 2.36 on 2.31": Case("riscv64-linux-gnu.2.36", "2.31", ("glibc.ceiling",), RANDOM, page=4096),
    "riscv64 static": Case("riscv64-linux-musl", "2.31", (), HELLO, ("-static",), "f", page=4096),
    "riscv64 soft float": Case(
        "riscv64-linux-musl", "2.31", ("arch.abi",), ALONE, (*BARE, "-mabi=lp64", "-mcpu=generic_rv64-f-d"), page=4096
    ),
    "loongarch64 2.36 on the new world": Case("loongarch64-linux-gnu.2.36", "2.38", (), page=16384),
    "loongarch64 2.36 on the old world": Case("loongarch64-linux-gnu.2.36", "2.28", ("arch.world",), page=16384),
    "loongarch64 program on the old world": Case(
        "loongarch64-linux-gnu.2.36", "2.28", ("arch.world",), HELLO, (), "f", page=16384
    ),
    "loongarch64 static": Case("loongarch64-linux-musl", "2.38", (), HELLO, ("-static",), "f", page=16384),
    "loongarch64 4 KiB": Case(
        "loongarch64-linux-musl",
        "2.38",
        ("page.alignment",),
        ALONE,
        (*BARE, "-Wl,-z,max-page-size=4096"),
        page=16384,
    ),
    # names and traps
    "module of the right name": Case(
        "aarch64-linux-gnu.2.28", "2.28", (), ALONE, BARE, "m.cpython-311-aarch64-linux-gnu.so"
    ),
    "module of a wrong name": Case(
        "aarch64-linux-gnu.2.28", "2.28", ("arch.module-name",), ALONE, BARE, "m.cpython-311-x86_64-linux-gnu.so"
    ),
    "extension module": Case("aarch64-linux-gnu.2.28", "2.28", (), MODULE, SHARED, "m.abi3.so"),
    "text relocations": Case(
        "aarch64-linux-gnu.2.28", "2.28", ("text.relocations",), ADDRESS, (*BARE, "-Wl,-z,notext")
    ),
    "static TLS, flag": Case(
        "x86_64-linux-gnu.2.17",
        "2.17",
        ("tls.static",),
        FIXED,
        (*BARE, "-fPIC", "-ftls-model=initial-exec"),
        page=4096,
    ),
    "static TLS, relocations": Case(
        "aarch64-linux-gnu.2.28", "2.28", ("tls.static",), FIXED, (*BARE, "-fPIC", "-ftls-model=initial-exec")
    ),
    "dynamic TLS": Case("aarch64-linux-gnu.2.28", "2.28", (), FIXED, (*SHARED, "-fPIC")),
    "working folder": Case(
        "aarch64-linux-gnu.2.28", "2.28", ("path.working-folder",), ALONE, (*BARE, "-Wl,-rpath,$ORIGIN:")
    ),
    "build path": Case(
        "aarch64-linux-gnu.2.28", "2.28", ("path.absolute",), ALONE, (*BARE, "-Wl,-rpath,/home/user/build")
    ),
}  # fmt: skip


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some minutes of compiling C libraries the first time, half a minute afterwards."""
    return tmp_path_factory.mktemp("matrix")


@pytest.mark.parametrize("name", CASES)
def test_each_file_gives_exactly_its_findings(folder: Path, name: str) -> None:
    case = CASES[name]
    place = folder / str(list(CASES).index(name))
    place.mkdir()
    (place / "source.c").write_text(case.source)
    command = [sys.executable, "-m", "ziglang", "cc", "-target", case.triple, "-O1", "source.c", "-o", case.name]
    subprocess.run([*command, *case.flags], cwd=place, check=True)
    report = audit([place / case.name], _target(case.arch, case.glibc, case.page))
    loud = [finding for finding in report.findings if not finding.code.startswith("isa.")]
    assert tuple(finding.code for finding in loud) == case.findings, loud
