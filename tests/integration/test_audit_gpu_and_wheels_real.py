"""Public wheels: their tags against their contents, and NVIDIA's own libraries against cards and drivers."""

from __future__ import annotations

import platform
import re
import struct
import subprocess
import zipfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import zstandard

from sampan.audit import elf
from sampan.audit.audit import audit
from sampan.audit.facts import ElfFacts
from sampan.audit.gpu import read as gpu
from sampan.audit.gpu.facts import GpuCode
from sampan.edge.net import NetFetcher
from sampan.edge.progress import SilentProgress
from sampan.edge.store import DiskStore
from sampan.errors import NetworkError
from sampan.spec.artefacts import Finding
from sampan.spec.target import GpuFacts
from sampan.survey import known

pytestmark = pytest.mark.integration

# requirement, file name, SHA-256
NVJPEG = {
    "cuda 11.8": (
        "nvidia-nvjpeg-cu11==11.9.0.86",
        "nvidia_nvjpeg_cu11-11.9.0.86-py3-none-manylinux2014_x86_64.whl",
        "124e204cb7520b9ec7456d879ef96f80a7821c3c64b0e6c89d70d84825036b3c",
    ),
    "cuda 12.0": (
        "nvidia-nvjpeg-cu12==12.0.0.28",
        "nvidia_nvjpeg_cu12-12.0.0.28-py3-none-manylinux1_x86_64.whl",
        "1b750fc5b1e28811d6433dfcaf4138a34ed937c72646373991d091372bd15dcd",
    ),
    "cuda 12.9 arm": (
        "nvidia-nvjpeg-cu12==12.4.0.76",
        "nvidia_nvjpeg_cu12-12.4.0.76-py3-none-manylinux2014_aarch64.manylinux_2_17_aarch64.whl",
        "f52c5ef7cf56e8bffac8903a59f14494017a52e4fe89d5a1d16c1e88d7bbf194",
    ),
    "cuda 13.5": (
        "nvidia-nvjpeg==13.3.2.43",
        "nvidia_nvjpeg-13.3.2.43-py3-none-manylinux2014_x86_64.manylinux_2_17_x86_64.whl",
        "27f9c4a25a73f1d1ad35c342c8d657c8ff43e23877f338ef15fb2602ac2e5aa8",
    ),
}
CUOBJDUMP = (
    "nvidia-cuda-cuobjdump==13.5.37",
    "nvidia_cuda_cuobjdump-13.5.37-py3-none-manylinux2014_x86_64.manylinux_2_17_x86_64.whl",
    "38780fee50863252a0b8926357faa91615ca1c8346490563f33a06100cd73f58",
)
TAGS = {
    "libclang, the file that pip takes": (
        "libclang==16.0.6",
        "libclang-16.0.6-1-py2.py3-none-manylinux2014_aarch64.whl",
        "88bc7e7b393c32e41e03ba77ef02fdd647da1f764c2cd028e69e0837080b79f6",
        None,
    ),
    "libclang, the other file of that version": (
        "libclang==16.0.6",
        "libclang-16.0.6-py2.py3-none-manylinux2014_aarch64.whl",
        "8130482120500476a027171f8f3c8dfc2536b591716eea71fc5da22cae13131b",
        "manylinux_2_29_aarch64",
    ),
    "tflite-runtime": (
        "tflite-runtime==2.12.0",
        "tflite_runtime-2.12.0-cp38-cp38-manylinux2014_aarch64.whl",
        "098c7d62f07ea34dcdde0aaa081b1278f02b292d8dac8a91b25bc70c0ef9e95a",
        "manylinux_2_34_aarch64",
    ),
    "deltalake": (
        "deltalake==1.5.0",
        "deltalake-1.5.0-cp310-abi3-manylinux_2_28_aarch64.whl",
        "7baa94c7f8234c0840627e8f2f5e3f88a02ff011a2991b8e034c187ffafcb3a0",
        None,
    ),
}


def _fetched(requirement: str, name: str, sha256: str) -> Path:
    try:
        return NetFetcher(DiskStore(), SilentProgress()).pypi(requirement, file_name=name, sha256=sha256)
    except NetworkError as error:
        pytest.skip(f"needs the package index: {error.message}")


def _library(which: str, folder: Path) -> Path:
    with zipfile.ZipFile(_fetched(*NVJPEG[which])) as archive:
        member = next(name for name in archive.namelist() if "/libnvjpeg.so." in name)
        return Path(archive.extract(member, folder))


def _code(path: Path) -> GpuCode:
    facts = elf.read(path, (gpu.read,))
    assert isinstance(facts, ElfFacts)
    assert facts.gpu is not None
    assert facts.gpu.damage == ""
    return facts.gpu


def _findings(which: str, card: str, capability: str, driver: str) -> list[tuple[str, str]]:
    base = known.load("generic-aarch64" if "arm" in which else "centos-7-x86-64")
    profile = replace(base, gpus=(GpuFacts(card, capability, driver),))
    found: tuple[Finding, ...] = audit([_fetched(*NVJPEG[which])], profile).findings
    return [(each.code, each.severity) for each in found if each.code.startswith("gpu.") and each.code != "gpu.code"]


P4, T4, B300 = ("Tesla P4", "6.1"), ("Tesla T4", "7.5"), ("NVIDIA B300", "10.3")


@pytest.mark.parametrize(
    ("which", "card", "driver", "expected"),
    [
        ("cuda 11.8", P4, "470.82.01", []),
        ("cuda 11.8", T4, "535.161.07", []),
        ("cuda 11.8", P4, "440.33.01", [("gpu.driver-old", "error")]),
        ("cuda 11.8", B300, "580.65.06", [("gpu.jit", "warning")]),
        ("cuda 11.8", B300, "515.65.01", [("gpu.jit", "error")]),
        ("cuda 12.0", P4, "470.82.01", [("gpu.driver-old", "error")]),
        ("cuda 12.0", P4, "525.60.13", []),
        ("cuda 12.9 arm", P4, "535.161.07", []),  # LZ4: drivers below 550 read it though CUDA 12.9 wrote it
        ("cuda 12.9 arm", B300, "575.51.03", []),
        ("cuda 13.5", P4, "580.65.06", [("gpu.arch-dropped", "error")]),
        ("cuda 13.5", T4, "580.65.06", []),
        ("cuda 13.5", T4, "535.161.07", [("gpu.driver-old", "error"), ("gpu.image-invalid", "error")]),
    ],
)
def test_nvidias_own_library_against_card_and_driver(
    which: str, card: tuple[str, str], driver: str, expected: list[tuple[str, str]]
) -> None:
    assert _findings(which, *card, driver) == expected


def test_architectures_compressions_and_toolkits_are_read(tmp_path: Path) -> None:
    code = _code(_library("cuda 11.8", tmp_path))
    assert {image.arch for image in code.images if image.kind == "sass"} == {
        35, 37, 50, 52, 60, 61, 70, 75, 80, 86, 89, 90,
    }  # fmt: skip
    assert {(image.arch, image.isa) for image in code.images if image.kind == "ptx"} == {(90, "7.8")}
    assert {image.compression for image in code.images} == {"lz4"}
    new = _code(_library("cuda 13.5", tmp_path))
    assert {image.compression for image in new.images} == {"zstd"}
    assert {(image.arch, image.isa) for image in new.images if image.kind == "ptx"} == {(121, "9.4")}


def test_the_header_says_the_isa_version_that_the_text_says(tmp_path: Path) -> None:
    """PTX that is compressed with zstd, unpacked here and nowhere else."""
    data = _library("cuda 13.5", tmp_path).read_bytes()
    texts = []
    for found in re.finditer(rb"\x28\xb5\x2f\xfd", data):
        start = found.start() - 80
        kind, minor, major = struct.unpack_from("<H22xHH", data, start)
        if kind == 1 and struct.unpack_from("<I", data, start + 4)[0] == 80:
            text = (
                zstandard.ZstdDecompressor().decompressobj().decompress(data[found.start() : found.start() + 200_000])
            )
            texts.append((re.search(rb"\.version (\d+)\.(\d+)", text), (major, minor)))
    assert len(texts) == 10
    for version, header in texts:
        assert version is not None
        assert (int(version[1]), int(version[2])) == header


def _entries(data: bytes) -> Iterator[tuple[int, int]]:
    """Where each container begins, and where each of its entries does."""
    for found in re.finditer(re.escape(struct.pack("<IHH", 0xBA55ED50, 1, 16)), data):
        entry, end = found.start() + 16, found.start() + 16 + struct.unpack_from("<Q", data, found.start() + 8)[0]
        while entry < end:
            yield found.start(), entry
            entry += sum(struct.unpack_from("<IQ", data, entry + 4))


def _judged(path: Path, card: tuple[str, str]) -> list[tuple[str, str]]:
    profile = replace(known.load("centos-7-x86-64"), gpus=(GpuFacts(*card, "580.65.06"),))
    found = audit([path], profile).findings
    return [(each.code, each.severity) for each in found if each.code.startswith("gpu.") and each.code != "gpu.code"]


def test_text_that_is_for_later_cards_is_no_code_for_this_one(tmp_path: Path) -> None:
    library = _library("cuda 11.8", tmp_path)
    assert _judged(library, B300) == [("gpu.jit", "warning")]
    data = bytearray(library.read_bytes())
    for _, entry in _entries(bytes(data)):
        if struct.unpack_from("<H", data, entry)[0] == 1:
            struct.pack_into("<I", data, entry + 28, 121)
    library.write_bytes(data)
    assert _judged(library, B300) == [("gpu.no-kernel-image", "error")]
    assert _judged(library, T4) == []


def test_a_container_that_contradicts_itself(tmp_path: Path) -> None:
    library = _library("cuda 11.8", tmp_path)
    data = bytearray(library.read_bytes())
    struct.pack_into("<Q", data, next(_entries(bytes(data)))[0] + 8, 1 << 40)
    library.write_bytes(data)
    assert ("gpu.unreadable", "warning") in _judged(library, T4)


def test_a_wheel_for_another_python() -> None:
    python = {case: _codes_of_wheel(case) & {"wheel.python"} for case in ("tflite-runtime", "deltalake")}
    assert python == {"tflite-runtime": {"wheel.python"}, "deltalake": set()}


def _codes_of_wheel(case: str) -> set[str]:
    found = audit([_fetched(*TAGS[case][:3])], known.load("kylin-v10-phytium-d2000")).findings
    return {each.code for each in found}


@pytest.mark.skipif(platform.machine() != "x86_64", reason="NVIDIA's cuobjdump of this pin is for x86-64")
def test_cuobjdump_lists_the_same(tmp_path: Path) -> None:
    library = _library("cuda 13.5", tmp_path)
    with zipfile.ZipFile(_fetched(*CUOBJDUMP)) as archive:
        member = next(name for name in archive.namelist() if name.endswith("/bin/cuobjdump"))
        program = Path(archive.extract(member, tmp_path))
    program.chmod(0o755)
    done = subprocess.run([program, "-lelf", "-lptx", library], capture_output=True, text=True, check=True)
    theirs = Counter(re.findall(r"\.sm_(\d+)\.(cubin|ptx)\s*$", done.stdout, re.MULTILINE))
    own: Counter[tuple[str, str]] = Counter()
    for each in _code(library).containers:
        for image in each.images:
            own[str(image.arch), "ptx" if image.kind == "ptx" else "cubin"] += each.count
    assert own == theirs
    assert sum(own.values()) == 110


@pytest.mark.parametrize("case", TAGS)
def test_the_tags_of_public_wheels(case: str) -> None:
    requirement, name, sha256, real = TAGS[case]
    found = audit([_fetched(requirement, name, sha256)], known.load("kylin-v10-phytium-d2000")).findings
    tags = [dict(each.values)["real"] for each in found if each.code == "wheel.tag"]
    assert tags == ([real] if real else [])
    assert [each for each in found if each.code.startswith(("archive.", "wheel.record"))] == []
