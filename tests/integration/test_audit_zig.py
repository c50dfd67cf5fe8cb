"""Files from a real linker: each fault gives exactly its finding, readelf agrees, clean twins pass."""

from __future__ import annotations

import random
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from sampan.audit import elf, texts
from sampan.audit.audit import audit
from sampan.audit.facts import Damaged, ElfFacts
from sampan.spec.target import CpuFacts, LibcFacts, OsFacts, TargetProfile

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(find_spec("ziglang") is None, reason="the compiler (package ziglang) is not installed"),
]

KYLIN = TargetProfile(
    "kylin", "aarch64", OsFacts("kylin", "Kylin"), CpuFacts("any"), 65536, LibcFacts("2.28", "3.4.24", "1.3.11")
)
HELLO = '#include <stdio.h>\nint main(void) { puts("hi"); return 0; }\n'
RANDOM = "#include <stdlib.h>\nunsigned f(void) { return arc4random(); }\n"  # new in glibc 2.36
USER = "unsigned f(void);\nunsigned g(void) { return f(); }\n"


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of small programs and libraries; a minute of compiling the first time, seconds afterwards."""
    folder = tmp_path_factory.mktemp("elf")

    def cc(name: str, source: str, target: str, *flags: str) -> None:
        (folder / "source.c").write_text(source)
        command = [sys.executable, "-m", "ziglang", "cc", "-target", target, "source.c", "-o", name, *flags]
        subprocess.run(command, cwd=folder, check=True)

    cc("hello", HELLO, "aarch64-linux-gnu.2.28")
    cc("lib4k.so", HELLO, "aarch64-linux-gnu.2.28", "-shared", "-Wl,-z,max-page-size=4096")
    cc("librandom.so", RANDOM, "aarch64-linux-gnu.2.36", "-shared", "-Wl,-soname,librandom.so")
    cc("libuser.so", USER, "aarch64-linux-gnu.2.28", "-shared", "-L.", "-lrandom", "-Wl,-rpath,$ORIGIN")
    cc("hello-musl", HELLO, "aarch64-linux-musl", "-dynamic")
    cc("hello-x86-64", HELLO, "x86_64-linux-gnu.2.17")
    return folder


EXPECTED: dict[str, list[str]] = {
    "hello": [],
    "libuser.so": [],
    "lib4k.so": ["page.alignment"],
    "librandom.so": ["glibc.ceiling"],
    "hello-musl": ["loader.interpreter"],
    "hello-x86-64": ["arch.machine"],
}


@pytest.mark.parametrize("name", EXPECTED)
def test_each_file_gives_exactly_its_findings(files: Path, name: str) -> None:
    assert [finding.code for finding in audit([files / name], KYLIN).findings] == EXPECTED[name]


def test_the_ceiling_names_the_function(files: Path) -> None:
    (finding,) = audit([files / "librandom.so"], KYLIN).findings
    values = dict(finding.values)
    assert (values["highest"], values["have"]) == ("GLIBC_2.36", "GLIBC_2.28")
    assert values["symbols"] == "arc4random@GLIBC_2.36"


def test_a_library_beside_the_file_must_be_there(files: Path, tmp_path: Path) -> None:
    alone = Path(shutil.copy(files / "libuser.so", tmp_path))
    (finding,) = audit([alone], KYLIN).findings
    assert (finding.code, dict(finding.values)["libraries"]) == ("closure.missing", "librandom.so")


def test_a_transfer_that_was_cut_is_seen(files: Path, tmp_path: Path) -> None:
    whole = (files / "hello").read_bytes()
    (tmp_path / "cut").write_bytes(whole[: len(whole) * 9 // 10])
    assert [finding.code for finding in audit([tmp_path / "cut"], KYLIN).findings] == ["elf.damaged"]


@pytest.mark.skipif(shutil.which("readelf") is None, reason="readelf (binutils) is not on this machine")
@pytest.mark.parametrize("name", EXPECTED)
def test_readelf_reads_the_same(files: Path, name: str) -> None:
    facts = elf.read(files / name)
    assert isinstance(facts, ElfFacts)
    text = subprocess.run(
        ["readelf", "-dlVW", name], cwd=files, capture_output=True, text=True, check=True, env={"LC_ALL": "C"}
    ).stdout
    assert list(facts.needed) == re.findall(r"\(NEEDED\).*\[(.*)\]", text)
    assert {need.version for need in facts.needs} == set(re.findall(r"Name: (\S+)\s+Flags", text))
    assert [load.align for load in facts.loads] == [int(a, 16) for a in re.findall(r"  LOAD .* (0x\w+)\n", text)]
    assert ([facts.interpreter] if facts.interpreter else []) == re.findall(r"program interpreter: (.*)\]", text)


@pytest.mark.skipif(shutil.which("readelf") is None, reason="readelf (binutils) is not on this machine")
@pytest.mark.parametrize("name", EXPECTED)
def test_readelf_sees_the_same_symbols(files: Path, name: str) -> None:
    facts = elf.read(files / name)
    assert isinstance(facts, ElfFacts)
    text = subprocess.run(
        ["readelf", "--dyn-syms", "-W", name],
        cwd=files,
        capture_output=True,
        text=True,
        check=True,
        env={"LC_ALL": "C"},
    ).stdout
    rows = re.findall(r"(\S+) +(GLOBAL|WEAK) +(DEFAULT|PROTECTED) +(UND|ABS|\d+) (\S+)", text)
    wanted = {_plain(symbol) for _, binding, _, where, symbol in rows if where == "UND" and binding == "GLOBAL"}
    given = {_plain(symbol) for _, _, _, where, symbol in rows if where != "UND"}
    assert {name for name, _ in facts.symbols.wanted} == wanted
    assert set(facts.symbols.given) == given
    assert wanted | given


@pytest.mark.parametrize("name", ["hello", "libuser.so", "librandom.so"])
def test_a_thousand_changes_of_a_linked_file_give_facts_or_damage(files: Path, tmp_path: Path, name: str) -> None:
    chance, whole = random.Random(name), (files / name).read_bytes()
    for _ in range(1000):
        data = bytearray(whole)
        for _ in range(chance.randint(1, 6)):
            size, place = chance.choice([1, 2, 4, 8]), chance.randrange(4, len(data) - 8)
            value = chance.choice([0, 1, 0x7FFFFFFF, 0xFFFFFFFF, 1 << 63, (1 << 64) - 1, chance.getrandbits(64)])
            data[place : place + size] = (value % (1 << 8 * size)).to_bytes(size, "little")
        (tmp_path / "f").write_bytes(data)
        assert isinstance(elf.read(tmp_path / "f", [texts.read]), (ElfFacts, Damaged))


def _plain(symbol: str) -> str:
    return symbol.partition("@")[0]
