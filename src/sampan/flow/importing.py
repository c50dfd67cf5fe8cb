"""A model of any kind as one unquantized GGUF: encoders by us, the rest by llama.cpp's own converter."""

from __future__ import annotations

import shutil
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

from sampan.errors import BadInputError, UsageError
from sampan.flow.converter_env import TORCH, converter
from sampan.flow.tools import Tools
from sampan.spec.weights import GoldenSet, WeightsInfo

if TYPE_CHECKING:
    from sampan.weights.converter.run import Converter

ORIGINAL = "original"  # the type in which the model is published


def opened(
    source: str, ours: str, converters: str, tools: Tools, *, torch: str = TORCH, pre: str = ""
) -> WeightsInfo:
    """What ``source`` is, through our own import where we know its class, else through the converter.

    ``ours``: auto, f32, f16 or q8_0, for the classes that we write; ``converters``: original, f32, f16, bf16 or
    q8_0, for the others. ``torch``: what pip is asked for where the converter is needed; ``pre``: the pre-tokenizer
    that the converter shall take, where it knows none.
    Raises UsageError, BadInputError, MissingToolError, NetworkError, FilesystemError.
    """
    from sampan.weights.resolve import resolve

    try:
        return resolve(
            source,
            quantization=ours,
            fetcher=tools.fetcher,
            store=tools.store,
            progress=tools.progress,
            hubs=tools.hubs,
        )
    except BadInputError as error:
        if error.key != "weights.class":
            raise
        root = Path(str(error.values["path"])).parent  # of its config.json, wherever the source was fetched to
    return by_converter(root, converters, tools, torch, pre)


def import_model(source: str, kind: str, tools: Tools, *, torch: str = TORCH, pre: str = "") -> WeightsInfo:
    """A folder as an unquantized GGUF of type ``kind`` (original, f32, f16 or bf16); a GGUF as it is.

    Raises as ``opened``.
    """
    from sampan.weights.converter.run import TYPES

    if kind not in (ORIGINAL, *TYPES):
        raise UsageError("weights.quantization", found=kind, known=", ".join((ORIGINAL, *TYPES)))
    _require_known(pre)
    folder = Path(source).expanduser()
    if kind == "bf16" and folder.is_dir():
        return by_converter(folder, kind, tools, torch, pre)
    try:
        return opened(source, "f32" if kind == ORIGINAL else kind, kind, tools, torch=torch, pre=pre)
    except UsageError as error:
        if error.key != "weights.requantize":  # a GGUF
            raise
    return opened(source, "auto", ORIGINAL, tools, torch=torch)


def _require_known(pre: str) -> None:
    """Raise UsageError for a pre-tokenizer that the pinned engine does not have."""
    from sampan.weights.facts import engine_table

    known = sorted(engine_table().pre_tokenizers)
    if pre and pre not in known:
        raise UsageError("import.pre_unknown", found=pre, known=", ".join(get_close_matches(pre, known, 5) or known))


def by_converter(root: Path, kind: str, tools: Tools, torch: str = TORCH, pre: str = "") -> WeightsInfo:
    """Through llama.cpp's converter, with a golden set by transformers. Raises as ``import_model``."""
    from sampan.weights.converter.staging import staged
    from sampan.weights.describe import model_name
    from sampan.weights.importing import file_stem

    folder = staged(root)  # refused before anything large is fetched
    wanted = folder.own_type if kind == ORIGINAL else kind
    name = model_name(root.absolute())
    file_name = f"{file_stem(name)}-{wanted.upper()}.gguf"
    tool = converter(tools, torch, pre)

    def make(out: Path) -> None:
        links = folder.link(out / "links")
        tool.convert(links, wanted, name, out / file_name, tools.progress)
        _describe(root, out / file_name, links, tool, tools)
        for left in ("links", "work"):
            shutil.rmtree(out / left, ignore_errors=True)

    key: dict[str, object] = {"recipe": 2, "files": folder.key(tools.store, tools.progress), "type": wanted}
    key |= {"tool": [tool.python.parents[2].name, tool.source.name, tool.answers.parent.name], "name": name}
    key |= {"pre": pre} if pre else {}
    made = tools.store.get_or_make("converted", key, make)
    return _load(made, str(root), made / file_name)


def _describe(root: Path, gguf: Path, links: Path, tool: Converter, tools: Tools) -> None:
    from sampan.spec import codec
    from sampan.weights.converter.outside import origin_of
    from sampan.weights.describe import describe
    from sampan.weights.digest import sha256_of
    from sampan.weights.gguf_checks import architecture_of
    from sampan.weights.gguf_header import read_header
    from sampan.weights.reference.tokenizer import NoReferenceError

    header = read_header(gguf)
    sha256 = sha256_of(gguf, tools.store, tools.progress)
    info = describe(header, architecture_of(header), origin_of(root, sha256))
    work = gguf.parent / "work"
    work.mkdir()
    golden: GoldenSet | None = None
    try:
        golden = tool.golden(links, info, work, tools.progress)
    except NoReferenceError as reason:
        info = replace(info, golden_note=str(reason.args[0]))
    (gguf.parent / "weights.json").write_text(codec.to_json(info), encoding="utf-8")
    if golden:
        (gguf.parent / "golden.json").write_text(codec.to_json(golden), encoding="utf-8")


def _load(made: Path, source: str, gguf: Path) -> WeightsInfo:
    from sampan.spec import codec

    golden = made / "golden.json"
    info = codec.load(WeightsInfo, made / "weights.json")
    path = str(golden) if golden.is_file() else None
    return replace(info, source=source, path=str(gguf), file_name=gguf.name, golden_path=path)
