"""/proc/cpuinfo of real machines, as users published them."""

from __future__ import annotations

import pytest
from tests.fakes.machines import cpuinfo as recorded

from sampan.plan.variants import choose, runnable
from sampan.survey import cpuinfo


@pytest.mark.parametrize(
    ("machine", "arch", "model", "best"),
    [
        ("kunpeng-920", "aarch64", "Kunpeng-920 (TaiShan v110)", "armv8.2-dotprod-fp16"),
        ("ft-2000-4-kernel-4.4", "aarch64", "Phytium,FT-2000/4", "armv8.0"),
        ("d2000-8", "aarch64", "Phytium,D2000/8", "armv8.0"),
        ("d3000", "aarch64", "Phytium D3000 (FTC862)", "armv8.2-dotprod-fp16"),
        ("arm64-summary-kernel-3.10", "aarch64", "arm64 implementer 0x41 part 0xd07", "armv8.0"),
        ("hygon-c86-7285", "x86_64", "Hygon C86 7285 32-core Processor", "x86-64-v3"),
        ("zhaoxin-kx-u6780a", "x86_64", "ZHAOXIN KaiXian KX-U6780A@2.7GHz", "x86-64-v2"),
        ("xeon-e5-2680-v4", "x86_64", "Intel(R) Xeon(R) CPU E5-2680 v4 @ 2.40GHz", "x86-64-v3"),
    ],
)
def test_a_machine_is_named_and_gets_the_best_variant_that_it_can_run(
    machine: str, arch: str, model: str, best: str
) -> None:
    facts = cpuinfo.parse(recorded(machine), arch)
    assert facts.model == model
    assert facts.features_known
    assert choose(runnable(arch, facts.features), facts.features).name == best


def test_the_midr_fields_and_the_vendor_are_kept() -> None:
    facts = cpuinfo.parse(recorded("kunpeng-920"), "aarch64")
    assert (facts.implementer, facts.part, facts.vendor) == ("0x48", "0xd01", "HiSilicon")
    assert "lrcpc" not in facts.features
    assert cpuinfo.parse(recorded("hygon-c86-7285"), "x86_64").vendor == "HygonGenuine"


def test_kernel_4_4_on_phytium_lacks_cpuid_and_that_is_no_fault() -> None:
    facts = cpuinfo.parse(recorded("ft-2000-4-kernel-4.4"), "aarch64")
    assert facts.features == ("aes", "asimd", "crc32", "evtstrm", "fp", "pmull", "sha1", "sha2")


def test_unlike_cores_count_only_with_what_they_share() -> None:
    facts = cpuinfo.parse(recorded("e2000q-mixed"), "aarch64")
    assert "sha1" in facts.features
    assert "sha512" not in facts.features


def test_vmx_flags_are_not_taken_for_flags() -> None:
    assert "invvpid" not in cpuinfo.parse(recorded("zhaoxin-kx-u6780a"), "x86_64").features


@pytest.mark.parametrize("text", ["", "\n\n", "no colon here", recorded("xeon-e5-2680-v4")])
def test_nothing_usable_means_unknown(text: str) -> None:
    """The last one is what a program under qemu-user sees: the host's file."""
    facts = cpuinfo.parse(text, "aarch64")
    assert (facts.model, facts.features, facts.features_known) == ("unknown", (), False)


@pytest.mark.parametrize(("machine", "count"), [("kunpeng-920", 4), ("d2000-8", 8), ("hygon-c86-7285", 2)])
def test_processors_are_counted(machine: str, count: int) -> None:
    assert cpuinfo.processors(recorded(machine)) == count
    assert cpuinfo.processors("") is None
