"""Files that are only a part: cut by bytes (to be joined with ``cat``), or native shards (to be left apart)."""

from __future__ import annotations

import re
from pathlib import Path

from sampan.errors import BadInputError

# name.gguf.part1of2, name.gguf.part-a, name.gguf-split-a, name.gguf.partaa, name.gguf.001, name.ggufaa (split -b)
_RAW = re.compile(
    r"(?P<whole>.+?\.(?:gguf|safetensors|bin|onnx))"
    r"(?:[.\-_]?(?:part|split)[.\-_]?(?P<part>\d+of\d+|\d+|[a-z]{1,3})|\.(?P<number>\d{2,4})|\.?(?P<letters>a[a-z]))"
    r"|(?P<bare>x[a-z]{2})",  # what `split -b` calls them where it is not told a name
    re.IGNORECASE,
)
_OF = re.compile(r"(\d+)of(\d+)", re.IGNORECASE)
SHARD = re.compile(r"(?P<stem>.+)-(?P<number>\d{5})-of-(?P<count>\d{5})\.(?P<kind>gguf|safetensors)")
_MOST_SHARDS = 1000


def refuse_raw_parts(path: Path) -> None:
    """Raise BadInputError for a part that was cut by bytes; the hint names the command that joins them."""
    match = _RAW.fullmatch(path.name)
    if match is None or not path.is_file():
        return
    mates = sorted(
        (mate for mate in path.parent.iterdir() if (other := _RAW.fullmatch(mate.name)) and _same(other, match)),
        key=lambda mate: _order(mate.name),
    )
    whole = match["whole"] or "model.gguf"
    missing = _missing(match, [mate.name for mate in mates])
    if missing:
        raise BadInputError("weights.raw_part_missing", path=str(path), missing=", ".join(missing[:8]))
    command = f"cat {' '.join(mate.name for mate in mates)} > {whole}"
    raise BadInputError(
        "weights.raw_parts", path=str(path), count=len(mates), folder=str(path.parent), command=command
    )


def _same(one: re.Match[str], other: re.Match[str]) -> bool:
    return one["whole"] == other["whole"]


def _order(name: str) -> tuple[int, str]:
    """Parts by number, not by spelling: part10 comes after part9."""
    match = _RAW.fullmatch(name)
    word = (match["part"] or match["number"] or match["letters"] or match["bare"] or "") if match else ""
    digits = re.match(r"\d+", word)
    return (int(digits[0]) if digits else 0, name)


def _missing(match: re.Match[str], names: list[str]) -> list[str]:
    """Names of the ``1of3`` kind that are not there; other kinds do not tell how many they are."""
    of = _OF.fullmatch(match["part"] or "")
    if of is None or int(of[2]) > _MOST_SHARDS:
        return []
    before, after = match.string[: match.start("part")], match["part"][len(of[1]) :]
    width = len(of[1]) if of[1].startswith("0") else 1
    there = {_order(name)[0] for name in names}
    return [f"{before}{number:0{width}d}{after}" for number in range(1, int(of[2]) + 1) if number not in there]


def shards_of(path: Path) -> tuple[Path, ...]:
    """All native shards of the model that ``path`` is one of; only itself where it is whole.

    Raises BadInputError ``weights.shard_missing`` where one is not there.
    """
    match = SHARD.fullmatch(path.name)
    if match is None:
        return (path,)
    count = int(match["count"])
    names = [f"{match['stem']}-{number:05d}-of-{count:05d}.{match['kind']}" for number in range(1, count + 1)]
    if not 1 <= int(match["number"]) <= count <= _MOST_SHARDS:
        return (path,)
    missing = [name for name in names if not (path.parent / name).is_file()]
    if missing:
        raise BadInputError("weights.shards_missing", path=str(path), count=count, missing=", ".join(missing[:8]))
    return tuple(path.parent / name for name in names)
