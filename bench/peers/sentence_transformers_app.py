"""sentence-transformers behind FastAPI, as its users write it. Runs in an environment of its own: MODEL, THREADS."""

from __future__ import annotations

import os

import torch
from fastapi import FastAPI
from pydantic import BaseModel
from sentence_transformers import SentenceTransformer

torch.set_num_threads(int(os.environ["THREADS"]))
model = SentenceTransformer(os.environ["MODEL"], device="cpu")
app = FastAPI()


class Asked(BaseModel):
    """OpenAI's request."""

    input: str | list[str]


@app.post("/v1/embeddings")
def embeddings(asked: Asked) -> dict[str, object]:
    """OpenAI's answer. Not ``async``: FastAPI runs it in its pool of threads, and the server stays responsive."""
    texts = [asked.input] if isinstance(asked.input, str) else asked.input
    vectors = model.encode(texts, normalize_embeddings=True).tolist()
    data = [{"object": "embedding", "index": index, "embedding": vector} for index, vector in enumerate(vectors)]
    return {"object": "list", "data": data}
