"""Makes tests/data/weights/tiny_truth.json. Needs torch and transformers, in a virtual environment of its own:

PYTHONPATH=. python tests/data/weights/make_tiny_truth.py
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import torch
from tests.fakes import tiny_models
from transformers import BertModel, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast, XLMRobertaModel

TEXTS = ["the boat carries cargo", "The boats, to the other shore! 今天 1212", "café?"]
OUT = Path(__file__).parent / "tiny_truth.json"


def encoder(root: Path, kind: type, pooling: str) -> list[dict[str, object]]:
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(root / "tokenizer.json"))
    tokenizer.backend_tokenizer.no_truncation()
    model = kind.from_pretrained(root, dtype=torch.float32).eval()
    found = []
    for text in TEXTS:
        ids = tokenizer.backend_tokenizer.encode(text).ids
        with torch.no_grad():
            states = model(torch.tensor([ids])).last_hidden_state[0]
        vector = {"mean": states.mean(0), "cls": states[0], "last": states[-1]}[pooling]
        unit = torch.nn.functional.normalize(vector, dim=0)
        found.append({"text": text, "ids": ids, "vector": [round(float(x), 6) for x in unit]})
    return found


def decoder() -> dict[str, object]:
    config = LlamaConfig(
        vocab_size=tiny_models.LLAMA_VOCABULARY,
        hidden_size=32,
        intermediate_size=40,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        rms_norm_eps=1e-5,
        tie_word_embeddings=True,
        max_position_embeddings=64,
        bos_token_id=None,
        eos_token_id=2,
        pad_token_id=None,
    )
    model = LlamaForCausalLM(config).eval()
    tensors = {name: torch.tensor(value) for name, value in tiny_models.llama_tensors().items()}
    print(model.load_state_dict(tensors, strict=False))
    prompt = [10, 77, 200, 31, 5]
    ids, margins = list(prompt), []
    with torch.no_grad():
        for _ in range(12):
            logits = model(torch.tensor([ids])).logits[0, -1]
            top = torch.topk(logits, 2)
            margins.append(round(float(top.values[0] - top.values[1]), 4))
            ids.append(int(top.indices[0]))
    return {"prompt": prompt, "tokens": ids[len(prompt) :], "margins": margins}


with tempfile.TemporaryDirectory() as name:
    root = Path(name)
    bert, roberta = tiny_models.bert_folder(root / "bert"), tiny_models.xlm_roberta_folder(root / "roberta")
    truth = {
        "bert": encoder(bert, BertModel, "mean"),
        "bert-cls": encoder(bert, BertModel, "cls"),
        "xlm-roberta": encoder(roberta, XLMRobertaModel, "mean"),
        "llama": decoder(),
    }
OUT.write_text(json.dumps(truth, ensure_ascii=False) + "\n", encoding="utf-8")
