"""Native shards as the one file that they were cut from; all that follows, bundles too, knows one file of weights."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from sampan.errors import BadInputError
from sampan.i18n import text
from sampan.spec.ports import Progress, Store, Task
from sampan.weights.digest import sha256_of
from sampan.weights.gguf_header import GgufHeader, TensorInfo, raw_fields, read_header
from sampan.weights.inspect.gguf_report import whole
from sampan.weights.inspect.parts import SHARD

_CHUNK = 8 << 20  # bytes
_SPLIT = "split."  # metadata that only shards have
_Source = tuple[Path, TensorInfo]


def merged(shards: Sequence[Path], store: Store, progress: Progress) -> Path:
    """The whole file, made once in the store; the same bytes before and after the split. Raises BadInputError."""
    headers = [read_header(shard) for shard in shards]
    whole(headers)
    _require_mates(headers)
    match = SHARD.fullmatch(shards[0].name)
    name = f"{match['stem'] if match else shards[0].stem}.gguf"

    def make(folder: Path) -> None:
        _write(headers, folder / name, progress)

    key: dict[str, object] = {"recipe": 1, "name": name}
    key |= {"shards": [sha256_of(shard, store, progress) for shard in shards]}
    return store.get_or_make("merged", key, make) / name


def _require_mates(headers: Sequence[GgufHeader]) -> None:
    """Each says of itself that it is the one in this place, and no tensor is there twice."""
    for number, header in enumerate(headers):
        for field, expected in (("split.no", number), ("split.count", len(headers))):
            stated = header.fields.get(field)
            if stated != expected:
                path, shown = str(header.path), f"{field} = {stated}"
                raise BadInputError("weights.shards_differ", path=path, count=len(headers), stated=shown)
    seen: set[str] = set()
    for header, tensor in ((each, tensor) for each in headers for tensor in each.tensors):
        if tensor.name in seen:
            detail = text("weights.damage.duplicate", name=tensor.name)
            raise BadInputError("weights.damaged", path=str(header.path), detail=detail)
        seen.add(tensor.name)


def _write(headers: Sequence[GgufHeader], out: Path, progress: Progress) -> None:
    fields = [raw for key, raw in raw_fields(headers[0].path) if not key.startswith(_SPLIT)]
    sources = [(header.path, tensor) for header in headers for tensor in header.tensors]
    stated = headers[0].fields.get("general.alignment", 32)
    alignment = stated if isinstance(stated, int) else 32
    total = sum(tensor.size_bytes for _, tensor in sources)
    with out.open("wb") as target, progress.task(text("weights.step.merge", file=out.name), total) as task:
        target.write(struct.pack("<4sIQQ", b"GGUF", 3, len(sources), len(fields)))
        target.writelines(fields)
        target.writelines(_infos(sources, alignment))
        for path, tensor in sources:
            _pad(target, alignment)
            _copy(path, tensor, target, task)
        _pad(target, alignment)


def _infos(sources: Sequence[_Source], alignment: int) -> Iterator[bytes]:
    offset = 0
    for _, tensor in sources:
        name, shape = tensor.name.encode(), tensor.shape
        form = f"<Q{len(name)}sI{len(shape)}QIQ"
        yield struct.pack(form, len(name), name, len(shape), *shape, int(tensor.type), offset)
        offset += -(-tensor.size_bytes // alignment) * alignment


def _pad(target: BinaryIO, alignment: int) -> None:
    target.write(bytes(-target.tell() % alignment))


def _copy(path: Path, tensor: TensorInfo, target: BinaryIO, task: Task) -> None:
    with path.open("rb") as source:
        source.seek(tensor.offset)
        left = tensor.size_bytes
        while left:
            chunk = source.read(min(_CHUNK, left))
            if not chunk:  # it was whole when its header was read
                raise BadInputError(
                    "weights.truncated", path=str(path), size=source.tell(), needed=tensor.offset + left
                )
            target.write(chunk)
            task.advance(len(chunk))
            left -= len(chunk)
