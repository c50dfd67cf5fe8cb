"""Import of a model folder: read it, choose the quantization, write the GGUF, make the golden set."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from sampan.errors import BadInputError
from sampan.i18n import text
from sampan.spec.ports import Progress, Store
from sampan.spec.weights import GoldenSet
from sampan.weights.convert import write_gguf
from sampan.weights.describe import Origin
from sampan.weights.digest import sha256_of
from sampan.weights.files import read_text
from sampan.weights.folder import ModelFolder, read_folder
from sampan.weights.folder_tensors import FolderTensors, open_tensors
from sampan.weights.gate.facts import default_bounds, tolerance
from sampan.weights.golden import Encoder, embedding_set
from sampan.weights.reference.bert import BertShape
from sampan.weights.reference.tokenizer import from_file, refusals
from sampan.weights.tensors import tensor_files
from sampan.weights.vocabulary import read_vocabulary

AUTO = "auto"
_REFERENCE = "BERT encoder in numpy, float32, from the unquantized safetensors; tokens from tokenizer.json"
_SMALLEST_FIRST = ("q8_0", "f16")
_DESCRIPTIONS = (
    "config.json",
    "modules.json",
    "sentence_bert_config.json",
    "config_sentence_transformers.json",
    "tokenizer.json",
    "README.md",
    "*/config.json",
    "*/sentence_bert_config.json",
    "*/tokenizer.json",
)


@dataclass(frozen=True)
class Imported:
    """What an import left in its folder."""

    folder: ModelFolder
    name: str
    gguf: Path
    golden: GoldenSet

    def origin(self, source: str, sha256: str) -> Origin:
        """What the GGUF's header cannot tell."""
        return Origin(
            name=self.name,
            source=source,
            kind="sentence-transformers" if self.folder.sentence_transformers else "huggingface",
            sha256=sha256,
            normalize=self.folder.normalize,
            longest_text=self.folder.longest_text,
            query_prefix=self.folder.query_prefix,
            passage_prefix=self.folder.passage_prefix,
        )


def folder_key(root: Path, store: Store, progress: Progress) -> dict[str, object]:
    """What the result of an import depends on: the digests of the files that are read. Raises BadInputError."""
    model = read_folder(root).model
    small = sorted({path for pattern in _DESCRIPTIONS for path in root.glob(pattern) if path.is_file()})
    texts = {str(path.relative_to(root)): hashlib.sha256(read_text(path).encode()).hexdigest() for path in small}
    return {"files": texts, "tensors": [sha256_of(path, store, progress) for path in tensor_files(model)]}


def import_folder(root: Path, quantization: str, name: str, out: Path, *, progress: Progress) -> Imported:
    """Write ``out/<name>-<QUANTIZATION>.gguf`` and make its golden set. Raises BadInputError."""
    folder = read_folder(root)
    tensors = open_tensors(folder)  # first: it proves the sizes that config.json claims
    vocabulary = read_vocabulary(folder)
    encoder = _encoder(folder, tensors)
    with progress.task(text("weights.step.golden", name=name)), refusals(folder.model):
        golden = embedding_set(encoder, name, _REFERENCE)
        chosen = _choose(encoder, tensors, golden) if quantization == AUTO else quantization
    golden = replace(golden, minimum_cosine=tolerance().of(chosen))
    gguf = out / f"{file_stem(name)}-{chosen.upper()}.gguf"
    write_gguf(tensors, vocabulary, chosen, name, gguf, progress=progress)
    return Imported(folder, name, gguf, golden)


def folder_truth(root: Path, name: str, *, progress: Progress) -> GoldenSet:
    """What the folder's model answers, unquantized. Raises BadInputError."""
    folder = read_folder(root)
    encoder = _encoder(folder, open_tensors(folder))
    with progress.task(text("weights.step.golden", name=name)), refusals(folder.model):
        return embedding_set(encoder, name, _REFERENCE)


def file_stem(name: str) -> str:
    """A model's name as the beginning of a file name: letters that every file system takes."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.") or "model"


def _encoder(folder: ModelFolder, tensors: FolderTensors) -> Encoder:
    shape = BertShape(folder.layers, folder.heads, folder.epsilon, folder.pooling)
    longest = min(folder.positions, folder.longest_text or folder.positions)
    return Encoder(from_file(folder.model / "tokenizer.json"), tensors, shape, longest)


def _choose(encoder: Encoder, tensors: FolderTensors, golden: GoldenSet) -> str:
    """The smallest quantization that keeps the gate's bound, by measuring each on the golden texts."""
    bound = default_bounds().min_cosine
    for quantization in _SMALLEST_FIRST:
        try:
            if worst_cosine(encoder.over(tensors.with_rounding(quantization)), golden) >= bound:
                return quantization
        except BadInputError as error:
            if error.key != "weights.f16_overflow":  # numbers beyond float16: the next larger form holds them
                raise
    return "f32"


def worst_cosine(encoder: Encoder, golden: GoldenSet) -> float:
    """The least cosine of the encoder's vectors with the golden ones."""
    vectors = encoder.vectors([item.text for item in golden.embeddings])
    pairs = zip(vectors, golden.embeddings, strict=True)
    return min(float(np.dot(vector, np.asarray(item.vector))) for vector, item in pairs)
