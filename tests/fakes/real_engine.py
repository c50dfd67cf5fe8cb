"""Where a real llama-server and real weights are, if this machine has them."""

from __future__ import annotations

import os
import platform
from pathlib import Path

from elftools.elf.elffile import ELFFile
from gguf import GGUFReader

from sampan.build import flags
from sampan.build.pins import engine_pin
from sampan.build.toolchain import find_compiler
from sampan.edge.store import DiskStore, default_root
from sampan.plan.variants import all_variants, choose
from sampan.survey.features import current

_MACHINES = {"x86_64": "EM_X86_64", "aarch64": "EM_AARCH64"}
_EMBEDDING_ARCHITECTURES = ("bert", "nomic-bert", "jina-bert-v2")

_SMALLEST = 10_000_000  # bytes; below lie the toys of other tests, whose vectors mean nothing


def executable() -> Path | None:
    """SAMPAN_TEST_ENGINE, else the store's best for this machine, else its newest that is built for it."""
    if os.environ.get("SAMPAN_TEST_ENGINE"):
        return Path(os.environ["SAMPAN_TEST_ENGINE"])
    best = best_executable()
    if best is not None:
        return best
    found = [path for path in _newest("llama-server") if _is_native(path)]
    return found[0] if found else None


def best_executable() -> Path | None:
    """Of the builds in the store that the plan would take here; None where it was not built yet."""
    pin, here = engine_pin(), platform.machine()
    variant = choose([each for each in all_variants() if each.arch == here], current(Path("/")))
    key = flags.variant_key(flags.tree_key(pin, find_compiler(), pin.architecture(here)), variant)
    made = DiskStore().find("engine", key)
    return None if made is None else made / pin.target


def weights(task: str) -> Path | None:
    """SAMPAN_TEST_EMBEDDING_WEIGHTS or SAMPAN_TEST_CHAT_WEIGHTS, else the newest fitting GGUF in the store."""
    named = os.environ.get(f"SAMPAN_TEST_{task.upper()}_WEIGHTS")
    if named:
        return Path(named)
    for path in _newest("*.gguf"):
        if path.stat().st_size < _SMALLEST:
            continue
        field = GGUFReader(path).get_field("general.architecture")
        is_embedding = field is not None and field.contents() in _EMBEDDING_ARCHITECTURES
        if is_embedding == (task == "embedding"):
            return path
    return None


def _newest(pattern: str) -> list[Path]:
    """Finished results only: folders that begin with a dot are being made; quantized files are experiments."""
    made = default_root() / "made"
    found = (path for stage in ("engine", "weights", "ready") for path in made.glob(f"{stage}/[!.]*/{pattern}"))
    files = [path for path in found if path.is_file()]
    return sorted(files, key=lambda path: path.stat().st_mtime, reverse=True)


def _is_native(path: Path) -> bool:
    with path.open("rb") as file:
        if file.read(4) != b"\x7fELF":
            return False
        return bool(ELFFile(file)["e_machine"] == _MACHINES.get(platform.machine()))
