"""Real libraries: what they do on ARMv8.0 is known, and every feature is counted by LLVM's decoder too."""

from __future__ import annotations

import mmap
import zipfile
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from capstone import CS_ARCH_AARCH64, CS_MODE_ARM, Cs
from tests.integration.runtime_parts import Parts, or_skip
from tests.unit.audit.test_audit_isa_table import agreed, looked_up, needs, ours

from sampan.audit.audit import audit
from sampan.audit.instructions.binary import Binary
from sampan.audit.instructions.functions import Functions
from sampan.audit.instructions.tables import word_table
from sampan.audit.instructions.words import Scanner
from sampan.spec.artefacts import Finding
from sampan.spec.target import CpuFacts, OsFacts, TargetProfile
from sampan.survey import known

pytestmark = pytest.mark.integration

# File and hash, as the index names them.
WHEELS = {
    "onnxruntime-1.21.0": (
        "onnxruntime-1.21.0-cp311-cp311-manylinux_2_27_aarch64.manylinux_2_28_aarch64.whl",
        "7f9156cf6f8ee133d07a751e6518cf6f84ed37fbf8243156bd4a2c4ee6e073c8",
    ),
    "onnxruntime-1.20.0": (
        "onnxruntime-1.20.0-cp311-cp311-manylinux_2_27_aarch64.manylinux_2_28_aarch64.whl",
        "8a831b720d0a7be8241a230cb06f592e8bb66652d7cea54ce02d83769651fdee",
    ),
    "tokenizers-0.23.3": (
        "tokenizers-0.23.3-cp310-abi3-manylinux_2_17_aarch64.manylinux2014_aarch64.whl",
        "ec82e80e65a862275b97c3d90b7a523df8d9519ee48aeb4e9625b2cc909274e0",
    ),
    "numpy-2.4.6": (
        "numpy-2.4.6-cp311-cp311-manylinux_2_27_aarch64.manylinux_2_28_aarch64.whl",
        "0ab0a9c4ffb1a6d95ef519fe4247dba8eb6b18ad93999f76b7f657039acabd47",
    ),
    "scikit_learn-1.9.1": (
        "scikit_learn-1.9.1-cp311-cp311-manylinux_2_27_aarch64.manylinux_2_28_aarch64.whl",
        "4298fcc01b3d8fa9768d36894e99cce0747b3b2dd73bfd80779e393769d0afab",
    ),
}
X86_WHEELS = {
    "numpy-2.4.0": (
        "numpy-2.4.0-cp311-cp311-manylinux_2_27_x86_64.manylinux_2_28_x86_64.whl",
        "a8fdfed3deaf1928fb7667d96e0567cdf58c2b370ea2ee7e586aa383ec2cb346",
    ),
    "numpy-1.26.4": (
        "numpy-1.26.4-cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64.whl",
        "666dbfb6ec68962c033a450943ded891bed2d54e6755e35e5835d63f4f6931d5",
    ),
}
Unpack = Callable[[str], Path]
D2000 = "kylin-v10-phytium-d2000"


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Parts:
    return Parts(tmp_path_factory.mktemp("real") / "store")


@pytest.fixture(scope="module")
def wheel(parts: Parts, tmp_path_factory: pytest.TempPathFactory) -> Unpack:
    """Unpack one of WHEELS; the same folder the next time."""
    root = tmp_path_factory.mktemp("wheels")

    @cache
    def unpack(name: str) -> Path:
        file_name, sha256 = {**WHEELS, **X86_WHEELS}[name]
        requirement = name.replace("-", "==")
        file = or_skip(lambda: parts.fetcher.pypi(requirement, file_name=file_name, sha256=sha256))
        with zipfile.ZipFile(file) as archive:
            archive.extractall(root / name)
        return root / name

    return unpack


def instructions(*paths: Path, target: str = D2000) -> list[Finding]:
    """The findings on instructions."""
    return [one for one in audit(paths, known.load(target)).findings if one.code.startswith("isa.")]


def test_onnxruntime_1_21_0_dies_at_import(wheel: Unpack) -> None:
    """Six FMOV of half-precision constants in a static constructor: SIGILL on every ARMv8.0 CPU."""
    found = [one for one in instructions(wheel("onnxruntime-1.21.0")) if one.code == "isa.start"]
    places = {Path(one.path).name.split(".")[0]: dict(one.values) for one in found}
    assert {one.severity for one in found} == {"error"}
    assert {name: values["offset"] for name, values in places.items()} == {
        "libonnxruntime": "0xb0a34",
        "onnxruntime_pybind11_state": "0xb28f4",
    }
    assert all(values["features"] == "asimdhp ×6" for values in places.values())
    assert all(values["root"] == ".init_array" for values in places.values())


def test_onnxruntime_1_21_0_is_fine_on_kunpeng(wheel: Unpack) -> None:
    folder = wheel("onnxruntime-1.21.0")
    assert "isa.start" not in {one.code for one in instructions(folder, target="kylin-v10-sp3-kunpeng920")}


@pytest.mark.parametrize("name", [name for name in WHEELS if name != "onnxruntime-1.21.0"])
def test_wheels_that_run_on_armv8_0_give_no_error(wheel: Unpack, name: str) -> None:
    assert [one for one in instructions(wheel(name)) if one.severity == "error"] == []


def test_the_runtime_gives_no_error_and_no_warning(parts: Parts) -> None:
    """glibc, OpenSSL and libstdc++ have code for newer CPUs, and all of it is guarded."""
    found = instructions(Path(parts.runtime("aarch64").path))
    assert {one.severity for one in found} == {"info"}
    assert {"libc.so.6", "libcrypto.so.3"} <= {Path(one.path).name for one in found}


@pytest.mark.parametrize(
    ("name", "features", "errors"),
    [
        ("numpy-2.4.0", ("pni", "ssse3"), ["sse4_1 ×1"]),
        ("numpy-2.4.0", ("pni", "ssse3", "sse4_1"), []),
        ("numpy-1.26.4", ("pni", "ssse3"), []),
    ],
)
def test_numpy_2_4_needs_x86_64_v2_at_import(
    wheel: Unpack, name: str, features: tuple[str, ...], errors: list[str]
) -> None:
    """SIGILL on Conroe, a clean refusal on Penryn (which has SSE4.1); 1.26 runs on both."""
    cpu = CpuFacts("Core 2", features)
    target = TargetProfile("core-2", "x86_64", OsFacts("linux", "Linux"), cpu, 4096)
    found = [one for one in audit([wheel(name)], target).findings if one.code == "isa.start"]
    assert [dict(one.values)["features"] for one in found if one.severity == "error"] == errors


@pytest.mark.parametrize("name", ["runtime", "openblas"])
def test_x86_64_libraries_run_on_the_first_x86_64_cpus(parts: Parts, wheel: Unpack, name: str) -> None:
    """glibc with its libm and hwcaps, OpenSSL, OpenBLAS: whatever they have beyond SSE2 is guarded."""
    folder = Path(parts.runtime("x86_64").path) if name == "runtime" else wheel("numpy-2.4.0") / "numpy.libs"
    target = TargetProfile("v1", "x86_64", OsFacts("linux", "Linux"), CpuFacts("Opteron", ("sse", "sse2")), 4096)
    found = [one for one in audit([folder], target).findings if one.code.startswith("isa.")]
    assert {one.severity for one in found} == {"info"}
    assert any("avx2" in dict(one.values).get("features", "") for one in found)


def swept(binary: Binary) -> dict[int, str]:
    """Features by address, of every word of all code: as LLVM decodes it, data or not."""
    decoder = Cs(CS_ARCH_AARCH64, CS_MODE_ARM)
    decoder.detail = True
    found = {}
    for span in binary.code:
        words = memoryview(binary.data)[span.offset : span.offset + (span.end - span.start) // 4 * 4].cast("I")
        for at, word in enumerate(words):
            feature = _feature(decoder, word)
            if feature:
                found[span.start + at * 4] = feature
        words.release()
    return found


@cache
def _feature(decoder: Cs, word: int) -> str | None:
    named = needs(decoder, word)
    return ours(word) if named else None


LIBRARIES = ("libcrypto.so.3", "libc.so.6", "libstdc++.so.6", "tokenizers", "_multiarray_umath")


@pytest.mark.parametrize("name", LIBRARIES)
def test_the_census_counts_what_a_full_sweep_counts(parts: Parts, wheel: Unpack, name: str) -> None:
    """The sweep finds all that the census does; what it finds beyond stands among words that are no instructions."""
    path = _library(parts, wheel, name)
    with path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
        binary = Binary(data)
        scanner = Scanner(binary, Functions(binary), "aarch64")
        groups = word_table("aarch64").groups
        census = {
            address: groups[number - 1].feature
            for span in binary.code
            for address, number in scanner.within(span.start, span.end)
        }
        assert Counter(census.values()) == _totals(scanner)
        full = swept(binary)
        assert {address: feature for address, feature in census.items() if full.get(address) != feature} == {}
        beyond = {address for address in full if address not in census}
        assert all(_among_data(binary, address) for address in beyond), sorted(map(hex, beyond))[:10]
        del scanner
        binary.close()


def _totals(scanner: Scanner) -> Counter[str]:
    totals: Counter[str] = Counter()
    for (_, number), one in scanner.scan().found.items():
        totals[word_table("aarch64").groups[number - 1].feature] += one.count
    return totals


def _among_data(binary: Binary, address: int) -> bool:
    """Whether one of the sixteen words around is no instruction to LLVM either."""
    decoder = Cs(CS_ARCH_AARCH64, CS_MODE_ARM)
    around = [binary.word(address + 4 * step, 4) for step in range(-8, 9)]
    known = (list(decoder.disasm_lite(word.to_bytes(4, "little"), 0)) for word in around if word is not None)
    return not all(known)


def _library(parts: Parts, wheel: Unpack, name: str) -> Path:
    if name == "tokenizers":
        return next(wheel("tokenizers-0.23.3").rglob("*.abi3.so"))
    if name == "_multiarray_umath":
        return next(wheel("numpy-2.4.6").rglob("_multiarray_umath*.so"))
    return Path(parts.runtime("aarch64").path) / "lib/sys" / name


def test_random_words_are_of_the_feature_that_llvm_names() -> None:
    decoder = Cs(CS_ARCH_AARCH64, CS_MODE_ARM)
    decoder.detail = True
    assert agreed(decoder, words=100_000, seed=8) > 2500
    looked_up(words=50_000, seed=12)


def test_what_was_not_followed_to_its_end_is_said(wheel: Unpack) -> None:
    """OpenBLAS has more functions with vectors than callers are searched for; a module without any is none the less
    read to its end."""
    folder = wheel("numpy-2.4.0")
    cpu = CpuFacts("x86-64-v2", ("cx16", "lahf_lm", "pni", "popcnt", "sse4_1", "sse4_2", "ssse3"))
    target = TargetProfile("x", "x86_64", OsFacts("linux", "Linux"), cpu, 4096)
    said = {
        Path(one.path).name.partition("-")[0].partition(".")[0]: dict(one.values)["limits"]
        for one in audit([folder / "numpy.libs", folder / "numpy/random"], target).findings
        if one.code == "isa.limits"
    }
    assert said == {"libscipy_openblas64_": "callers 600"}
