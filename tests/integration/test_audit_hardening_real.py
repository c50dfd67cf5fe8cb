"""Set-id bits, the ABI note's kernel, RECORD, foreign shebangs, libraries of one name: real files and clean twins."""

from __future__ import annotations

import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
from tests.integration.runtime_parts import Parts, or_skip

from sampan.audit import elf, rules
from sampan.audit.audit import audit
from sampan.audit.facts import ElfFacts
from sampan.audit.numbers import split_version
from sampan.edge.apt_settings import debian_sources
from sampan.runtime.debian import fetch_package
from sampan.spec.artefacts import AuditReport
from sampan.survey import known

pytestmark = pytest.mark.integration
D2000 = known.load("kylin-v10-phytium-d2000")
MARKUPSAFE = (
    "markupsafe==3.0.4",
    "markupsafe-3.0.4-cp311-cp311-manylinux2014_aarch64.manylinux_2_17_aarch64.manylinux_2_28_aarch64.whl",
    "849dd2bb0e5e4ab2b71c7191726a4a8d5aa8a610daa584728cbee0b710ddc4ef",
)
SENTENCEPIECE = (
    "sentencepiece==0.2.3",
    "sentencepiece-0.2.3-cp311-cp311-manylinux_2_27_aarch64.manylinux_2_28_aarch64.whl",
    "855b047e02fb9c7aae2f673f5c1adbd42a4a0e8ce77e5090d14ff26f9282749d",
)
LIEF = {
    "foreign": (
        "lief==0.12.3",
        "lief-0.12.3-cp39-cp39-manylinux2014_aarch64.whl",
        "4a47f410032c63ac3be051d963d0337d6b47f0e94bfe8e946ab4b6c428f4d0f8",
    ),
    "clean": (
        "lief==0.13.1",
        "lief-0.13.1-cp311-cp311-manylinux2014_aarch64.whl",
        "23617d96d162081f8bf315d9b0494845891f8d0f04ad60991b83367ee9e261aa",
    ),
}


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Parts:
    return Parts(tmp_path_factory.mktemp("parts") / "store")


def _wheel(parts: Parts, pin: tuple[str, str, str]) -> Path:
    return or_skip(lambda: parts.fetcher.pypi(pin[0], file_name=pin[1], sha256=pin[2]))


def _deb(parts: Parts, name: str) -> Path:
    return or_skip(
        lambda: fetch_package(
            name,
            "aarch64",
            sources=debian_sources,
            fetcher=parts.fetcher,
            runner=parts.runner,
            store=parts.store,
            progress=parts.progress,
        )
    )


def _named(report: AuditReport, code: str) -> list[str]:
    return [finding.path.rpartition("/")[2] for finding in report.findings if finding.code == code]


def test_programs_of_a_package_that_run_as_root(parts: Parts) -> None:
    """Debian's mount(8) is set-user-ID; gzip is not."""
    assert _named(audit([_deb(parts, "mount")], D2000), "mode.set-id") == ["mount", "umount"]
    assert _named(audit([_deb(parts, "gzip")], D2000), "mode.set-id") == []


def test_the_kernel_that_a_real_libc_accepts(parts: Parts) -> None:
    libc = Path(parts.runtime("aarch64").path) / "lib" / "sys" / "libc.so.6"
    old, new = (replace(D2000, os=replace(D2000.os, kernel=text)) for text in ("3.2.0-4", "4.19.90-23.55.v2101.ky10"))
    (finding,) = [each for each in audit([libc], old).findings if each.code == "kernel.minimum"]
    assert dict(finding.values)["needs"] == "3.7.0"
    assert _named(audit([libc], new), "kernel.minimum") == []


def test_scripts_that_name_the_machine_that_built_them(parts: Parts) -> None:
    assert len(_named(audit([_wheel(parts, LIEF["foreign"])], D2000), "wheel.shebang")) == 3
    assert _named(audit([_wheel(parts, LIEF["clean"])], D2000), "wheel.shebang") == []


def test_a_real_wheel_of_which_one_byte_was_changed(parts: Parts, tmp_path: Path) -> None:
    sound = _wheel(parts, MARKUPSAFE)
    assert _named(audit([sound], D2000), "wheel.record") == []
    changed = tmp_path / sound.name
    with zipfile.ZipFile(sound) as source, zipfile.ZipFile(changed, "w") as sink:
        for info in source.infolist():
            data = source.read(info)
            sink.writestr(info, data[:-1] + b"#" if info.filename == "markupsafe/_native.py" else data)
    (finding,) = [each for each in audit([changed], D2000).findings if each.code == "wheel.record"]
    assert (finding.severity, dict(finding.values)["names"]) == ("error", "markupsafe/_native.py")


def test_two_builds_of_one_library_in_one_process(parts: Parts, tmp_path: Path) -> None:
    """sentencepiece twice: as it is, its libgomp is the same file; with one byte more, one is another."""
    for name in ("a", "b"):
        with zipfile.ZipFile(_wheel(parts, SENTENCEPIECE)) as archive:
            archive.extractall(tmp_path / name)
    assert _named(audit([tmp_path], D2000), "closure.duplicate") == []
    (libgomp,) = (tmp_path / "b" / "sentencepiece.libs").glob("libgomp*")
    libgomp.write_bytes(libgomp.read_bytes() + b"#")
    found = [each for each in audit([tmp_path], D2000).findings if each.code == "closure.duplicate"]
    assert [(each.severity, dict(each.values)["library"]) for each in found] == [("warning", libgomp.name)] * 2


def test_the_row_of_gcc_12_is_what_gcc_12s_libraries_define(parts: Parts) -> None:
    (row,) = [one for one in rules.load().gcc if one.release == "12"]
    folder = Path(parts.runtime("x86_64").path) / "lib" / "sys"
    families = {"libstdc++.so.6": ("GLIBCXX", "CXXABI"), "libgcc_s.so.1": ("GCC",), "libgomp.so.1": ("GOMP", "OMP")}
    for library, names in families.items():
        facts = elf.read(folder / library, ())
        assert isinstance(facts, ElfFacts)
        versions = [split_version(version) for version in facts.provides]
        for name in names:
            highest = max(number for family, number in versions if family == name)
            assert ".".join(map(str, highest)) == row.ceilings[name.lower()]
