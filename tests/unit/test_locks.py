"""The locks keep up with pyproject.toml: exact, hashed, without addresses."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[2]
DEVELOPMENT = ROOT / "requirements.lock"
TARGET = ROOT / "src/sampan/data/requirements-target.txt"
_ENTRY = re.compile(r"^([A-Za-z0-9._-]+)==(\S+)", re.MULTILINE)


def _wanted(*extras: str) -> list[Requirement]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lists = [project["dependencies"], *(project["optional-dependencies"][extra] for extra in extras)]
    return [Requirement(text) for texts in lists for text in texts]


@pytest.mark.parametrize(("lock", "extras"), [(DEVELOPMENT, ("workshop", "dev")), (TARGET, ())])
def test_every_dependency_is_locked_to_a_version_that_it_allows(lock: Path, extras: tuple[str, ...]) -> None:
    locked: dict[str, list[str]] = {}
    for name, version in _ENTRY.findall(lock.read_text(encoding="utf-8")):
        locked.setdefault(canonicalize_name(name), []).append(version)
    for requirement in _wanted(*extras):
        if lock == TARGET and requirement.marker and not requirement.marker.evaluate({"python_version": "3.11"}):
            continue
        versions = locked.get(canonicalize_name(requirement.name), [])
        assert versions, f"run tools/lock.sh: {requirement} is not in {lock.name}"
        assert all(requirement.specifier.contains(version) for version in versions), requirement


@pytest.mark.parametrize("lock", [DEVELOPMENT, TARGET])
def test_every_entry_has_a_hash_and_none_an_address(lock: Path) -> None:
    text = lock.read_text(encoding="utf-8")
    entries = re.split(r"^(?=\w)", text.partition("\n\n")[0], flags=re.MULTILINE)
    assert len(entries) > 20
    assert [entry.splitlines()[0] for entry in entries if "==" in entry and "--hash=sha256:" not in entry] == []
    assert "://" not in text
    assert "--index-url" not in text
