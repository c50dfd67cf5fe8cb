"""The engine's own tools for this machine, from the same pinned source and tree as the engine itself."""

from __future__ import annotations

import platform
import shutil
from dataclasses import replace
from pathlib import Path

from sampan.flow.tools import Tools

QUANTIZE, PERPLEXITY, SERVER = "llama-quantize", "llama-perplexity", "llama-server"


def engine_tool(name: str, tools: Tools) -> Path:
    """``llama-quantize``, ``llama-perplexity`` or ``llama-server``, built for this machine's CPU; kept in the store.

    After an engine for this architecture it costs half a minute, before one six minutes on two cores.
    Raises BuildError, MissingToolError, NetworkError, FilesystemError, IncompatibleError.
    """
    from sampan.build import flags, source
    from sampan.build.check import check_static
    from sampan.build.pins import engine_pin
    from sampan.build.toolchain import environment, find_build_tools, find_compiler
    from sampan.build.tree import BuildTree
    from sampan.plan.variants import all_variants, choose
    from sampan.survey.features import current

    here = platform.machine()
    pin = replace(engine_pin(), target=name)
    compiler, arch = find_compiler(), pin.architecture(here)
    variant = choose([known for known in all_variants() if known.arch == here], current(Path("/")))
    shared = flags.tree_key(pin, compiler, arch)

    def make(folder: Path) -> None:
        tree = tools.store.scratch("engine", shared)
        with tools.store.locked(f"engine-tree-{tree.name}"):
            archive = tools.fetcher.pypi(pin.requirement, file_name=pin.file_name, sha256=pin.sha256)
            source.unpack(archive, pin, tree / "source")
            surroundings = environment(tools.store, compiler)
            place = BuildTree(tree, pin, arch, compiler, find_build_tools(), surroundings, tools.runner)
            built = place.make(variant, tools.progress)
            check_static(built, here, max_bytes=pin.max_bytes)
            shutil.copyfile(built, folder / name)
        (folder / name).chmod(0o755)

    # llama-server is the engine: taken from where the engine's builds are kept, or put there.
    key = flags.variant_key(shared, variant)
    stage = "engine" if name == engine_pin().target else "engine-tool"
    return tools.store.get_or_make(stage, key if stage == "engine" else {**key, "tool": name}, make) / name
