"""Which model a path means: a file, a folder, or a folder around one file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sampan.errors import BadInputError
from sampan.weights.files import read_object, refuse_lfs_pointer
from sampan.weights.inspect.parts import SHARD, refuse_raw_parts
from sampan.weights.inspect.stored import PICKLES, elements_of
from sampan.weights.sniff import require_gguf

_PADDLE_PROGRAMS = ("inference.json", "inference.pdmodel", "__model__")
_MOST_NAMED = 12


@dataclass(frozen=True)
class Found:
    """``kind``: gguf, folder, onnx or paddle; ``path`` the file, or the folder of kind folder."""

    kind: str
    path: Path


def locate(path: Path) -> Found:
    """Decide by what is there, not by the name alone. Raises BadInputError, OSError."""
    path = path.expanduser().absolute()
    if not path.exists():
        raise BadInputError("file.missing", path=str(path))
    if path.is_dir():
        return _in_folder(path)
    refuse_raw_parts(path)
    if path.is_file() and path.stat().st_size:
        refuse_lfs_pointer(path)
        if path.suffix == ".onnx":
            return Found("onnx", path)
        if path.suffix in (".pdmodel", ".pdiparams") or path.name == "inference.json":
            return Found("paddle", program_of(path))
    if path.suffix in PICKLES and is_pickle(path):
        raise BadInputError("weights.pickle", path=str(path))
    if path.suffix == ".safetensors" and path.is_file():
        elements_of(path)  # a damaged one is called damaged before anything else
        if (path.parent / "config.json").is_file():
            return Found("folder", path.parent)
    require_gguf(path)
    return Found("gguf", path)


def is_pickle(path: Path) -> bool:
    """Whether reading it as a checkpoint would run a pickle: bare, or in PyTorch's archive. Nothing is unpacked."""
    with path.open("rb") as stream:
        start = stream.read(512)
    archive = start.startswith(b"PK\x03\x04") and b".pkl" in start
    return archive or (start[:1] == b"\x80" and start[1:2] in b"\x02\x03\x04\x05")


def program_of(path: Path) -> Path:
    """The program that belongs to a Paddle file. Raises BadInputError."""
    if path.suffix != ".pdiparams":
        return path
    for candidate in (path.with_suffix(".json"), path.with_suffix(".pdmodel")):
        if candidate.is_file():
            return candidate
    raise BadInputError("weights.shard_missing", path=str(path.parent), shard=path.with_suffix(".pdmodel").name)


def _in_folder(folder: Path) -> Found:
    if (folder / "config.json").is_file() and not _is_only_graph(folder):
        return Found("folder", folder)
    if (folder / "modules.json").is_file():
        return Found("folder", folder)
    entries = sorted(entry for entry in folder.iterdir() if entry.is_file())
    models = [entry for entry in entries if entry.suffix == ".gguf" and _is_first(entry)]
    graphs = [entry for entry in entries if entry.suffix == ".onnx"] or sorted(folder.glob("onnx/model.onnx"))
    programs = [folder / name for name in _PADDLE_PROGRAMS if (folder / name).is_file()]
    programs = programs or [entry for entry in entries if entry.suffix == ".pdmodel"]
    found = [*(Found("gguf", each) for each in models), *(Found("paddle", each) for each in programs[:1])]
    found += [Found("onnx", each) for each in graphs]
    if len(found) == 1:
        return locate(found[0].path)
    if found:
        names = ", ".join(str(each.path.relative_to(folder)) for each in found[:_MOST_NAMED])
        raise BadInputError("weights.several", path=str(folder), count=len(found), files=names)
    return _nothing(folder, entries)


def _is_first(entry: Path) -> bool:
    match = SHARD.fullmatch(entry.name)
    return match is None or int(match["number"]) == 1


def _is_only_graph(folder: Path) -> bool:
    """An exported ONNX model lies beside the config.json of what it was made from."""
    return not any(folder.glob("*.safetensors*")) and not any(folder.glob("*.bin")) and any(folder.rglob("*.onnx"))


def _nothing(folder: Path, entries: list[Path]) -> Found:
    """Say what is there instead of a model. Raises BadInputError."""
    for entry in entries:
        refuse_raw_parts(entry)
    pickles = [entry.name for entry in entries if entry.suffix in PICKLES]
    if pickles:
        raise BadInputError("weights.pickle_only", path=str(folder), files=", ".join(pickles[:5]))
    if any(entry.suffix == ".gguf" for entry in entries):  # shards without their first
        shard = next(entry for entry in entries if entry.suffix == ".gguf")
        return Found("gguf", shard)
    adapter = folder / "adapter_config.json"
    if adapter.is_file():
        base = str(read_object(adapter).get("base_model_name_or_path") or "?")
        raise BadInputError("weights.adapter", path=str(folder), base=base[:200])
    raise BadInputError("weights.no_config", path=str(folder))
