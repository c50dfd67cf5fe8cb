"""The pinned engine: what the data file promises to the rest."""

from __future__ import annotations

import pytest

from sampan.build.pins import engine_pin
from sampan.errors import ExitCode, IncompatibleError
from sampan.plan.variants import all_variants


def test_the_source_is_pinned_by_version_and_hash() -> None:
    pin = engine_pin()
    project, _, version = pin.requirement.partition("==")
    assert pin.file_name == f"{project.replace('-', '_')}-{version}.tar.gz"
    assert len(bytes.fromhex(pin.sha256)) == 32
    assert f"LLAMA_BUILD_COMMIT={pin.commit}" in pin.definitions


def test_every_variant_has_an_architecture_to_be_built_for() -> None:
    for variant in all_variants():
        assert engine_pin().architecture(variant.arch).target == f"{variant.arch}-linux-musl"


def test_nothing_but_the_kernels_is_built_above_the_lowest_variant() -> None:
    for name, arch in engine_pin().architectures.items():
        lowest = min((item for item in all_variants() if item.arch == name), key=lambda item: item.rank)
        assert arch.floor == lowest.zig_cpu


def test_an_unknown_architecture_is_named_with_the_known_ones() -> None:
    with pytest.raises(IncompatibleError) as caught:
        engine_pin().architecture("loongarch64")
    assert caught.value.key == "build.architecture"
    assert caught.value.exit_code == ExitCode.INCOMPATIBLE
    assert "aarch64, x86_64" in caught.value.message


def test_licences_have_names_of_their_own_and_a_known_origin() -> None:
    licences = engine_pin().licences
    assert len({licence.name for licence in licences}) == len(licences)
    assert {licence.of for licence in licences} == {"source", "compiler"}
