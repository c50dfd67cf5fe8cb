"""Build the engine's executables that a plan asks for; what was built once comes from the store."""

from __future__ import annotations

import hashlib
import shutil
from dataclasses import dataclass
from pathlib import Path

from sampan.build import flags, source
from sampan.build.check import check_static
from sampan.build.patches import NOTICE, notice
from sampan.build.pins import EnginePin, engine_pin
from sampan.build.toolchain import Compiler, environment, find_build_tools, find_compiler
from sampan.build.tree import BuildTree
from sampan.errors import IncompatibleError
from sampan.spec.artefacts import EngineBuild, EngineVariant
from sampan.spec.plan import Plan, Variant
from sampan.spec.ports import Fetcher, Progress, Runner, Store


def build(plan: Plan, *, runner: Runner, fetcher: Fetcher, store: Store, progress: Progress) -> EngineBuild:
    """One static executable per variant of the plan, baseline first, and the licence texts that must travel.

    The variants are built one after another in one tree, where only the kernels differ; an interrupted build goes
    on where it stopped. Raises BuildError, MissingToolError, NetworkError, FilesystemError, IncompatibleError.
    """
    workshop = _Workshop(engine_pin(), find_compiler(), runner, fetcher, store, progress)
    if plan.engine != workshop.pin.name:
        raise IncompatibleError("build.engine", engine=plan.engine, known=workshop.pin.name)
    return EngineBuild(
        engine=workshop.pin.name,
        version=workshop.pin.version,
        source_sha256=workshop.pin.sha256,
        compiler=workshop.compiler.label,
        arch=plan.arch,
        variants=tuple(workshop.variant(plan.arch, variant) for variant in plan.variants),
        licences=workshop.licences(),
    )


@dataclass(frozen=True)
class _Workshop:
    """What every step of one call needs."""

    pin: EnginePin
    compiler: Compiler
    runner: Runner
    fetcher: Fetcher
    store: Store
    progress: Progress

    def variant(self, arch: str, variant: Variant) -> EngineVariant:
        """Build it, or take it from the store."""
        target = self.pin.architecture(arch)
        shared = flags.tree_key(self.pin, self.compiler, target)

        def make(folder: Path) -> None:
            tree = self.store.scratch("engine", shared)
            with self.store.locked(f"engine-tree-{tree.name}"):
                source.unpack(self._archive(), self.pin, tree / "source")
                surroundings = environment(self.store, self.compiler)
                tools = find_build_tools()
                place = BuildTree(tree, self.pin, target, self.compiler, tools, surroundings, self.runner)
                built = place.make(variant, self.progress)
                check_static(built, arch, max_bytes=self.pin.max_bytes)
                shutil.copyfile(built, folder / self.pin.target)
            (folder / self.pin.target).chmod(0o755)

        made = self.store.get_or_make("engine", flags.variant_key(shared, variant), make) / self.pin.target
        data = made.read_bytes()
        return EngineVariant(variant.name, str(made), hashlib.sha256(data).hexdigest(), len(data))

    def licences(self) -> tuple[str, ...]:
        """Absolute paths, sorted by name."""

        def make(folder: Path) -> None:
            tree = folder / "source"
            source.unpack(self._archive(), self.pin, tree)
            roots = {"source": tree, "compiler": self.compiler.folder}
            for licence in self.pin.licences:
                text = source.licence_text(licence, roots[licence.of])
                (folder / licence.name).write_text(text, encoding="utf-8")
            shutil.rmtree(tree)
            if changed:
                (folder / NOTICE).write_text(changed, encoding="utf-8")

        changed = notice(self.pin.changes)
        wanted = [[licence.name, licence.of, licence.path, licence.start] for licence in self.pin.licences]
        key = {"source": self.pin.sha256, "compiler": self.compiler.label, "texts": wanted, "notice": changed}
        folder = self.store.get_or_make("engine-licences", key, make)
        return tuple(str(path) for path in sorted(folder.iterdir()))

    def _archive(self) -> Path:
        return self.fetcher.pypi(self.pin.requirement, file_name=self.pin.file_name, sha256=self.pin.sha256)
