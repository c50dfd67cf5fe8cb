"""The engine's own tools for this machine, from the same pinned source and tree as the engine itself."""

from __future__ import annotations

import platform
import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from sampan.flow.tools import Tools

if TYPE_CHECKING:
    from sampan.spec.plan import Variant

QUANTIZE, PERPLEXITY, SERVER = "llama-quantize", "llama-perplexity", "llama-server"


def engine_tool(name: str, tools: Tools) -> Path:
    """``llama-quantize``, ``llama-perplexity`` or ``llama-server``, built for this machine's CPU; kept in the store.

    After an engine for this architecture it costs a minute or two, before one six minutes more on two cores.
    Raises BuildError, MissingToolError, NetworkError, FilesystemError, IncompatibleError.
    """
    from sampan.build import source
    from sampan.build.check import check_static
    from sampan.build.pins import engine_pin
    from sampan.build.toolchain import environment, find_build_tools, find_compiler
    from sampan.build.tree import BuildTree

    pin, compiler = replace(engine_pin(), target=name), find_compiler()
    arch = pin.architecture(platform.machine())
    variant = _variant()
    shared = _tree_key()

    def make(folder: Path) -> None:
        tree = tools.store.scratch("engine", shared)
        with tools.store.locked(f"engine-tree-{tree.name}"):
            archive = tools.fetcher.pypi(pin.requirement, file_name=pin.file_name, sha256=pin.sha256)
            source.unpack(archive, pin, tree / "source")
            surroundings = environment(tools.store, compiler)
            place = BuildTree(tree, pin, arch, compiler, find_build_tools(), surroundings, tools.runner)
            built = place.make(variant, tools.progress)
            check_static(built, arch.name, max_bytes=pin.max_bytes)
            shutil.copyfile(built, folder / name)
        (folder / name).chmod(0o755)

    stage, key = _key(name)
    return tools.store.get_or_make(stage, key, make) / name


def built_tool(name: str, tools: Tools) -> Path | None:
    """The same where it was built before, None where it was not."""
    found = tools.store.find(*_key(name))
    return found / name if found else None


def _key(name: str) -> tuple[str, dict[str, object]]:
    """llama-server is the engine: taken from where the engine's builds are kept, or put there."""
    from sampan.build import flags
    from sampan.build.pins import engine_pin

    key = flags.variant_key(_tree_key(), _variant())
    return ("engine", key) if name == engine_pin().target else ("engine-tool", {**key, "tool": name})


def _tree_key() -> dict[str, object]:
    from sampan.build import flags
    from sampan.build.pins import engine_pin
    from sampan.build.toolchain import find_compiler

    return flags.tree_key(engine_pin(), find_compiler(), engine_pin().architecture(platform.machine()))


def _variant() -> Variant:
    from sampan.plan.variants import all_variants, choose
    from sampan.survey.features import current

    of_arch = [known for known in all_variants() if known.arch == platform.machine()]
    return choose(of_arch, current(Path("/")))
