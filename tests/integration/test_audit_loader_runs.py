"""What the audit predicts of loader, libraries and symbols happens: the same folders are judged and run here."""

from __future__ import annotations

import platform
import re
import struct
import subprocess
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest

from sampan.audit.audit import audit
from sampan.survey.machine import survey_this

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(find_spec("ziglang") is None, reason="the compiler (package ziglang) is not installed"),
    pytest.mark.skipif(
        (platform.machine(), platform.libc_ver()[0]) != ("x86_64", "glibc"),
        reason="the files are for x86-64 with the GNU C library, and this machine runs them itself",
    ),
]

GNU, MUSL = "x86_64-linux-gnu.2.17", "x86_64-linux-musl"
MAIN = "int f(void);\nint main(void) { return f(); }\n"
HELLO = "int main(void) { return 0; }\n"
NOW = ("-Wl,-z,now",)
RUNPATH, RPATH = struct.pack("<q", 29), struct.pack("<q", 15)


@dataclass(frozen=True)
class Step:
    """One call of the compiler."""

    out: str
    source: str
    flags: tuple[str, ...] = ()
    target: str = GNU


def _lib(name: str, source: str, *flags: str) -> Step:
    return Step(name, source, ("-shared", f"-Wl,-soname,{name}", *flags))


def _versioned(source: str) -> Step:
    return _lib("liba.so", source, "-Wl,--version-script=versions")


USES_A = ("-L.", "-la", "-Wl,-rpath,$ORIGIN", *NOW)
A, B = _lib("liba.so", "int f(void) { return 0; }\n"), _lib("libb.so", "int g(void) { return 0; }\n")
A_ON_B = _lib("liba.so", "int g(void);\nint f(void) { return g(); }\n", "-L.", "-lb")
ONE, TWO = "V_1 { global: f; };\n", "V_1 { };\nV_2 { global: f; };\n"
HOLLOW = "V_1 { global: other; };\n"

#: the steps (a text is written to the file `versions`; "-x" deletes x, "=x" makes its RUNPATH an RPATH, for which
#: this linker has no flag), the findings, what is printed
CASES: dict[str, tuple[list[Step | str], list[str], str]] = {
    "old glibc": ([Step("p", HELLO)], [], ""),
    "static": ([Step("p", HELLO, ("-static",), MUSL)], [], ""),
    "static-pie": ([Step("p", HELLO, ("-static-pie",), MUSL)], [], ""),
    "musl": ([Step("p", HELLO, ("-dynamic",), MUSL)], ["loader.interpreter"], "No such file"),
    "library beside": ([A, Step("p", MAIN, USES_A)], [], ""),
    "library gone": ([A, Step("p", MAIN, USES_A), "-liba.so"], ["closure.missing"], "cannot open shared object"),
    "no search path": ([A, Step("p", MAIN, ("-L.", "-la"))], ["closure.missing"], "cannot open shared object"),
    "runpath is not inherited": (
        [B, A_ON_B, Step("p", MAIN, USES_A)],
        ["closure.missing"],
        "libb.so: cannot open shared object",
    ),
    "rpath is inherited": ([B, A_ON_B, Step("p", MAIN, USES_A), "=p"], [], ""),
    "version gone": (
        [TWO, _versioned(A.source), Step("p", MAIN, USES_A), ONE, _versioned(A.source)],
        ["closure.version"],
        "version `V_2' not found",
    ),
    "symbol gone": (
        [
            ONE,
            _versioned(A.source),
            Step("p", MAIN, USES_A),
            HOLLOW,
            _versioned("int other(void) { return 0; }\n"),
        ],
        ["closure.symbols"],
        "undefined symbol: f, version V_1",
    ),
    "too new a glibc": (
        [Step("p", "unsigned long f(char *);\nint main(void) { char a[2]; return (int)f(a) - 1; }\n"
              "unsigned long strlcpy(char *, const char *, unsigned long);\n"
              'unsigned long f(char *a) { return strlcpy(a, "x", 2); }\n', (), "x86_64-linux-gnu.2.38")],
        ["glibc.ceiling"],
        "version `GLIBC_2.38' not found",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_the_prediction_comes_true(tmp_path: Path, name: str) -> None:
    steps, codes, printed = CASES[name]
    here = survey_this()
    if name == "too new a glibc" and tuple(map(int, (here.libc.glibc or "0").split("."))) >= (2, 38):
        pytest.skip("this machine's glibc is new enough")
    for step in steps:
        _do(step, tmp_path)
    (tmp_path / "source.c").unlink()
    findings = [each for each in audit([tmp_path], here).findings if not each.code.startswith("isa.")]
    assert [each.code for each in findings if each.severity == "error"] == codes, findings
    status, text = _run(tmp_path / "p")
    assert (status == 0) == (not codes), text
    assert re.search(re.escape(printed), text), text


def _do(step: Step | str, folder: Path) -> None:
    if isinstance(step, str):
        if step.startswith("-"):
            (folder / step[1:]).unlink()
        elif step.startswith("="):
            data = (folder / step[1:]).read_bytes()
            assert data.count(RUNPATH) == 1
            (folder / step[1:]).write_bytes(data.replace(RUNPATH, RPATH))
        else:
            (folder / "versions").write_text(step)
        return
    (folder / "source.c").write_text(step.source)
    command = [sys.executable, "-m", "ziglang", "cc", "-target", step.target, "source.c", "-o", step.out, *step.flags]
    subprocess.run(command, cwd=folder, check=True)


def _run(program: Path) -> tuple[int, str]:
    try:
        done = subprocess.run([program], capture_output=True, text=True, check=False, timeout=20, env={"LC_ALL": "C"})
    except FileNotFoundError as error:
        return 127, str(error)
    return done.returncode, done.stderr
