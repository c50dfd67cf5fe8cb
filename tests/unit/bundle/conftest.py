"""A whole set of small parts, made of real files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.fakes.bundle_parts import PASSED, make_parts

from sampan.bundle.assemble import assemble
from sampan.bundle.parts import BundleParts
from sampan.bundle.seal import seal
from sampan.spec.artefacts import Rehearsal


@pytest.fixture
def parts(tmp_path: Path) -> BundleParts:
    """Parts that fit together."""
    return make_parts(tmp_path)


@pytest.fixture
def sealed(parts: BundleParts, tmp_path: Path) -> Path:
    """A sealed, rehearsed bundle."""
    folder = Path(assemble(parts, tmp_path / "out").path)
    seal(folder, PASSED)
    return folder


@pytest.fixture
def parts_in() -> Callable[[Path], BundleParts]:
    """The same parts in any folder."""
    return make_parts


@pytest.fixture
def passed() -> Rehearsal:
    """A rehearsal that went well."""
    return PASSED
