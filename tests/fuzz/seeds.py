"""Sound inputs to begin with: one of each form that the audit reads, with everything in it that it looks at."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import zipfile
from importlib.util import find_spec
from pathlib import Path

from tests.unit.audit import a64_file, gpu_files
from tests.unit.audit.conftest import Elf
from tests.unit.audit.test_audit_archives import COMPRESSED, tar, zipped
from tests.unit.audit.test_audit_wheels import NAME, wheel

from sampan.audit.elf import MAGIC

KEPT = Path(__file__).parents[1] / "data" / "audit-hostile"
CORPUS = Path(__file__).parents[1] / "data" / "audit-corpus.zip"
_LARGEST, _REAL = 200_000, 30  # bytes of a real library, and how many: more are only slower

# A constructor, a test of the CPU, a table of functions, an import: what the reading of code goes by.
_SOURCE = """
extern unsigned long getauxval(unsigned long); extern int puts(const char *);
static int have; int shared; static void one(void); static void two(void);
void (*const table[])(void) = {one, two};
__attribute__((noinline)) static void one(void) { __asm__ volatile(ONE); shared++; }
__attribute__((noinline)) static void two(void) { __asm__ volatile(TWO); shared--; }
__attribute__((constructor)) static void look(void) { have = getauxval(16) >> 20 & 1; if (have) one(); }
__attribute__((constructor)) static void begin(void) { if (shared == 7) puts("seven"); two(); }
void run(int which) { if (have) one(); table[which & 1](); for (int i = 0; i < which; i++) two(); }
"""
_ASSEMBLY = {
    "aarch64": (".arch_extension dotprod\\nsdot v0.4s, v1.16b, v2.16b", ".arch_extension lse\\nldadd w9, w10, [sp]"),
    "x86_64": ("vpaddd %ymm0, %ymm1, %ymm2", "popcnt %rax, %rcx\\nvfmadd132ps %ymm0, %ymm1, %ymm2"),
    "loongarch64": (".word 0x700a0c41", ".word 0x740a0c41"),
}


def seeds(real: list[Path]) -> list[tuple[str, bytes]]:
    """(name, content), those of KEPT and small ELF files below ``real`` included."""
    needs = {"libc.so.6": {"GLIBC_2.17": ["puts"], "GLIBC_2.34": ["dlopen"]}}
    plain = Elf(
        soname="x.so",
        needed=["libc.so.6"],
        needs=needs,
        provides=["X_1"],
        exports={"f": "X_1", "h": ""},
        runpath="$ORIGIN/../x.libs",
        tls=64,
        fixed=2,
        kernel=(3, 7, 0),
        data=b"\0<jemalloc>: Unsupported system page size\n\0libplugin.so.1\0",
    ).build()
    images = [gpu_files.Image(61), gpu_files.Image(75, flags=gpu_files.ZSTD), gpu_files.Image(90, ptx=True)]
    fat = gpu_files.library(gpu_files.container(*images), gpu_files.container(gpu_files.Image(80)))
    found = [("x.so", plain), ("fat.so", fat), ("k.cubin", gpu_files.cubin(75)), ("program", _program())]
    compiled = _compiled()
    members = {"pkg/x.so": plain, "pkg/fat.so": fat, "notes": b"text" * 50, "pkg.libs/c.so": compiled[0][1]}
    inner = {"in.tar": tar({**members}), "in.whl": wheel({"p/x.so": plain})}
    found += [*compiled, (NAME, wheel(members)), ("a.zip", zipped(members)), ("b.zip", zipped(inner))]
    found += [(f"a{suffix}", pack(tar({**members}))) for suffix, pack in COMPRESSED.items()]
    small = sorted((path for path in real if _small_elf(path)), key=lambda path: path.stat().st_size)
    found += [(f"real-{path.name}", path.read_bytes()) for path in small[:_REAL]]
    found += [(each.name, each.read_bytes()) for each in sorted(KEPT.glob("*"))]
    return [*found, *_found_before()]


def _found_before() -> list[tuple[str, bytes]]:
    """What earlier runs kept because it led somewhere new. Names are NUMBER/NAME."""
    if not CORPUS.exists():
        return []
    with zipfile.ZipFile(CORPUS) as archive:
        return [(info.filename.partition("/")[2], archive.read(info)) for info in archive.infolist()]


def add_to_corpus(fresh: list[tuple[str, bytes]], target: Path) -> None:
    """Write CORPUS and ``fresh`` to ``target``, the same bytes for the same inputs."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for number, (name, content) in enumerate([*_found_before(), *fresh]):
            archive.writestr(zipfile.ZipInfo(f"{number:04}/{name}"), content, zipfile.ZIP_DEFLATED)


def _program() -> bytes:
    calls = (a64_file.bl(4), a64_file.SDOT, a64_file.RET, a64_file.NOT_CODE, *a64_file.flag_into(0, 4))
    tail = (a64_file.cbz(2), a64_file.LDADD, a64_file.FMOV_HALF, a64_file.b(-8), a64_file.RET)
    return a64_file.program([*calls, *tail], symbols=[("main", 0, 2), ("$d", 3, 0), ("$x", 4, 0), ("f", 4, 2)])


def _compiled() -> list[tuple[str, bytes]]:
    """Small libraries with code for each architecture; where there is no compiler, the plain program instead."""
    if find_spec("ziglang") is None:
        return [("a64.so", _program())]
    found = []
    with tempfile.TemporaryDirectory() as name:
        for arch, (one, two) in _ASSEMBLY.items():
            source, made = Path(name, f"{arch}.c"), Path(name, f"{arch}.so")
            source.write_text(f'#define ONE "{one}"\n#define TWO "{two}"\n{_SOURCE}')
            words = ["-target", f"{arch}-linux-musl", "-shared", "-nostdlib", "-O1", "-w", "-fPIC", "-funwind-tables"]
            subprocess.run([sys.executable, "-m", "ziglang", "cc", *words, source, "-o", made], check=True)
            found.append((made.name, made.read_bytes()))
    return found


def _small_elf(path: Path) -> bool:
    if path.is_symlink() or not path.is_file() or path.stat().st_size > _LARGEST:
        return False
    with path.open("rb") as stream:
        return stream.read(4) == MAGIC
