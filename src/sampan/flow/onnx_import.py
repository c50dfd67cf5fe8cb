"""An encoder's folder as ONNX, through the converter's environment."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from sampan.errors import BadInputError, UsageError
from sampan.flow import models
from sampan.flow.converter_env import TORCH, exporter
from sampan.flow.importing import ORIGINAL
from sampan.flow.tools import Tools
from sampan.spec import codec
from sampan.spec.onnx import OnnxInfo

if TYPE_CHECKING:
    from sampan.weights.folder import ModelFolder

_TYPES = (ORIGINAL, "f32")


def import_onnx(source: str, kind: str, tools: Tools, *, torch: str = TORCH) -> tuple[OnnxInfo, Path]:
    """The facts and the folder with graph, tokenizer, golden set and ``onnx.json``; made once for the same folder.

    Raises UsageError, BadInputError, MissingToolError, BuildError, VerificationError, NetworkError, FilesystemError.
    """
    from sampan.weights.converter.onnx import OPSET, Export
    from sampan.weights.converter.staging import staged
    from sampan.weights.facts import golden_texts
    from sampan.weights.folder_tensors import open_tensors
    from sampan.weights.importing import folder_key, folder_truth
    from sampan.weights.inspect.links import refuse_links_out
    from sampan.weights.inspect.onnx_facts import FACTS

    if kind not in _TYPES:
        raise UsageError("import.onnx_type", found=kind, known=", ".join(_TYPES))
    root, name = _folder_of(source, tools)
    refuse_links_out(root)
    folder = _encoder(root)
    open_tensors(folder)
    shown = staged(folder.model, known=True)  # all is refused before anything large is fetched
    tool = exporter(tools, torch)
    key: dict[str, object] = {"recipe": 1, "opset": OPSET, "name": name, "largest": tool.largest}
    key |= {"tool": [tool.python.parents[2].name, tool.script.parent.name]}
    key |= {"folder": folder_key(root, tools.store, tools.progress), "texts": golden_texts().version}

    def make(out: Path) -> None:
        golden = folder_truth(root, name, progress=tools.progress)
        links = shown.link(out / "links")
        tool.export(Export(folder, links, name, golden, out), tools.progress)
        shutil.rmtree(links)

    made = tools.store.get_or_make("onnx", key, make)
    return replace(codec.load(OnnxInfo, made / FACTS), source=source), made


def _folder_of(source: str, tools: Tools) -> tuple[Path, str]:
    """The model's folder here, fetched where the source is remote, and its public name."""
    from sampan.weights.describe import model_name
    from sampan.weights.fetch.source import is_remote
    from sampan.weights.inspect.locate import locate
    from sampan.weights.ready import is_ready_source

    path, name = Path(source).expanduser().absolute(), None
    if is_remote(source) or is_ready_source(source):
        fetched = models.fetch(source, tools)
        path, name = Path(fetched.path), fetched.repository.rpartition("/")[2]
    found = locate(path)
    if found.kind != "folder":
        raise BadInputError("import.onnx_folder", path=str(found.path), format=found.kind)
    return found.path, name or model_name(found.path)


def _encoder(root: Path) -> ModelFolder:
    from sampan.weights.folder import read_folder

    try:
        return read_folder(root)
    except BadInputError as error:
        if error.key != "weights.class":  # its hint speaks of GGUF
            raise
        raise BadInputError("import.onnx_class", **error.values) from error
