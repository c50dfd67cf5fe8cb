"""A BERT or XLM-R folder as one GGUF file of architecture ``bert``, written with the ``gguf`` library; no PyTorch.

Metadata and names of tensors are what llama.cpp's converter writes; see docs/adr/0005-import-without-pytorch.md.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from gguf import GGUFWriter
from gguf.constants import GGML_QUANT_VERSION, GGUFType, PoolingType

from sampan.i18n import text
from sampan.spec.ports import Progress
from sampan.weights.folder import ModelFolder
from sampan.weights.folder_tensors import FolderTensors
from sampan.weights.quantize import file_type, stored_bytes, tensor_type
from sampan.weights.vocabulary import Vocabulary

# Keys that release 0.19 of the library has no method for.
_LOWERCASE, _STRIP_ACCENTS = "tokenizer.ggml.normalizer.lowercase", "tokenizer.ggml.normalizer.strip_accents"
_POOLINGS = {"mean": PoolingType.MEAN, "cls": PoolingType.CLS, "last": PoolingType.LAST}


def write_gguf(
    tensors: FolderTensors, vocabulary: Vocabulary, quantization: str, name: str, out: Path, *, progress: Progress
) -> None:
    """Write the model to ``out``. The same folder gives the same bytes. Raises BadInputError."""
    writer = GGUFWriter(out, "bert")
    _describe(writer, tensors.folder, name, quantization)
    _add_vocabulary(writer, vocabulary, tensors.folder)
    kinds = {tensor: tensor_type(tensor, tensors.shape(tensor), quantization) for tensor in tensors.names()}
    for tensor, kind in kinds.items():
        shape = tensors.shape(tensor)
        writer.add_tensor_info(tensor, shape, np.dtype(np.float32), stored_bytes(shape, kind), raw_dtype=kind)
    try:
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_ti_data_to_file()
        with progress.task(text("weights.step.convert", name=name), len(kinds)) as task:
            for tensor in kinds:
                writer.write_tensor_data(tensors.encoded(tensor, quantization))
                task.advance()
    finally:
        writer.close()


def _describe(writer: GGUFWriter, folder: ModelFolder, name: str, quantization: str) -> None:
    writer.add_type(GGUFType.MODEL)
    writer.add_name(name)
    if folder.licence:
        writer.add_license(folder.licence)
    writer.add_block_count(folder.layers)
    writer.add_context_length(folder.positions)
    writer.add_embedding_length(folder.width)
    writer.add_feed_forward_length(folder.feed_forward)
    writer.add_head_count(folder.heads)
    writer.add_layer_norm_eps(folder.epsilon)
    writer.add_file_type(file_type(quantization))
    writer.add_causal_attention(False)
    writer.add_pooling_type(_POOLINGS[folder.pooling])
    writer.add_quantization_version(GGML_QUANT_VERSION)


def _add_vocabulary(writer: GGUFWriter, vocabulary: Vocabulary, folder: ModelFolder) -> None:
    writer.add_tokenizer_model(vocabulary.model)
    writer.add_tokenizer_pre("default")  # the engine does not look at it for these two models
    writer.add_token_list(list(vocabulary.tokens))
    writer.add_token_types(list(vocabulary.types))
    writer.add_token_type_count(folder.token_types)
    if vocabulary.model == "bert":
        writer.add_bool(_LOWERCASE, vocabulary.lowercase)
        writer.add_bool(_STRIP_ACCENTS, vocabulary.strip_accents)
    else:
        writer.add_token_scores(list(vocabulary.scores))
        writer.add_add_space_prefix(True)
        writer.add_remove_extra_whitespaces(vocabulary.merge_spaces)
        if vocabulary.charsmap:
            writer.add_precompiled_charsmap(vocabulary.charsmap)
    for role, number in vocabulary.special.items():
        getattr(writer, f"add_{role}_token_id")(number)
    writer.add_add_bos_token(True)
    writer.add_add_eos_token(True)
    writer.add_add_sep_token(vocabulary.model == "t5")  # between two texts XLM-R has two separators, BERT one
