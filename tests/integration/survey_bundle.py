"""The parts of a bundle that its own commands need, laid into a folder."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.integration.runtime_parts import or_skip

from sampan.edge.progress import SilentProgress
from sampan.flow import stages
from sampan.flow.tools import workshop_tools


def bundle(folder: Path, arch: str) -> Path:
    """Launcher, private Python and application; from the user's cache where they are there."""
    tools = workshop_tools(SilentProgress())
    runtime = or_skip(lambda: stages.runtime(arch, tools))
    app = or_skip(lambda: stages.wheelhouse(runtime, tools))
    shutil.copytree(runtime.path, folder / "runtime", symlinks=True)
    shutil.copytree(app.path, folder / "app", symlinks=True)
    shutil.copy2(stages.launcher(arch, tools), folder / "sampan")
    return folder
