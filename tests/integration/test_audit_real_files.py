"""Public files with a story, from the index: the audit tells it. 300 MB the first time, then from the store.

The large ones (torch, PaddlePaddle, OpenVINO, zig: 520 MB, minutes) only with SAMPAN_TEST_LARGE=1.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from sampan.audit.audit import audit
from sampan.edge.net import NetFetcher
from sampan.edge.progress import SilentProgress
from sampan.edge.store import DiskStore
from sampan.errors import NetworkError
from sampan.survey import known

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

pytestmark = pytest.mark.integration
TABLE = Path(__file__).parents[1] / "data" / "audit" / "real_files.toml"
FILES: list[dict[str, Any]] = tomllib.loads(TABLE.read_text(encoding="utf-8"))["file"]
OTHERS = ("isa.", "gpu.", "wheel.", "archive.")  # families with tests of their own: only their errors are counted
LARGE = os.environ.get("SAMPAN_TEST_LARGE") == "1"


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file['name'].partition('-py')[0][:40]} {file['target']}")
def test_the_story_of_a_public_file(file: dict[str, Any]) -> None:
    if file.get("large") and not LARGE:
        pytest.skip("large: set SAMPAN_TEST_LARGE=1")
    fetcher = NetFetcher(DiskStore(), SilentProgress())
    try:
        path = fetcher.pypi(file["requirement"], file_name=file["name"], sha256=file["sha256"])
    except NetworkError as error:
        pytest.skip(f"needs the package index: {error.message}")
    assert path.stat().st_size <= file["size"]
    findings = audit([path], known.load(file["target"])).findings
    counted = [each for each in findings if each.severity == "error" or not each.code.startswith(OTHERS)]
    assert Counter(f"{each.code} {each.severity}" for each in counted) == file["findings"], file["story"]
    for code, key, text in file["says"]:
        assert text in {dict(each.values)[key] for each in findings if each.code == code}
