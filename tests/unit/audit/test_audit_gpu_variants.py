"""Code for one capability only (sm_90a) or for a family (sm_100f), and PTX that is newer than what is known."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.unit.audit.gpu_files import Image, container, library

from sampan.audit.audit import audit
from sampan.audit.gpu import fatbin, rules
from sampan.spec.artefacts import Finding
from sampan.spec.target import CpuFacts, GpuFacts, LibcFacts, OsFacts, TargetProfile

Put = Callable[[str, bytes], Path]
ONLY, FAMILY = 1 << 20 | 0x11, 1 << 21 | 0x11
DATA = Path(__file__).parents[2] / "data" / "audit" / "gpu"
NO_IMAGE, JIT = ("gpu.no-kernel-image", "error"), ("gpu.jit", "warning")


def _findings(path: Path, capability: str, driver: str | None = "620.1") -> list[Finding]:
    libc = LibcFacts("2.17", "3.4.19", "1.3.7")
    card = GpuFacts("a card", capability, driver)
    profile = TargetProfile("el7", "x86_64", OsFacts("centos", "CentOS"), CpuFacts("any"), 4096, libc, gpus=(card,))
    return [finding for finding in audit([path], profile).findings if finding.code != "gpu.code"]


def _codes(path: Path, capability: str, driver: str | None = "620.1") -> list[tuple[str, str]]:
    return [(finding.code, finding.severity) for finding in _findings(path, capability, driver)]


@pytest.mark.parametrize(
    ("file", "images"),
    [
        ("cuda-13.5-sm_90a", ["compute_90a", "sm_90a"]),
        ("cuda-13.5-sm_100f", ["compute_100f", "sm_100f"]),
        ("cuda-13.5-sm_120", ["compute_120", "sm_120"]),
        ("cuda-12.4-sm_90a", ["sm_90a"]),
    ],
)
def test_what_nvidias_own_tools_packed_is_read(file: str, images: list[str]) -> None:
    data = (DATA / f"{file}.fatbin").read_bytes()
    code = fatbin.read(data, 0, len(data))
    assert code.damage == ""
    assert [image.name for image in code.images] == images


@pytest.mark.parametrize("name", ["cuda-13.5-sm_90", "cuda-13.5-sm_90a", "cuda-13.5-sm_100f", "cuda-12.4-sm_90a"])
def test_a_bare_gpu_program_tells_its_variant_too(name: str) -> None:
    assert fatbin.cubin((DATA / f"{name}.cubin").read_bytes()).name == name.rpartition("-")[2]


def test_old_flags_tell_where_the_packer_said_nothing() -> None:
    program = (DATA / "cuda-12.4-sm_90a.cubin").read_bytes()
    data = container(Image(90, data=program))
    assert [image.name for image in fatbin.read(data, 0, len(data)).images] == ["sm_90a"]


@pytest.mark.parametrize(
    ("file", "capability", "expected"),
    [
        ("cuda-13.5-sm_90a", "9.0", []),
        ("cuda-13.5-sm_90a", "10.0", [NO_IMAGE]),  # neither the code nor its PTX goes further
        ("cuda-13.5-sm_90a", "8.9", [NO_IMAGE]),
        ("cuda-13.5-sm_100f", "10.0", []),
        ("cuda-13.5-sm_100f", "10.3", []),
        ("cuda-13.5-sm_100f", "12.0", [NO_IMAGE]),
        ("cuda-13.5-sm_120", "12.1", []),
        ("cuda-13.5-sm_120", "10.3", [NO_IMAGE]),
        ("cuda-12.4-sm_90a", "9.0", []),
        ("cuda-12.4-sm_90a", "10.0", [NO_IMAGE]),
    ],
)
def test_special_code_runs_where_it_was_made_for(
    put: Put, file: str, capability: str, expected: list[tuple[str, str]]
) -> None:
    path = put("lib.so", library((DATA / f"{file}.fatbin").read_bytes()))
    assert _codes(path, capability) == expected


@pytest.mark.parametrize(
    ("images", "capability", "expected"),
    [
        ((Image(100, flags=ONLY),), "10.3", [NO_IMAGE]),
        ((Image(100, flags=FAMILY),), "10.3", []),
        ((Image(103, flags=FAMILY),), "10.0", [NO_IMAGE]),
        ((Image(90, flags=ONLY), Image(90, ptx=True)), "12.0", [JIT]),  # the common PTX still goes on
        ((Image(90, flags=ONLY), Image(80)), "9.0", []),
        ((Image(90, flags=ONLY | 0x8000), Image(90)), "9.0", []),
        ((Image(100, ptx=True, flags=ONLY),), "10.3", [NO_IMAGE]),
        ((Image(100, ptx=True, flags=FAMILY),), "10.3", [JIT]),
        ((Image(100, ptx=True, flags=FAMILY),), "12.0", [NO_IMAGE]),
        ((Image(100, ptx=True),), "12.0", [JIT]),
    ],
)
def test_variants_against_cards(
    put: Put, images: tuple[Image, ...], capability: str, expected: list[tuple[str, str]]
) -> None:
    assert _codes(put("lib.so", library(container(*images))), capability) == expected


@pytest.mark.parametrize(
    ("isa", "driver", "severity", "wanted"),
    [
        ((9, 4), "615.10", "warning", "615"),
        ((9, 4), "610.43.02", "error", "615"),
        ((9, 3), "610.43.02", "warning", "610"),
        ((9, 5), "615.10", "warning", ">=615 (?)"),  # CUDA 13.5: no source names its driver
        ((9, 5), "610.43.02", "error", ">=615 (?)"),
        ((19, 0), "615.10", "warning", ">=615 (?)"),
        ((19, 0), "580.65.06", "error", ">=615 (?)"),
        ((19, 0), None, "warning", ">=615 (?)"),
    ],
)
def test_ptx_that_is_newer_than_the_table_is_not_guessed_at(
    put: Put, isa: tuple[int, int], driver: str | None, severity: str, wanted: str
) -> None:
    path = put("lib.so", library(container(Image(75, ptx=True, isa=isa))))
    (finding,) = _findings(path, "8.0", driver)
    assert (finding.code, finding.severity, dict(finding.values)["wanted"]) == ("gpu.jit", severity, wanted)


def test_the_drivers_of_ptx_versions_only_rise() -> None:
    drivers = [int(one.driver) for one in rules.load().ptx.values() if one.driver]
    assert drivers == sorted(drivers)


@pytest.mark.parametrize(
    ("name", "capability"),
    [
        ("Quadro P2000", 61),
        ("NVIDIA GeForce GTX 1060 6GB", 61),
        ("NVIDIA GeForce RTX 2080 Ti", 75),
        ("NVIDIA RTX A6000", 86),
        ("NVIDIA RTX 6000 Ada Generation", 89),
        ("Quadro RTX 6000", None),  # 7.5: the name alone is not enough for it
        ("NVIDIA B300 SXM6 AC", 103),
    ],
)
def test_cards_are_known_by_their_names(name: str, capability: int | None) -> None:
    assert rules.capability_of(name, rules.load()) == capability
