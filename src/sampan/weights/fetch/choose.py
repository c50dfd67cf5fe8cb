"""Which files of a repository a model needs. Pure.

Without a pattern: a safetensors model with its descriptions, else the one GGUF there is. Never pickles, never the
same weights in a second format.
"""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

from sampan.errors import BadInputError, UsageError
from sampan.spec.hub import HubFile, HubListing
from sampan.weights.inspect.parts import SHARD

_DESCRIPTIONS = frozenset({".json", ".txt", ".model", ".jinja", ".md", ".tiktoken"})
_LICENCES = ("LICENSE", "LICENCE", "NOTICE", "COPYING", "USE_POLICY")
_OTHER_FORMATS = ("onnx/", "openvino/", "coreml/", "gguf/", "original/", "flax/", "tf/", ".git")
_PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl")
_MOST_NAMED = 20
_LARGEST_DESCRIPTION = 256 << 20  # bytes


def choose(listing: HubListing, glob: str | None) -> tuple[HubFile, ...]:
    """The files to fetch. Raises UsageError where a choice is left to make, BadInputError where there is no model."""
    for file in listing.files:
        _require_safe(listing, file)
    if glob is not None:
        return _matching(listing, glob)
    tensors = [file for file in listing.files if file.path.endswith(".safetensors") and not _is_other(file.path)]
    models = _gguf_models(listing.files)
    if tensors:
        return tuple(file for file in listing.files if file in _one_set(tensors) or _describes(file))
    if len(models) == 1:
        only = next(iter(models.values()))
        return tuple(file for file in listing.files if file in only or _is_licence(file.path))
    if models:
        named = ", ".join(f"{name} ({_size(files)})" for name, files in list(models.items())[:_MOST_NAMED])
        raise UsageError("hub.several", repository=listing.repository, count=len(models), files=named)
    pickles = [file.path for file in listing.files if file.path.endswith(_PICKLES)]
    if pickles:
        raise BadInputError("weights.pickle_only", path=listing.repository, files=", ".join(pickles[:5]))
    raise BadInputError("hub.no_model", repository=listing.repository, count=len(listing.files))


def _require_safe(listing: HubListing, file: HubFile) -> None:
    """A hub's path becomes a path of ours: relative, without ``..``, of sane length."""
    parts = PurePosixPath(file.path).parts
    sound = parts and ".." not in parts and not file.path.startswith("/") and "\\" not in file.path
    if not sound or "\0" in file.path or len(file.path) > 512 or any(len(part.encode()) > 200 for part in parts):
        raise BadInputError("hub.path", repository=listing.repository, path=file.path[:80])


def _matching(listing: HubListing, glob: str) -> tuple[HubFile, ...]:
    """What the pattern names, by whole path or by name; all shards where one matches."""
    wanted = {file.path for file in listing.files if _matches(file.path, glob)}
    for files in _gguf_models(listing.files).values():
        if wanted & {file.path for file in files}:
            wanted |= {file.path for file in files}
    if not wanted:
        names = ", ".join(file.path for file in listing.files[:_MOST_NAMED])
        raise UsageError("hub.no_match", repository=listing.repository, glob=glob, files=names)
    return tuple(file for file in listing.files if file.path in wanted)


def _matches(path: str, glob: str) -> bool:
    return fnmatchcase(path, glob) or fnmatchcase(PurePosixPath(path).name, glob)


def _gguf_models(files: Sequence[HubFile]) -> dict[str, list[HubFile]]:
    """GGUF models by their name: a file, or all shards of one."""
    found: dict[str, list[HubFile]] = {}
    for file in files:
        if file.path.endswith(".gguf"):
            match = SHARD.fullmatch(file.path)
            found.setdefault(f"{match['stem']}.gguf" if match else file.path, []).append(file)
    return found


def _one_set(tensors: list[HubFile]) -> list[HubFile]:
    """The uppermost ``model…`` files: some hold the same weights twice (``consolidated``, fp16 variants)."""
    named = [file for file in tensors if PurePosixPath(file.path).name.startswith("model")]
    named = [file for file in named if ".fp16." not in file.path and ".bf16." not in file.path] or named
    depth = min((file.path.count("/") for file in named), default=0)
    return [file for file in named if file.path.count("/") == depth] or tensors


def _describes(file: HubFile) -> bool:
    path = PurePosixPath(file.path)
    small = (file.size_bytes or 0) <= _LARGEST_DESCRIPTION
    return small and not _is_other(file.path) and (path.suffix in _DESCRIPTIONS or _is_licence(file.path))


def _is_licence(path: str) -> bool:
    return PurePosixPath(path).name.upper().startswith(_LICENCES) or path == "README.md"


def _is_other(path: str) -> bool:
    return path.startswith(_OTHER_FORMATS)


def _size(files: Sequence[HubFile]) -> str:
    return f"{sum(file.size_bytes or 0 for file in files) / 1e9:.1f} GB"
