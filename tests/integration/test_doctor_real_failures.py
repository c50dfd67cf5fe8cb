"""Starts that really fail on this machine, diagnosed from what the machine printed."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from sampan.doctor import diagnose
from sampan.doctor.conditions import Fact, compare
from sampan.doctor.here import Machine, Service, look
from sampan.doctor.model import Finding
from sampan.edge.process import ProcessRunner

pytestmark = pytest.mark.integration
ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="needs root to mount or to change user")


def compiled(source: str, out: Path, *flags: str) -> Path:
    """Compile C for this machine: with its own compiler, else with the zig that the workshop has."""
    return zig(source, out, *flags, command=("gcc",) if shutil.which("gcc") else ())


def zig(source: str, out: Path, *flags: str, command: Sequence[str] = ()) -> Path:
    """Compile C with zig, for any target."""
    if not command:
        pytest.importorskip("ziglang")
    code = out.parent / f"{out.name}.c"
    code.write_text(source, encoding="utf-8")
    words = (*(command or (sys.executable, "-m", "ziglang", "cc")), "-o", str(out), str(code), *flags)
    subprocess.run(words, check=True, capture_output=True)
    return out


def printed(*words: str, **environ: str) -> str:
    """What a shell says of a command, crashes included, as a person at a terminal sees it."""
    line = " ".join(words)
    done = subprocess.run(
        ["bash", "-c", f"{line}\necho exit code $?"],
        env={"PATH": os.environ["PATH"], "LC_ALL": "C", **environ},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    return done.stdout


def first(text: str, **facts: str) -> Finding:
    found = diagnose.of_text(text, {name: Fact(value, "this machine") for name, value in facts.items()})
    assert found.findings, text
    return found.findings[0]


def test_a_missing_library(tmp_path: Path) -> None:
    library = compiled("int helper(void) { return 0; }\n", tmp_path / "libhelper.so", "-shared", "-fPIC")
    compiled("int helper(void); int main(void) { return helper(); }\n", tmp_path / "app", f"-L{tmp_path}", "-lhelper")
    library.unlink()
    finding = first(printed(str(tmp_path / "app")))
    assert finding.code == "loader.missing-library"
    assert finding.values["libraries"] == "libhelper.so"


def test_a_glibc_that_is_too_old(tmp_path: Path) -> None:
    """strlcpy came with glibc 2.38."""
    if compare(os.confstr("CS_GNU_LIBC_VERSION") or "0", "2.38") >= 0:
        pytest.skip("this machine's glibc is as new")
    source = """
#include <string.h>
int main(int count, char **words) { char out[9]; return count > 9 ? (int)strlcpy(out, words[0], 9) : 0; }
"""
    app = zig(source, tmp_path / "app", "-target", f"{os.uname().machine}-linux-gnu.2.39")
    finding = first(printed(str(app)))
    assert finding.code == "loader.version"
    assert finding.values["needs"] == "GLIBC_2.38"


def test_the_wrong_architecture(tmp_path: Path) -> None:
    other = "aarch64" if os.uname().machine == "x86_64" else "x86_64"
    app = zig("int main(void) { return 0; }\n", tmp_path / "app", "-target", f"{other}-linux-musl")
    app.write_bytes(app.read_bytes()[:18] + b"\x16\x00" + app.read_bytes()[20:])  # s390: no emulator takes it
    assert first(printed(str(app))).code == "loader.wrong-architecture"


def test_a_loader_that_is_not_there(tmp_path: Path) -> None:
    app = compiled("int main(void) { return 0; }\n", tmp_path / "app", "-Wl,--dynamic-linker=/lib/ld-none.so.1")
    finding = first(printed(str(app)))
    assert finding.code == "loader.interpreter"


def test_a_file_that_was_cut(tmp_path: Path) -> None:
    library = compiled("int helper(void) { return 0; }\n", tmp_path / "libhelper.so", "-shared", "-fPIC")
    app = compiled("int helper(void); int main(void) { return helper(); }\n", tmp_path / "app", str(library))
    library.write_bytes(b"")
    assert first(printed(str(app))).code == "loader.damaged-file"


def test_an_instruction_that_the_emulated_cpu_lacks(tmp_path: Path) -> None:
    qemu = shutil.which("qemu-aarch64-static") or shutil.which("qemu-aarch64")
    if qemu is None:
        pytest.skip("no qemu-aarch64 on this machine")
    source = 'int main(void) { __asm__ volatile("sdot v0.4s, v1.16b, v2.16b"); return 0; }\n'
    app = zig(source, tmp_path / "app", "-target", "aarch64-linux-musl", "-mcpu=generic+v8_2a+dotprod")
    text = printed(qemu, "-cpu", "cortex-a57", str(app))
    finding = first(text, arch="aarch64", features="fp asimd evtstrm aes pmull sha1 sha2 crc32")
    assert finding.code == "cpu.illegal-instruction"
    assert [cause.name for cause in finding.causes] == ["armv8.0"]
    assert "132" in text


def test_memory_that_a_limit_refuses() -> None:
    text = printed("ulimit -v 300000;", sys.executable, "-c", "'x = bytearray(2 << 30)'")
    assert first(text).code == "memory.allocation"


def test_a_process_that_the_kernel_kills(tmp_path: Path) -> None:
    group = Path("/sys/fs/cgroup/memory/sampan-doctor-test")
    limit = "memory.limit_in_bytes"
    if not group.parent.is_dir():
        group, limit = Path("/sys/fs/cgroup/sampan-doctor-test"), "memory.max"
    try:
        group.mkdir()
        (group / limit).write_text("33554432")
    except OSError as error:
        pytest.skip(f"no cgroup of our own: {error}")
    try:
        (tmp_path / "eat.sh").write_text(
            f"echo $$ > {group}/cgroup.procs\n{sys.executable} -c 'x = b\"1\" * (1 << 29)'\n"
        )
        text = printed("bash", str(tmp_path / "eat.sh"))
    finally:
        group.rmdir()
    assert first(text).code == "memory.killed"
    kernel = subprocess.run(["dmesg"], capture_output=True, text=True, errors="replace", check=False).stdout
    if "sampan-doctor-test" in kernel:
        finding = first("\n".join(line for line in kernel.splitlines()[-60:]))
        assert finding.code == "memory.oom-kill"


def test_a_port_that_is_taken() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        text = printed(sys.executable, "-m", "http.server", str(port), "--bind", "127.0.0.1")
        seen = look(Machine(ProcessRunner(), lambda *_: "HTTP 404", {}), Service(None, None, "127.0.0.1", port))
    assert first(text).code == "serve.port-taken"
    assert seen.facts["port_owner"].value == "other"
    here = diagnose.diagnose(seen.texts, seen.facts)
    assert "here.port" in {one.code for one in here.findings}


@pytest.fixture
def noexec(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "noexec"
    folder.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "noexec,size=16m", "none", str(folder)], check=False)
    if done.returncode != 0:
        pytest.skip("may not mount here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@ROOT
def test_a_mount_without_execution(noexec: Path) -> None:
    program = noexec / "app"
    shutil.copy("/bin/true", program)
    seen = look(Machine(ProcessRunner(), lambda *_: "-", {"TMPDIR": str(noexec)}), Service(noexec))
    assert seen.facts["noexec_prefix"].value == "yes"
    found = diagnose.of_text(printed(str(program)), seen.facts).findings
    finding = next(one for one in found if one.code == "perm.exec")
    assert [cause.name for cause in finding.causes] == ["noexec"]
    assert "here.noexec" in {one.code for one in found}


@ROOT
def test_a_library_on_a_mount_without_execution(noexec: Path, tmp_path: Path) -> None:
    library = compiled("int helper(void) { return 0; }\n", tmp_path / "libhelper.so", "-shared", "-fPIC")
    shutil.copy(library, noexec)
    words = (sys.executable, "-c", f"'import ctypes; ctypes.CDLL(\"{noexec}/libhelper.so\")'")
    finding = first(printed(*words), noexec_prefix="yes", noexec_tmp="no")
    assert finding.code == "loader.map-refused"
    assert [cause.name for cause in finding.causes] == ["noexec-prefix"]


@ROOT
def test_a_file_that_the_service_may_not_read(tmp_path: Path) -> None:
    if shutil.which("setpriv") is None:
        pytest.skip("no setpriv")
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    (closed / "model.gguf").write_bytes(b"GGUF")
    text = printed(
        "setpriv --reuid=65534 --clear-groups", "/usr/bin/python3", "-c", f"'open(\"{closed}/model.gguf\")'"
    )
    assert first(text).code == "perm.denied"


def test_a_script_with_windows_line_ends(tmp_path: Path) -> None:
    script = tmp_path / "start.sh"
    script.write_bytes(b"#!/bin/sh\r\necho hello\r\n")
    script.chmod(0o755)
    assert first(printed(str(script))).code in {"script.crlf", "loader.interpreter"}


def test_memory_that_may_not_be_locked(tmp_path: Path) -> None:
    if shutil.which("setpriv") is None or os.geteuid() != 0:
        pytest.skip("needs root and setpriv, to be nobody")
    source = """
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
int main(void) {
    size_t size = 64 << 20;
    void *buffer = malloc(size);
    if (mlock(buffer, size)) {
        fprintf(stderr, "warning: failed to mlock %zu-byte buffer (after previously locking 0 bytes): ", size);
        perror("");
        return 1;
    }
    return 0;
}
"""
    app = compiled(source, tmp_path / "app")
    for folder in (tmp_path, *tmp_path.parents[:3]):
        folder.chmod(0o755)
    text = printed("ulimit -l 64;", "setpriv --reuid=65534 --clear-groups --bounding-set=-all", str(app))
    finding = first(text)
    assert finding.code == "memory.mlock"


def test_the_machine_itself_looks_healthy() -> None:
    seen = look(Machine(ProcessRunner(), lambda *_: "-", dict(os.environ)), Service())
    found = diagnose.diagnose([], seen.facts)
    assert [one.code for one in found.findings if one.severity == "error"] == []
    assert "nofile" in seen.facts
