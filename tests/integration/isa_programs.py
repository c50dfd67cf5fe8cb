"""Small programs for the audit of instructions: what each uses, and how it guards it.

They are static (musl), so that qemu-user runs them on any machine with nothing else.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

_A64 = """
#include <stdint.h>
#include <sys/auxv.h>
#define OP(name, extension, text) __attribute__((noinline)) static void name(void) \\
    { __asm__ volatile(".arch_extension " extension "\\n" text ::: "memory", "x9", "x10", "v0", "v1", "v2"); }
static uint64_t cell;
OP(nothing, "crc", "nop")
OP(dot, "dotprod", "sdot v0.4s, v1.16b, v2.16b")
OP(half, "fp16", "fadd h0, h1, h2")
OP(halves, "fp16", "fmov v0.4h, #1.0")
OP(matrix, "i8mm", "smmla v0.4s, v1.16b, v2.16b")
OP(brain, "bf16", "bfdot v0.4s, v1.8h, v2.8h")
OP(double_rounding, "rdm", "sqrdmlah v0.4s, v1.4s, v2.4s")
OP(vector, "sve", "ptrue p0.b\\nadd z0.s, z1.s, z2.s")
OP(crypto, "aes", "aese v0.16b, v1.16b")
__attribute__((noinline)) static void atomic(void)
    { __asm__ volatile(".arch_extension lse\\nldadd x9, x10, [%0]" :: "r"(&cell) : "memory", "x9", "x10"); }
__attribute__((noinline)) static void acquire(void)
    { __asm__ volatile(".arch_extension rcpc\\nldapr x9, [%0]" :: "r"(&cell) : "memory", "x9"); }
"""
_X86 = """
#include <stdint.h>
#include <cpuid.h>
#define OP(name, text) __attribute__((noinline)) static void name(void) { __asm__ volatile(text); }
OP(nothing, "nop")
OP(count, "popcnt %rax, %rcx")
OP(wide, "vpaddd %ymm0, %ymm1, %ymm2")
OP(fused, "vfmadd132ps %ymm0, %ymm1, %ymm2")
OP(bits, "pdep %rax, %rcx, %rcx")
OP(mask, "vpaddd %zmm0, %zmm1, %zmm2")
OP(rounds, "aesenc %xmm0, %xmm1")
OP(floats, "vaddps %ymm0, %ymm1, %ymm2")
OP(halves, "vcvtph2ps %xmm0, %xmm1")
OP(carry, "adcx %rax, %rcx")
OP(insert, "insertq %xmm0, %xmm1")
OP(checksum, "crc32b %al, %ecx")
OP(blend, "pblendw $1, %xmm0, %xmm1")
static int avx2(void)
    { unsigned a, b, c, d; return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & (1u << 5)); }
"""
_LOONGARCH = """
#define OP(name, text) __attribute__((noinline)) static void name(void) { __asm__ volatile(text); }
OP(nothing, "nop")
OP(vector, ".word 0x700a0c41") /* vadd.b, which the assembler knows for CPUs with LSX only */
OP(wide, ".word 0x740a0c41") /* xvadd.b */
"""
_CTOR = "__attribute__((constructor)) static void begin(void) {{ {call}(); }}\nint main(void) {{ return 0; }}\n"
_MAIN = "int main(void) {{ {call}(); return 0; }}\n"
_ASKED = "int main(void) {{ if (getauxval(AT_HWCAP) & (1ul << {bit})) {call}(); return 0; }}\n"
_FLAG = """static int have;
__attribute__((constructor)) static void look(void) {{ have = (getauxval(AT_HWCAP) >> {bit}) & 1; }}
int main(void) {{ nothing(); if (have) {call}(); nothing(); return 0; }}
"""
_UNUSED = "void unused(void) {{ {call}(); }}\nint main(void) {{ return 0; }}\n"
_OUTLINE = "int main(void) { return (int)__atomic_fetch_add(&cell, 1, __ATOMIC_SEQ_CST); }\n"
_POINTER = """static void (*volatile chosen)(void) = {call};
int main(void) {{ chosen(); return 0; }}
"""
_X86_FLAG = """static int have;
__attribute__((constructor)) static void look(void) {{ have = avx2(); }}
int main(void) {{ nothing(); if (have) {call}(); nothing(); return 0; }}
"""

_HEADS = {"aarch64": _A64, "x86_64": _X86, "loongarch64": _LOONGARCH}

SOURCES: dict[str, tuple[str, str]] = {
    "a64-plain": ("aarch64", _MAIN.format(call="nothing")),
    "a64-lse-constructor": ("aarch64", _CTOR.format(call="atomic")),
    "a64-lse-main": ("aarch64", _MAIN.format(call="atomic")),
    "a64-lse-outline": ("aarch64", _OUTLINE),
    "a64-dotprod-main": ("aarch64", _MAIN.format(call="dot")),
    "a64-dotprod-asked": ("aarch64", _ASKED.format(call="dot", bit=20)),
    "a64-dotprod-flag": ("aarch64", _FLAG.format(call="dot", bit=20)),
    "a64-fp16-main": ("aarch64", _MAIN.format(call="half")),
    "a64-fp16-constructor": ("aarch64", _CTOR.format(call="halves")),
    "a64-rdm-main": ("aarch64", _MAIN.format(call="double_rounding")),
    "a64-rcpc-main": ("aarch64", _MAIN.format(call="acquire")),
    "a64-i8mm-main": ("aarch64", _MAIN.format(call="matrix")),
    "a64-bf16-flag": ("aarch64", _FLAG.format(call="brain", bit=62)),
    "a64-sve-constructor": ("aarch64", _CTOR.format(call="vector")),
    "a64-aes-main": ("aarch64", _MAIN.format(call="crypto")),
    "a64-dotprod-unused": ("aarch64", _UNUSED.format(call="dot")),
    "a64-dotprod-pointer": ("aarch64", _POINTER.format(call="dot")),
    "x86-plain": ("x86_64", _MAIN.format(call="nothing")),
    "x86-popcnt-main": ("x86_64", _MAIN.format(call="count")),
    "x86-avx2-main": ("x86_64", _MAIN.format(call="wide")),
    "x86-avx2-asked": ("x86_64", "int main(void) { if (avx2()) wide(); return 0; }\n"),
    "x86-avx2-flag": ("x86_64", _X86_FLAG.format(call="wide")),
    "x86-fma-constructor": ("x86_64", _CTOR.format(call="fused")),
    "x86-bmi2-main": ("x86_64", _MAIN.format(call="bits")),
    "x86-avx512-main": ("x86_64", _MAIN.format(call="mask")),
    "x86-avx2-unused": ("x86_64", _UNUSED.format(call="wide")),
    "x86-sse41-main": ("x86_64", _MAIN.format(call="blend")),
    "x86-sse42-constructor": ("x86_64", _CTOR.format(call="checksum")),
    "x86-aes-main": ("x86_64", _MAIN.format(call="rounds")),
    "x86-avx-main": ("x86_64", _MAIN.format(call="floats")),
    "x86-f16c-main": ("x86_64", _MAIN.format(call="halves")),
    "x86-adx-constructor": ("x86_64", _CTOR.format(call="carry")),
    "x86-sse4a-main": ("x86_64", _MAIN.format(call="insert")),
    "la-plain": ("loongarch64", _MAIN.format(call="nothing")),
    "la-lsx-main": ("loongarch64", _MAIN.format(call="vector")),
    "la-lasx-constructor": ("loongarch64", _CTOR.format(call="wide")),
    "la-lsx-unused": ("loongarch64", _UNUSED.format(call="vector")),
}


def build(folder: Path, names: Iterable[str] = SOURCES) -> Path:
    """Compile them: seconds each the first time, then from zig's own cache."""
    for name in names:
        arch, body = SOURCES[name]
        source = folder / f"{name}.c"
        source.write_text(_HEADS[arch] + body)
        command = [sys.executable, "-m", "ziglang", "cc", "-target", f"{arch}-linux-musl", "-static", "-O1", "-w"]
        more = ["-moutline-atomics"] if name.endswith("outline") else []
        more += ["-mcpu=generic_la64+f+d"] if arch == "loongarch64" else []  # zig's default has LSX, in its libc too
        subprocess.run([*command, *more, source.name, "-o", name], cwd=folder, check=True)
    return folder
