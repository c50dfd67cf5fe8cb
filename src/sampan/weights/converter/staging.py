"""A model folder as the converter may see it: links to descriptions and safetensors, nothing that could run.

The converter opens tokenizers with permission to run the folder's own Python, and would read pickles; so neither is
there.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sampan.errors import BadInputError
from sampan.spec.ports import Progress, Store
from sampan.weights.digest import sha256_of
from sampan.weights.facts import conversion_table
from sampan.weights.files import inside, read_object
from sampan.weights.tensors import stored_tensors, tensor_files

_DESCRIPTIONS = frozenset({".json", ".txt", ".model", ".jinja", ".tiktoken", ".vocab"})
_LARGEST = 256 << 20  # bytes of one description
_DTYPES = {"float32": "f32", "float16": "f16", "bfloat16": "bf16"}


@dataclass(frozen=True)
class StagedFolder:
    """``files``: path below the folder -> the real file."""

    root: Path
    files: dict[str, Path]
    config: dict[str, object]

    @property
    def own_type(self) -> str:
        """How the model's numbers are published: f32, f16 or bf16."""
        named = str(self.config.get("dtype") or self.config.get("torch_dtype") or "float32")
        return _DTYPES.get(named.removeprefix("torch."), "f16")

    def key(self, store: Store, progress: Progress) -> dict[str, object]:
        """What a conversion depends on: the digest of every file."""
        return {name: sha256_of(path, store, progress) for name, path in sorted(self.files.items())}

    def link(self, target: Path) -> Path:
        """Make the folder of links."""
        for name, path in self.files.items():
            place = target / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.symlink_to(path.resolve())
        return target


def _require_class(config: dict[str, object], path: Path) -> None:
    """Raise BadInputError where the converter would end at once, for it costs a gigabyte to ask it."""
    names = config.get("architectures")
    classes = [str(name) for name in names[:8]] if isinstance(names, list) else []
    if not any(name in conversion_table().classes for name in classes):
        raise BadInputError("import.class", path=str(path), found=", ".join(classes) or "-")


def staged(root: Path, *, known: bool = False) -> StagedFolder:
    """Look through the folder. ``known``: its class was judged already, and the converter will not be asked.

    Raises BadInputError: no config, an unknown class, pickles only, damaged tensors, its own code.
    """
    path = root / "config.json"
    if not path.is_file():
        raise BadInputError("weights.no_config", path=str(root))
    config = read_object(path)
    if not known:
        _require_class(config, path)
    for name in ("config.json", "tokenizer_config.json"):
        if (root / name).is_file() and read_object(root / name).get("auto_map"):
            raise BadInputError("import.own_code", path=str(root / name))
    tensors = tensor_files(root)
    stored_tensors(tensors)  # each header is sound before another program reads it
    files = {file.name: file for file in tensors}
    for pattern in ("*", "*/config.json"):
        for file in sorted(root.glob(pattern)):
            name = str(file.relative_to(root))
            if file.suffix in _DESCRIPTIONS and file.is_file() and inside(root, name).stat().st_size <= _LARGEST:
                files[name] = file
    return StagedFolder(root, files, config)
