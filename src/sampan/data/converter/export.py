"""Runs in the converter's own environment: an encoder as ONNX, then the vectors that ONNX Runtime makes with it.

    python export.py REQUEST.json REPLY.json

Request: folder, out, texts, pooling, opset, largest (bytes of numbers in the graph, else beside it).
Reply: inputs, output, pad_token, architecture, checked_by, vectors (of unit length).
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import torch
from tokenizers import Tokenizer
from transformers import AutoModel, AutoTokenizer

OUTPUT, GRAPH, NUMBERS = "last_hidden_state", "model.onnx", "model.onnx.data"
_BATCH = 4  # texts of different lengths together: so padding and open dimensions are proved, too


class States(torch.nn.Module):
    """The encoder with its inputs in the order of ``names``."""

    def __init__(self, model: Any, names: list[str]) -> None:
        super().__init__()
        self.model, self.names = model, names

    def forward(self, *inputs: torch.Tensor) -> Any:
        return self.model(**dict(zip(self.names, inputs, strict=True))).last_hidden_state


def write_tokenizer(folder: Path, out: Path, tokenizer: Any) -> None:
    """The folder's own, without the padding and cutting that it may ask for."""
    path = folder / "tokenizer.json"
    own = Tokenizer.from_file(str(path)) if path.is_file() else tokenizer.backend_tokenizer
    own.no_padding()
    own.no_truncation()
    own.save(str(out / "tokenizer.json"))


def export(model: Any, tokenizer: Any, request: dict[str, Any]) -> list[str]:
    """Write the graph; the names of its inputs."""
    example = tokenizer(["one", "two and three more words"], padding=True, return_tensors="pt")
    names = [name for name in ("input_ids", "attention_mask", "token_type_ids") if name in example]
    out = Path(request["out"])
    with tempfile.TemporaryDirectory(dir=out) as work:  # beyond 2 GB the exporter writes a file for each tensor
        torch.onnx.export(
            States(model, names),
            tuple(example[name] for name in names),
            str(Path(work) / GRAPH),
            input_names=names,
            output_names=[OUTPUT],
            dynamic_axes={name: {0: "batch", 1: "tokens"} for name in (*names, OUTPUT)},
            opset_version=request["opset"],
            dynamo=False,
        )
        graph = onnx.load(str(Path(work) / GRAPH))
    size = sum(tensor.numel() * tensor.element_size() for tensor in model.parameters())
    beside = {"save_as_external_data": True, "location": NUMBERS} if size > request["largest"] else {}
    onnx.save_model(graph, str(out / GRAPH), **beside)
    return names


def vectors(request: dict[str, Any], tokenizer: Any, names: list[str]) -> list[list[float]]:
    """What the written file answers."""
    session = onnxruntime.InferenceSession(str(Path(request["out"]) / GRAPH), providers=["CPUExecutionProvider"])
    found: list[list[float]] = []
    for begin in range(0, len(request["texts"]), _BATCH):
        batch = tokenizer(request["texts"][begin : begin + _BATCH], padding=True, return_tensors="np")
        states = session.run([OUTPUT], {name: batch[name].astype(np.int64) for name in names})[0]
        mask = batch["attention_mask"].astype(np.float32)
        found += [
            unit(one, pooled.astype(bool), request["pooling"]) for one, pooled in zip(states, mask, strict=True)
        ]
    return found


def unit(states: Any, mask: Any, pooling: str) -> list[float]:
    """The pooled vector of the states of one text, of length one."""
    own = states[mask]
    vector = {"mean": own.mean(0), "cls": own[0], "last": own[-1]}[pooling]
    return [float(number) for number in vector / np.linalg.norm(vector)]


def main() -> None:
    """Read the request, write the graph and the reply."""
    request = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    folder = request["folder"]
    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True, padding_side="right")
    model = AutoModel.from_pretrained(
        folder, dtype=torch.float32, local_files_only=True, attn_implementation="eager", add_pooling_layer=False
    ).eval()
    with torch.inference_mode():
        names = export(model, tokenizer, request)
    write_tokenizer(Path(folder), Path(request["out"]), tokenizer)
    reply = {
        "inputs": names,
        "output": OUTPUT,
        "pad_token": tokenizer.pad_token_id,
        "architecture": type(model).__name__,
        "checked_by": f"onnxruntime {onnxruntime.__version__}",
        "vectors": vectors(request, tokenizer, names),
    }
    Path(sys.argv[2]).write_text(json.dumps(reply), encoding="utf-8")


if __name__ == "__main__":
    main()
