"""fastembed (ONNX Runtime) behind FastAPI, as its users write it. In an environment of its own: MODEL, THREADS."""

from __future__ import annotations

import os

from fastapi import FastAPI
from fastembed import TextEmbedding
from fastembed.common.model_description import ModelSource, PoolingType
from pydantic import BaseModel

TextEmbedding.add_custom_model(
    model="local",
    pooling=PoolingType.MEAN,
    normalization=True,
    sources=ModelSource(hf="local"),
    dim=384,
    model_file="model.onnx",
)
model = TextEmbedding("local", specific_model_path=os.environ["MODEL"], threads=int(os.environ["THREADS"]))
app = FastAPI()


class Asked(BaseModel):
    """OpenAI's request."""

    input: str | list[str]


@app.post("/v1/embeddings")
def embeddings(asked: Asked) -> dict[str, object]:
    """OpenAI's answer."""
    texts = [asked.input] if isinstance(asked.input, str) else asked.input
    data = [
        {"object": "embedding", "index": index, "embedding": vector.tolist()}
        for index, vector in enumerate(model.embed(texts))
    ]
    return {"object": "list", "data": data}
