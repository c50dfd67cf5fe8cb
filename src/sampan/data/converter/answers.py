"""Runs in the converter's own environment: what the unquantized model answers, by transformers, in float32.

    python answers.py REQUEST.json ANSWERS.json

Request: folder, task (embedding, chat or rerank), pooling, texts, passage, limit (tokens), prompts, steps.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModel, AutoModelForCausalLM, AutoModelForSequenceClassification, AutoTokenizer


def cut(tokenizer: Any, passage: str, limit: int) -> str:
    """The passage, repeated, in as many words as ``limit`` tokens take."""
    words = (passage + " ").split(" ") * (1 + limit // max(1, len(passage) // 8))
    low, high = 1, len(words)
    while low < high:
        middle = (low + high + 1) // 2
        fits = len(tokenizer(" ".join(words[:middle]))["input_ids"]) <= limit
        low, high = (middle, high) if fits else (low, middle - 1)
    return " ".join(words[:low]).strip()


def embeddings(request: dict[str, Any], tokenizer: Any) -> list[dict[str, Any]]:
    """Each text's unit vector."""
    model = AutoModel.from_pretrained(request["folder"], dtype=torch.float32, local_files_only=True).eval()
    short = [text for text in request["texts"] if len(tokenizer(text)["input_ids"]) <= request["limit"]]
    found = []
    for text in [*short, cut(tokenizer, request["passage"], request["limit"])]:
        states = model(**tokenizer(text, return_tensors="pt")).last_hidden_state[0]
        vector = {"mean": states.mean(0), "cls": states[0], "last": states[-1]}[request["pooling"]]
        unit = torch.nn.functional.normalize(vector, dim=0)
        found.append({"text": text, "vector": [round(float(number), 7) for number in unit]})
    return found


def chats(request: dict[str, Any], tokenizer: Any) -> list[dict[str, Any]]:
    """Greedy steps of each prompt: the text after each, and by how much the best logit leads the second."""
    model = AutoModelForCausalLM.from_pretrained(request["folder"], dtype=torch.float32, local_files_only=True).eval()
    ends = model.generation_config.eos_token_id
    stop = set(ends if isinstance(ends, list) else [ends]) | {tokenizer.eos_token_id}
    template = tokenizer.chat_template or ""
    found = []
    for chat in request["prompts"]:
        if chat["needs"] not in template:
            continue
        ids = tokenizer(chat["prompt"])["input_ids"]
        made: list[int] = []
        texts, margins = [""], []
        while len(made) < request["steps"]:
            top = torch.topk(model(torch.tensor([ids + made])).logits[0, -1].float(), 2)
            token = int(top.indices[0])
            if token in stop:
                break
            made.append(token)
            margins.append(float(top.values[0] - top.values[1]))
            texts.append(tokenizer.decode(made, skip_special_tokens=False, clean_up_tokenization_spaces=False))
        found.append({"prompt": chat["prompt"], "texts": texts, "margins": margins})
    return found


def ranks(request: dict[str, Any], tokenizer: Any) -> list[dict[str, Any]]:
    """Each text's score beside the first one as the query."""
    folder = request["folder"]
    model = AutoModelForSequenceClassification.from_pretrained(folder, dtype=torch.float32, local_files_only=True)
    model.eval()
    query = request["texts"][0]
    found = []
    for text in request["texts"]:
        asked = tokenizer(query, text, return_tensors="pt")
        if asked["input_ids"].shape[1] <= request["limit"]:
            score = round(float(model(**asked).logits[0, 0]), 6)
            found.append({"query": query, "document": text, "score": score})
    return found


def main() -> None:
    """Read the request, write the answers."""
    request = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    torch.manual_seed(0)
    tokenizer = AutoTokenizer.from_pretrained(request["folder"], local_files_only=True)
    with torch.inference_mode():
        made = {"embedding": embeddings, "chat": chats, "rerank": ranks}[request["task"]](request, tokenizer)
    Path(sys.argv[2]).write_text(json.dumps(made, ensure_ascii=False), encoding="utf-8")


if __name__ == "__main__":
    main()
