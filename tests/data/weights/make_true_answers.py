"""Makes tests/data/weights/true_answers.json. Needs torch, sentence-transformers, accelerate and gguf in a virtual
environment of its own, and the two ready models as `sampan` keeps them:

    python tests/data/weights/make_true_answers.py FOLDER_OF_MINILM FILE_OF_SMOLLM2
"""

from __future__ import annotations

import json
import sys
from importlib.metadata import version
from pathlib import Path

import torch
from sentence_transformers import SentenceTransformer
from transformers import AutoModelForCausalLM, AutoTokenizer

TEXTS = [
    "How do I reset my password?",
    "今天天气怎么样？",
    "Well done! 🎉🚀 See you tomorrow 👋",
    "ＡＢＣ　１２３：全角字符，半角 abc 123",
    "。",
    "Ça coûte 25 €, naïve café — déjà vu; Привет, мир!",
    "The river is wide and the boat is small. " * 20,
]
PROMPTS = [
    "1, 2, 3, 4, 5, 6, 7, 8,",
    "The capital of France is Paris. The capital of Germany is",
    "<|im_start|>user\nWhat is the capital of Japan?<|im_end|>\n<|im_start|>assistant\n",
]

folder, gguf = Path(sys.argv[1]), Path(sys.argv[2])
encoder = SentenceTransformer(str(folder), device="cpu")
vectors = encoder.encode(TEXTS, normalize_embeddings=True, batch_size=1)
tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
decoder = AutoModelForCausalLM.from_pretrained(gguf.parent, gguf_file=gguf.name, dtype=torch.float32)
chats = []
for prompt in PROMPTS:
    ids = tokenizer(prompt, return_tensors="pt")["input_ids"]
    made = decoder.generate(ids, max_new_tokens=12, do_sample=False)[0][ids.shape[1] :]
    chats.append({"prompt": prompt, "ids": ids[0].tolist(), "tokens": made.tolist()})
answers = {
    "made_with": {name: version(name) for name in ("torch", "transformers", "sentence-transformers")},
    "embeddings": [
        {"text": text, "vector": [round(float(x), 5) for x in vector]}
        for text, vector in zip(TEXTS, vectors, strict=True)
    ],
    "chats": chats,
}
out = Path(__file__).parent / "true_answers.json"
out.write_text(json.dumps(answers, ensure_ascii=False) + "\n", encoding="utf-8")
