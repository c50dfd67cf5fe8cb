"""Where a real llama-server and real weights are, if this machine has them."""

from __future__ import annotations

import os
import platform
from pathlib import Path

from elftools.elf.elffile import ELFFile
from gguf import GGUFReader

from sampan.edge.store import default_root

_MACHINES = {"x86_64": "EM_X86_64", "aarch64": "EM_AARCH64"}
_EMBEDDING_ARCHITECTURES = ("bert", "nomic-bert", "jina-bert-v2")


def executable() -> Path | None:
    """SAMPAN_TEST_ENGINE, else the newest llama-server in the store that is built for this machine."""
    if os.environ.get("SAMPAN_TEST_ENGINE"):
        return Path(os.environ["SAMPAN_TEST_ENGINE"])
    found = [path for path in _newest("llama-server") if _is_native(path)]
    return found[0] if found else None


def weights(task: str) -> Path | None:
    """SAMPAN_TEST_EMBEDDING_WEIGHTS or SAMPAN_TEST_CHAT_WEIGHTS, else the newest fitting GGUF in the store."""
    named = os.environ.get(f"SAMPAN_TEST_{task.upper()}_WEIGHTS")
    if named:
        return Path(named)
    for path in _newest("*.gguf"):
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
