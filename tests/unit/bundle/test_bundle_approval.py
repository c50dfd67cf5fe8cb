"""APPROVAL.txt: one page in two languages, with digests that can be checked."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

import pytest

from sampan import i18n
from sampan.bundle import approval, layout
from sampan.bundle.assemble import assemble
from sampan.bundle.parts import BundleParts
from sampan.bundle.seal import seal
from sampan.bundle.sums import content_digest
from sampan.bundle.verify import verify
from sampan.spec.artefacts import Rehearsal

_PAGE_LINES = 66


@pytest.fixture
def folder(parts: BundleParts, tmp_path: Path) -> Path:
    materials = b'{"components": [{"licenses": [{"license": {"id": "MIT"}}], "components": [{"licenses": []}]}]}'
    return Path(assemble(parts, tmp_path / "out", papers={layout.SBOM: materials}).path)


def _text(folder: Path) -> str:
    return (folder / layout.APPROVAL).read_text(encoding="utf-8")


def test_the_sheet_is_sealed_with_the_rest(folder: Path, passed: Rehearsal) -> None:
    seal(folder, passed)
    assert f"  {layout.APPROVAL}\n" in (folder / layout.SUMS).read_text(encoding="utf-8")
    assert verify(folder) == ()


def test_it_fits_one_page_and_says_each_thing_in_both_languages(folder: Path, passed: Rehearsal) -> None:
    seal(folder, passed)
    lines = _text(folder).splitlines()
    assert len(lines) <= _PAGE_LINES
    for word in ("许可证", "Licences", "网络", "Network", "端口", "Port", "MIT × 1", "模拟演练", "Rehearsal", "8080"):
        assert word in _text(folder), word


def test_its_digests_are_those_of_the_files(folder: Path, passed: Rehearsal) -> None:
    seal(folder, passed)
    told = [line.split("  ") for line in _text(folder).splitlines() if line.startswith(("SHA-256", "SM3   "))]
    names = [line[-1] for line in told]
    assert {"weights/mini.gguf", "engine/llama.cpp/armv8.0/llama-server", layout.SBOM} == set(names)
    for kind, *_, digest, name in told:
        algorithm = "sha256" if kind == "SHA-256" else "sm3"
        assert hashlib.new(algorithm, (folder / name).read_bytes()).hexdigest() == digest


def test_openssl_finds_the_same_sm3(folder: Path, passed: Rehearsal) -> None:
    if "sm3" not in hashlib.algorithms_available:
        pytest.skip("this OpenSSL has no SM3")
    seal(folder, passed)
    weights = folder / "weights/mini.gguf"
    try:
        said = subprocess.run(["openssl", "dgst", "-sm3", weights], capture_output=True, check=True, text=True)
    except (FileNotFoundError, subprocess.CalledProcessError):
        pytest.skip("no openssl command with SM3 here")
    assert said.stdout.split()[-1] in _text(folder)


def test_where_openssl_has_no_sm3_it_says_so(
    folder: Path, passed: Rehearsal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hashlib, "algorithms_available", {"sha256"})
    seal(folder, passed)
    assert i18n.text_in("zh", "approval.no-sm3") in _text(folder)
    assert "None" not in _text(folder)


def test_a_bundle_without_results_has_no_sheet_to_sign(folder: Path, passed: Rehearsal) -> None:
    seal(folder, passed)
    seal(folder, None)
    assert not (folder / layout.APPROVAL).exists()
    assert verify(folder) == ()


def test_the_contents_stay_the_same_with_the_sheet(folder: Path, passed: Rehearsal) -> None:
    seal(folder, None)
    before = content_digest(folder)
    seal(folder, passed)
    assert content_digest(folder) == before


def test_it_names_who_will_sign(folder: Path, passed: Rehearsal) -> None:
    seal(folder, passed, signer="SHA256:abc")
    assert _text(folder).count("SHA256:abc") == 2


def test_it_does_not_depend_on_the_language_in_force(folder: Path, passed: Rehearsal) -> None:
    texts = set()
    for language in i18n.LANGUAGES:
        i18n.use(language)
        seal(folder, passed)
        texts.add(_text(folder))
    i18n.use("en")
    assert len(texts) == 1


def test_a_bundle_without_a_bill_of_materials_still_gets_its_sheet(sealed: Path) -> None:
    assert "许可证  Licences  -" in _text(sealed)
    assert approval.chosen({"engine": {"name": "x"}, "weights": {"file": "w"}}, {"w": "0"}) == ("w",)
