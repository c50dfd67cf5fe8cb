"""The bill of materials: valid, complete, the same bytes for the same parts."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from tests.fakes.bundle_parts import make_parts

from sampan.bundle.parts import BundleParts
from sampan.papers import licences, sbom

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


@pytest.fixture
def parts(tmp_path: Path) -> BundleParts:
    return make_parts(tmp_path)


def _made(parts: BundleParts) -> bytes:
    return sbom.make(parts.plan, parts.engine, parts.runtime, parts.wheelhouse, parts.weights)


def _components(parts: BundleParts) -> dict[str, Any]:
    return {one["bom-ref"]: one for one in json.loads(_made(parts))["components"]}


def test_it_is_valid_by_the_published_schema(parts: BundleParts) -> None:
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(_made(parts).decode()) is None


def test_the_schema_would_refuse_a_wrong_document(parts: BundleParts) -> None:
    wrong = _made(parts).replace(b'"SHA-256"', b'"SHA-257"')
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(wrong.decode()) is not None


def test_engine_packages_wheels_and_weights_are_there_with_hashes_and_licences(parts: BundleParts) -> None:
    found = _components(parts)
    assert set(found) == {"engine/llama.cpp", "runtime/libc6", "app/orjson", "weights/mini.gguf"}
    assert found["runtime/libc6"]["purl"] == "pkg:deb/debian/libc6@2.36-9?arch=arm64&distro=bookworm"
    assert found["runtime/libc6"]["licenses"] == [{"license": {"id": "LGPL-2.1-or-later"}}]
    assert found["app/orjson"]["hashes"] == [{"alg": "SHA-256", "content": "3" * 64}]
    assert found["weights/mini.gguf"]["hashes"][0]["content"] == parts.weights.sha256
    inner = [one["name"] for one in found["engine/llama.cpp"]["components"]]
    assert inner == ["engine/llama.cpp/armv8.0/llama-server"]  # the variant that was not planned does not travel


def test_equal_parts_give_equal_bytes_and_other_parts_another_serial_number(parts: BundleParts) -> None:
    other = replace(parts, weights=replace(parts.weights, sha256="0" * 64))
    assert _made(parts) == _made(parts)
    assert json.loads(_made(parts))["serialNumber"] != json.loads(_made(other))["serialNumber"]
    assert b"timestamp" not in _made(parts)


def test_no_path_of_the_workshop_is_told(parts: BundleParts, tmp_path: Path) -> None:
    assert str(tmp_path).encode() not in _made(parts)
    assert b"/home/somebody" not in _made(parts)


def test_a_model_of_a_hub_is_named_as_the_hub_names_it(parts: BundleParts) -> None:
    hub = replace(parts, weights=replace(parts.weights, source="hf:org/model@main", licence="apache-2.0"))
    found = _components(hub)["weights/mini.gguf"]
    assert found["purl"] == "pkg:huggingface/org/model"
    assert found["licenses"] == [{"license": {"id": "Apache-2.0"}}]


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("MIT License", {"license": {"id": "MIT"}}),
        ("mit", {"license": {"id": "MIT"}}),
        ("MPL-2.0 AND (Apache-2.0 OR MIT)", {"expression": "MPL-2.0 AND (Apache-2.0 OR MIT)"}),
        ("Some Licence of Our Own", {"license": {"name": "Some Licence of Our Own"}}),
    ],
)
def test_licences_are_told_by_their_spdx_names_where_they_have_one(
    parts: BundleParts, written: str, expected: dict[str, object]
) -> None:
    wheel = replace(parts.wheelhouse.wheels[0], licence=written)
    found = _components(replace(parts, wheelhouse=replace(parts.wheelhouse, wheels=(wheel,))))
    assert found["app/orjson"]["licenses"] == [expected]


@pytest.mark.parametrize("written", [None, "", "  "])
def test_an_unknown_licence_is_not_invented(parts: BundleParts, written: str | None) -> None:
    found = _components(replace(parts, weights=replace(parts.weights, licence=written)))
    assert "licenses" not in found["weights/mini.gguf"]


def test_every_package_and_every_linked_library_has_its_licence() -> None:
    data = resources.files("sampan") / "data"
    runtime = tomllib.loads((data / "runtime.toml").read_text(encoding="utf-8"))
    pins = tomllib.loads((data / "pins.toml").read_text(encoding="utf-8"))
    own = {one["name"] for one in pins["engine"]["licence"]} - {"LICENSE-llama.cpp"}
    assert set(runtime["packages"]) == set(licences.runtime())
    assert own == set(licences.linked())
