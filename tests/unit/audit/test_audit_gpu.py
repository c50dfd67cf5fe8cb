"""GPU code: read from fat binaries, judged by the target's card and driver."""

from __future__ import annotations

import itertools
import struct
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.unit.audit.gpu_files import LZ4, ZSTD, Image, container, cubin, library

from sampan.audit.audit import audit
from sampan.audit.gpu import fatbin, rules
from sampan.audit.gpu.facts import GpuCode, GpuImage
from sampan.spec.artefacts import Finding
from sampan.spec.target import CpuFacts, GpuFacts, LibcFacts, OsFacts, TargetProfile

Put = Callable[[str, bytes], Path]
P4, T4 = GpuFacts("Tesla P4", "6.1", "535.161.07"), GpuFacts("Tesla T4", "7.5", "535.161.07")
SM61, SM75 = Image(61), Image(75)


def _profile(*gpus: GpuFacts) -> TargetProfile:
    libc = LibcFacts("2.17", "3.4.19", "1.3.7")
    return TargetProfile("el7", "x86_64", OsFacts("centos", "CentOS"), CpuFacts("any"), 4096, libc, gpus=gpus)


def _findings(path: Path, *gpus: GpuFacts) -> list[Finding]:
    return [finding for finding in audit([path], _profile(*gpus)).findings if finding.code != "gpu.code"]


def _codes(path: Path, *gpus: GpuFacts) -> list[tuple[str, str]]:
    return [(finding.code, finding.severity) for finding in _findings(path, *gpus)]


def _read(data: bytes) -> GpuCode:
    return fatbin.read(data, 0, len(data))


def test_a_container_is_read_with_kind_architecture_version_and_compression() -> None:
    data = container(
        Image(61), Image(75, flags=LZ4), Image(80, flags=ZSTD), Image(90, ptx=True, isa=(8, 7)), Image(5, kind=8)
    )
    (found,) = _read(data).containers
    assert found.count == 1
    assert set(found.images) == {
        GpuImage("sass", 61, toolkit=118),
        GpuImage("sass", 75, "lz4"),
        GpuImage("sass", 80, "zstd"),
        GpuImage("ptx", 90, isa="8.7"),
        GpuImage("other", 5),
    }


def test_larger_entry_headers_of_newer_cards_are_stepped_over() -> None:
    wide = Image(100, header=112, data=bytes(48) + cubin(100), padded=len(cubin(100)) + -len(cubin(100)) % 8)
    (found,) = _read(container(wide, Image(120))).containers
    assert [image.arch for image in found.images] == [100, 120]


def test_equal_containers_are_counted_not_repeated() -> None:
    data = bytes(8).join([container(SM61), container(SM75), container(SM61)])
    assert [(each.images[0].arch, each.count) for each in _read(data).containers] == [(61, 2), (75, 1)]


def test_programs_without_a_kernel_do_not_count() -> None:
    assert _read(container(Image(50, data=cubin(50, kernel=False)))).containers == ()


@pytest.mark.parametrize("name", [b".nv_fatbin", b"__nv_relfatbin"])
def test_sections_are_found_by_name(put: Put, name: bytes) -> None:
    path = put("lib.so", library(container(SM61), name=name))
    (finding,) = audit([path], _profile()).findings
    assert (finding.code, finding.severity) == ("gpu.code", "info")
    assert dict(finding.values)["sass"] == "sm_61"


def test_a_file_without_section_headers_is_searched(put: Put) -> None:
    data = bytearray(library(container(SM61)))
    struct.pack_into("<Q", data, 40, 0)
    assert [finding.code for finding in audit([put("lib.so", bytes(data))], _profile()).findings] == ["gpu.code"]


def test_the_magic_elsewhere_in_a_file_is_no_gpu_code(put: Put) -> None:
    assert audit([put("lib.so", library(container(SM61), name=b".rodata"))], _profile(P4)).findings == ()


def test_a_bare_gpu_program_is_judged_by_the_card_not_by_the_processor(put: Put) -> None:
    path = put("k.cubin", cubin(75))
    assert _codes(path, T4) == []
    assert _codes(path, P4) == [("gpu.no-kernel-image", "error")]


@pytest.mark.parametrize(
    ("images", "gpu", "expected"),
    [
        ((SM61, SM75), P4, []),
        ((Image(60),), P4, []),  # the same major version, a lower minor one
        ((Image(62),), P4, [("gpu.no-kernel-image", "error")]),
        ((Image(70),), T4, []),
        ((SM75,), P4, [("gpu.no-kernel-image", "error")]),
        ((Image(52, ptx=True, isa=(7, 8)),), P4, [("gpu.jit", "warning")]),
        ((Image(52, ptx=True, isa=(8, 7)),), P4, [("gpu.jit", "error")]),  # ISA 8.7 needs driver 570
        ((Image(75, ptx=True, isa=(7, 8)),), P4, [("gpu.no-kernel-image", "error")]),
        ((Image(61, flags=LZ4),), P4, []),
        ((Image(61, flags=ZSTD),), P4, [("gpu.image-invalid", "error")]),
        ((Image(61, flags=ZSTD),), replace(P4, driver="550.54.14"), []),
        ((Image(61, flags=ZSTD),), replace(P4, driver=None), [("gpu.image-invalid", "warning")]),
        ((Image(61, flags=ZSTD), SM75), T4, []),  # the image of the other card does not matter
        ((Image(52, ptx=True, isa=(8, 7)), SM61), P4, []),  # machine code wins over text
        ((Image(52, ptx=True),), replace(P4, driver=None), [("gpu.jit", "warning")]),
        ((Image(52, ptx=True, isa=(19, 0)),), P4, [("gpu.jit", "error")]),  # newer than any that this driver can know
        ((SM61,), replace(P4, driver="440.33.01"), [("gpu.driver-old", "error")]),
        ((Image(61, toolkit=129),), replace(P4, driver="470.82.01"), [("gpu.driver-old", "error")]),
        ((SM75,), GpuFacts("A card that nobody knows", None, "535.1"), []),
        ((SM61,), GpuFacts("Tesla P4"), []),  # the capability by the card's name
        ((SM75,), GpuFacts("NVIDIA Tesla P4"), [("gpu.no-kernel-image", "error")]),
    ],
)
def test_each_pair_of_image_and_card_has_its_verdict(
    put: Put, images: tuple[Image, ...], gpu: GpuFacts, expected: list[tuple[str, str]]
) -> None:
    assert _codes(put("lib.so", library(container(*images))), gpu) == expected


def test_a_generation_that_the_toolkit_dropped_is_said_instead_of_missing_kernels(put: Put) -> None:
    path = put("lib.so", library(container(Image(80, ptx=True, isa=(9, 0)))))
    (finding,) = _findings(path, replace(P4, driver="580.65.06"))
    assert finding.code == "gpu.arch-dropped"
    assert dict(finding.values) == {"gpu": "Tesla P4", "capability": "6.1", "cuda": "13", "least": "7.5"}


def test_only_some_containers_lacking_the_card_is_a_warning(put: Put) -> None:
    (finding,) = _findings(put("lib.so", library(container(SM61), container(SM75))), P4)
    assert (finding.code, finding.severity) == ("gpu.no-kernel-image", "warning")
    assert dict(finding.values)["missing"] == "1"
    assert dict(finding.values)["containers"] == "2"


def test_every_card_is_judged_and_equal_ones_once(put: Put) -> None:
    assert len(_findings(put("lib.so", library(container(Image(80)))), P4, T4, P4)) == 2


@pytest.mark.parametrize(
    ("needed", "driver", "codes"),
    [
        (b"libcudart.so.13", "535.161.07", ["gpu.arch-dropped", "gpu.driver-old"]),
        (b"libcudart.so.12", "535.161.07", []),
        (b"libcudart.so.11.0", "440.33.01", ["gpu.driver-old"]),
        (b"libcublasLt.so.12", "470.82.01", ["gpu.driver-old"]),
        (b"libcusparse.so.12", "470.82.01", []),  # CUDA 12's name and CUDA 13's: tells nothing
        (b"libcudart.so.99", "470.82.01", []),
        (b"libcudart.so.x", "470.82.01", []),
    ],
)
def test_libraries_tell_the_toolkit_without_any_kernel(
    put: Put, needed: bytes, driver: str, codes: list[str]
) -> None:
    path = put("lib.so", library(name=b".data", needed=[needed]))
    found = [f.code for f in _findings(path, replace(P4, driver=driver)) if f.code.startswith("gpu.")]
    assert sorted(found) == codes


@pytest.mark.parametrize(
    "data",
    [
        container(SM61, size=1 << 60),
        container(SM61, version=2),
        container(replace(SM61, header=8)),
        container(replace(SM61, header=1 << 30)),
        container(replace(SM61, padded=1 << 40)),
        container(replace(SM61, flags=LZ4, padded=0)),
        container(SM61)[:10],
    ],
)
def test_damage_is_a_warning_and_the_rest_is_still_judged(put: Put, data: bytes) -> None:
    path = put("lib.so", library(container(SM75), data))
    assert ("gpu.unreadable", "warning") in _codes(path, T4)
    assert ("gpu.no-kernel-image", "error") in _codes(path, P4)


def test_endless_containers_end(put: Put) -> None:
    started = time.monotonic()
    code = _read(container(size=0) * (1 << 18))
    assert "more than" in code.damage
    many = container(*[Image(61, data=b"")] * 50_000)
    assert _read(many * 4).damage.startswith("more than")
    assert time.monotonic() - started < 3


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 400), st.binary(max_size=12), st.integers(0, 600))
def test_damaged_containers_never_raise(at: int, patch: bytes, cut: int) -> None:
    data = container(SM61, Image(90, ptx=True), Image(75, flags=ZSTD))
    data = data[:at] + patch + data[at + len(patch) :]
    code = _read(data[: max(0, len(data) - cut)])
    assert all(each.count > 0 for each in code.containers)


def test_cards_are_known_by_their_longest_name() -> None:
    known = rules.load()
    assert rules.capability_of("Tesla P40", known) == 61
    assert rules.capability_of("NVIDIA A100-SXM4-80GB", known) == 80
    assert rules.capability_of("Tesla P100-PCIE-16GB", known) == 60
    assert rules.capability_of("NVIDIA A10", known) == 86
    assert rules.capability_of("GeForce 256", known) is None


def test_every_table_has_its_source_and_its_order() -> None:
    known = rules.load()
    assert sorted(known.toolkit) == [10, 11, 12, 13]
    versions = [tuple(map(int, isa.split("."))) for isa in known.ptx]
    assert versions == sorted(versions)
    drivers = [one.driver for one in known.ptx.values()]
    known_ones = drivers[: [*known.ptx].index("9.2")]  # later ones have their toolkit's least driver
    assert all(rules.older(a, b) for a, b in itertools.pairwise(known_ones))


def test_without_a_known_card_there_is_the_list_only(put: Put) -> None:
    assert _codes(put("lib.so", library(container(SM61)))) == []
