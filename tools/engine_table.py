"""Write what the pinned engine can load, read from its own source, to src/sampan/data/engine_*.toml.

.venv/bin/python tools/engine_table.py           (fetches the pinned sdist through the user's package index)
"""

from __future__ import annotations

import ast
import json
import re
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from sampan.build.pins import engine_pin
from sampan.edge.net import NetFetcher
from sampan.edge.progress import SilentProgress
from sampan.edge.store import DiskStore

DATA = Path(__file__).parents[1] / "src" / "sampan" / "data"
ENGINE, CONVERSION = "engine_architectures.toml", "engine_conversion.toml"
NOT_MODELS = {"clip", "(unknown)"}  # entries of the table that hold other entries' places
NOT_TOKENIZERS = {"test"}
ARCHITECTURES, VOCABULARY, TYPES = "src/llama-arch.cpp", "src/llama-vocab.cpp", "ggml/include/ggml.h"
CONSTANTS, BASE = "gguf-py/gguf/constants.py", "conversion/base.py"

Sources = Mapping[str, str]


def read_sources(archive: Path, top: str) -> dict[str, str]:
    """The texts that the tables are read from, by path below ``top``."""
    wanted = re.compile(
        rf"{re.escape(top)}/(conversion/\w+\.py|{'|'.join((ARCHITECTURES, VOCABULARY, TYPES, CONSTANTS))})"
    )
    found = {}
    with tarfile.open(archive) as tar:
        for member in tar:
            if wanted.fullmatch(member.name):
                stream = tar.extractfile(member)
                found[member.name.removeprefix(f"{top}/")] = stream.read().decode() if stream else ""
    return found


def architectures(sources: Sources) -> list[str]:
    """What ``general.architecture`` may be."""
    table = _between(sources[ARCHITECTURES], "LLM_ARCH_NAMES = {", "};")
    return [name for name in re.findall(r'"([^"]*)"', table) if name not in NOT_MODELS]


def tokenizers(sources: Sources) -> list[str]:
    """What ``tokenizer.ggml.model`` may be."""
    return sorted(set(re.findall(r'tokenizer_model == "([^"]+)"', sources[VOCABULARY])) - NOT_TOKENIZERS)


def pre_tokenizers(sources: Sources) -> list[str]:
    """What ``tokenizer.ggml.pre`` may be."""
    return sorted(set(re.findall(r'tokenizer_pre == "([^"]+)"', sources[VOCABULARY])))


def tensor_types(sources: Sources) -> list[int]:
    """The numbers of the tensor types, without those that were withdrawn (they stand there as comments)."""
    table = _between(sources[TYPES], "enum ggml_type {", "};")
    return [int(number) for number in re.findall(r"^\s*GGML_TYPE_(?!COUNT)\w+\s*=\s*(\d+)", table, re.MULTILINE)]


def classes(sources: Sources) -> dict[str, str]:
    """Hugging Face class -> architecture, as the converter registers text models."""
    known = _architecture_names(sources[CONSTANTS])
    found: dict[str, tuple[list[str], str | None, list[str]]] = {}
    for path, text in sorted(sources.items()):
        if path.startswith("conversion/"):
            found.update(_classes_of(ast.parse(text)))
    result = {}
    for name, (registered, _, _) in found.items():
        architecture = _inherited(name, found)
        if architecture in known and "MmprojModel" not in _ancestors(name, found):
            result.update(dict.fromkeys(registered, known[architecture]))
    return dict(sorted(result.items()))


def probes(sources: Sources) -> tuple[str, dict[str, str]]:
    """The text by which the converter knows a pre-tokenizer, and SHA-256 of its token ids as text -> name."""
    function = _between(sources[BASE], "def get_vocab_base_pre", "return res")
    text = ast.literal_eval(re.search(r"chktxt = (.*)", function)[1])  # type: ignore[index]
    pairs = re.findall(r'chkhsh == "([0-9a-f]{64})":.*?res = "([^"]+)"', function, re.DOTALL)
    return str(text), dict(pairs)


def render(sources: Sources, origin: str, package: str, version: str) -> dict[str, str]:
    """File name -> text of both files."""
    head = f"# Made by tools/engine_table.py; do not edit.\n# source: {origin}: "
    text, hashes = probes(sources)
    engine_part = [
        f"{head}{ARCHITECTURES} (LLM_ARCH_NAMES), {VOCABULARY} (llama_vocab::impl::load), {TYPES} (ggml_type).",
        'engine = "llama.cpp"',
        f"package = {json.dumps(package)}",
        f"version = {json.dumps(version)}",
        *_array("architectures", architectures(sources)),
        *_array("tokenizers", tokenizers(sources)),
        *_array("pre_tokenizers", pre_tokenizers(sources)),
        f"tensor_types = {tensor_types(sources)}",
    ]
    conversion_part = [
        f"{head}conversion/*.py: ModelBase.register and get_vocab_base_pre; {CONSTANTS}.",
        "# probe: its token ids, as Python writes a list, are hashed (SHA-256) to tell a pre-tokenizer.",
        f"probe = {json.dumps(text, ensure_ascii=False)}",
        "",
        "[classes]",
        *(f"{json.dumps(name)} = {json.dumps(value)}" for name, value in classes(sources).items()),
        "",
        "[pre_tokenizers]",
        *(f"{key} = {json.dumps(value)}" for key, value in hashes.items()),
    ]
    return {ENGINE: "\n".join(engine_part) + "\n", CONVERSION: "\n".join(conversion_part) + "\n"}


def pinned() -> dict[str, str]:
    """Both files' texts for the engine that this version pins. Raises NetworkError where it cannot be had."""
    pin = engine_pin()
    store = DiskStore()
    archive = NetFetcher(store, SilentProgress()).pypi(pin.requirement, file_name=pin.file_name, sha256=pin.sha256)
    package, _, version = pin.requirement.partition("==")
    return render(read_sources(archive, pin.top), f"{package} {version} (sdist), {pin.top}", package, version)


def _between(text: str, begin: str, end: str) -> str:
    return text.partition(begin)[2].partition(end)[0]


def _array(name: str, values: Iterable[str]) -> Iterator[str]:
    yield f"{name} = ["
    yield from (f"  {json.dumps(value)}," for value in values)
    yield "]"


def _architecture_names(constants: str) -> dict[str, str]:
    table = _between(constants, "MODEL_ARCH_NAMES: dict[MODEL_ARCH, str] = {", "\n}")
    return dict(re.findall(r'MODEL_ARCH\.(\w+):\s*"([^"]+)"', table))


def _classes_of(tree: ast.Module) -> Iterator[tuple[str, tuple[list[str], str | None, list[str]]]]:
    """(class, (registered names, its own architecture, bases)) of a module."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            bases = [base.id for base in node.bases if isinstance(base, ast.Name)]
            yield node.name, (_registered(node), _own_architecture(node), bases)


def _registered(node: ast.ClassDef) -> list[str]:
    calls = [
        call
        for call in node.decorator_list
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "ModelBase.register"
    ]
    return [
        word.value
        for call in calls
        for word in call.args
        if isinstance(word, ast.Constant) and isinstance(word.value, str)
    ]


def _own_architecture(node: ast.ClassDef) -> str | None:
    for line in node.body:
        if isinstance(line, ast.Assign) and ast.unparse(line.targets[0]) == "model_arch":
            return ast.unparse(line.value).rpartition(".")[2]
    return None


def _ancestors(name: str, found: Mapping[str, tuple[list[str], str | None, list[str]]]) -> list[str]:
    """The class and what it inherits from, nearest first."""
    order, left = [], [name]
    while left:
        order.append(left.pop(0))
        left.extend(found[order[-1]][2] if order[-1] in found else [])
    return order


def _inherited(name: str, found: Mapping[str, tuple[list[str], str | None, list[str]]]) -> str | None:
    own = (found[each][1] for each in _ancestors(name, found) if each in found)
    return next((value for value in own if value), None)


if __name__ == "__main__":
    for file_name, content in pinned().items():
        (DATA / file_name).write_text(content, encoding="utf-8")
