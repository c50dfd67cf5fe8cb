"""The engine and its tools for this machine's CPU in tests: built the first time, else skipped.

On two quiet cores the engine takes six minutes, which shipping for this machine needs anyway; the tools add seconds.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.fakes import real_engine

from sampan.edge.progress import SilentProgress
from sampan.errors import FilesystemError, MissingToolError, NetworkError
from sampan.flow.engine_tools import PERPLEXITY, QUANTIZE, SERVER, built_tool, engine_tool
from sampan.flow.tools import Tools, workshop_tools


def tools() -> Tools:
    """The real edge, with llama-quantize, llama-perplexity and llama-server in the store.

    ``SAMPAN_TEST_BUILD_TOOLS=0`` builds nothing.
    """
    made = workshop_tools(SilentProgress())
    for name in (SERVER, QUANTIZE, PERPLEXITY):
        _require(name, made)
    return made


def server() -> Path:
    """The llama-server that the store or the environment has, else the one that is built now."""
    return real_engine.executable() or _require(SERVER, workshop_tools(SilentProgress()))


def _require(name: str, made: Tools) -> Path:
    found = built_tool(name, made)
    if found is not None:
        return found
    if os.environ.get("SAMPAN_TEST_BUILD_TOOLS") == "0":
        pytest.skip(f"{name} is not built here, and SAMPAN_TEST_BUILD_TOOLS=0")
    try:
        return engine_tool(name, made)
    except (MissingToolError, NetworkError, FilesystemError) as error:  # a failing build is a failing test
        pytest.skip(f"{name} cannot be built here: {error.message}")
