"""Makes tests/data/weights/classes: one tiny random model a class as GGUF, by llama.cpp's converter, and what
transformers computes with the same numbers.

    python tests/data/weights/make_class_truth.py SOURCE_OF_LLAMA_CPP

Needs torch, transformers 4.57 and sentencepiece in an environment of its own. A tiny vocabulary is none that the
converter recognises, so for byte-level BPE its name is told (the last column of CLASSES); everything else is the
converter's own way.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import sentencepiece
import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast, XLMRobertaTokenizerFast

ROOT = Path(sys.argv[1])
sys.path[:0] = [str(ROOT), str(ROOT / "gguf-py")]
import conversion  # noqa: E402
import gguf  # noqa: E402

OUT = Path(__file__).parent / "classes"
if sys.version_info >= (3, 11):
    import tomllib
GATE = Path(__file__).parents[3] / "src/sampan/data/gate_texts.toml"
CORPUS = [text for group in tomllib.loads(GATE.read_text("utf-8"))["groups"] for text in group]
TEXTS = [
    "The server cannot reach the database",
    "服务器连不上数据库",
    "ＡＢＣ　１２３：全角字符，半角 abc 123",
    "①②③ ﬁne ½ ㎡ ﾊﾝｶｸ Ⅳ",
    "  two   blanks  ",
    "Ça coûte 25 €, naïve café — déjà vu",
    "。",
    "good 🎉 day",
]
PAIRS = [("How do I reset my password?", text) for text in TEXTS[:6]]
PROMPT_TEXT = "The server cannot reach 数据库"
STEPS = 4
SPECIAL = 4
SMALL = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 130,
}
DECODER = {**SMALL, "num_key_value_heads": 2, "head_dim": 8, "max_position_embeddings": 128}


def unigram(root: Path) -> int:
    """A real SentencePiece model with its NFKC normalizer, as XLM-R has one. Gives the vocabulary's size."""
    text = root / "corpus.txt"
    text.write_text("\n".join(CORPUS), "utf-8")
    sentencepiece.SentencePieceTrainer.train(
        input=str(text), model_prefix=str(root / "sentencepiece.bpe"), vocab_size=900, model_type="unigram",
        character_coverage=1.0, normalization_rule_name="nmt_nfkc", hard_vocab_limit=False, num_threads=1,
    )  # fmt: skip
    text.unlink()
    (root / "sentencepiece.bpe.vocab").unlink()
    tokenizer = XLMRobertaTokenizerFast(str(root / "sentencepiece.bpe.model"))
    tokenizer.save_pretrained(root)
    return len(tokenizer)


def sentence_bpe(root: Path, bos: int) -> int:
    """A SentencePiece model of bytes and merges, as Llama 2, Gemma and ERNIE have one."""
    text = root / "corpus.txt"
    text.write_text("\n".join(CORPUS), "utf-8")
    ids = (
        {"unk_id": 0, "bos_id": 1, "eos_id": 2, "pad_id": -1}
        if bos == 1
        else {"pad_id": 0, "eos_id": 1, "bos_id": 2, "unk_id": 3}
    )
    sentencepiece.SentencePieceTrainer.train(
        input=str(text), model_prefix=str(root / "tokenizer"), vocab_size=700, model_type="bpe",
        character_coverage=0.98, byte_fallback=True, normalization_rule_name="identity", num_threads=1,
        add_dummy_prefix=bos == 1, remove_extra_whitespaces=False, hard_vocab_limit=False, **ids,
    )  # fmt: skip
    text.unlink()
    (root / "tokenizer.vocab").unlink()
    return sentencepiece.SentencePieceProcessor(model_file=str(root / "tokenizer.model")).vocab_size()


def byte_bpe(root: Path, ended: bool = False) -> int:
    """A byte-level BPE, as Qwen and Llama 3 have one."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=500, special_tokens=["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()), show_progress=False,
    )  # fmt: skip
    tokenizer.train_from_iterator(CORPUS, trainer)
    if ended:  # Qwen3-Embedding ends each text with its end token
        tokenizer.post_processor = processors.TemplateProcessing(
            single="$A <|endoftext|>", special_tokens=[("<|endoftext|>", 0)]
        )
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|endoftext|>", pad_token="<|endoftext|>")
    fast.save_pretrained(root)
    return len(fast)


def sentence_transformers(root: Path, pooling: str) -> None:
    kinds = [("Transformer", ""), ("Pooling", "1_Pooling"), ("Normalize", "2_Normalize")]
    modules = [
        {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for i, (kind, path) in enumerate(kinds)
    ]
    (root / "modules.json").write_text(json.dumps(modules))
    (root / "1_Pooling").mkdir()
    modes = ("cls_token", "mean_tokens", "max_tokens", "lasttoken")
    config = {"word_embedding_dimension": 32, **{f"pooling_mode_{mode}": mode == pooling for mode in modes}}
    (root / "1_Pooling" / "config.json").write_text(json.dumps(config))


def randomised(model: torch.nn.Module) -> torch.nn.Module:
    """Weights large enough that attention is not flat, norms not 1."""
    state = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for name, tensor in sorted(model.named_parameters()):
            noise = torch.randn(tensor.shape, generator=state)
            gemma_norm = "norm" in name and "emma" in type(model).__name__
            around = 0.0 if tensor.dim() > 1 or gemma_norm or name.endswith("bias") else 1.0
            tensor.copy_(around + noise * (0.15 if tensor.dim() > 1 else 0.1))
    return model.eval()


def xlm_roberta(root: Path, kind: type, **config: object) -> tuple[torch.nn.Module, object]:
    size = unigram(root)
    made = transformers.XLMRobertaConfig(
        **{**SMALL, "vocab_size": size, "type_vocab_size": 1, "layer_norm_eps": 1e-5, **config}
    )
    model = randomised(kind(made))
    model.save_pretrained(root)
    return model, XLMRobertaTokenizerFast.from_pretrained(root)


def vectors(model, tokenizer, pooling: str) -> list[dict]:  # type: ignore[no-untyped-def]
    found = []
    for text in TEXTS:
        ids = tokenizer(text)["input_ids"]
        with torch.no_grad():
            states = model(torch.tensor([ids])).last_hidden_state[0]
        vector = {"mean": states.mean(0), "cls": states[0], "last": states[-1]}[pooling]
        unit = torch.nn.functional.normalize(vector, dim=0)
        found.append({"text": text, "ids": ids, "vector": [round(float(x), 6) for x in unit]})
    return found


def scores(model, tokenizer) -> list[dict]:  # type: ignore[no-untyped-def]
    found = []
    for query, document in PAIRS:
        with torch.no_grad():
            logits = model(**tokenizer(query, document, return_tensors="pt")).logits
        found.append({"query": query, "document": document, "score": round(float(logits[0, 0]), 6)})
    return found


def greedy(model, ids: list[int]) -> list[dict]:  # type: ignore[no-untyped-def]
    """Each step's token and the whole distribution's logarithm."""
    found, prompt = [], list(ids)
    for _ in range(STEPS):
        with torch.no_grad():
            logits = model(torch.tensor([prompt])).logits[0, -1].float()
        logarithms = torch.log_softmax(logits, -1)
        token = int(logits.argmax())
        found.append({"token": token, "logprobs": [round(float(x), 4) for x in logarithms]})
        prompt.append(token)
    return found


def _shown(root: Path) -> Callable[[int], bool]:
    """Whether the engine tells a token's distribution: not of one that ends the text or is half a character."""
    if (root / "tokenizer.model").is_file():
        pieces = sentencepiece.SentencePieceProcessor(model_file=str(root / "tokenizer.model"))
        return lambda token: not pieces.is_byte(token) and not pieces.is_control(token) and token > SPECIAL
    fast = Tokenizer.from_file(str(root / "tokenizer.json"))
    return lambda token: token > SPECIAL and "\ufffd" not in fast.decode([token])


def convert(root: Path, out: Path, pre: str | None) -> None:
    hparams = conversion.ModelBase.load_hparams(root, False)
    kind = conversion.get_model_class(conversion.get_model_architecture(hparams, conversion.ModelType.TEXT))
    if pre:
        kind.get_vocab_base_pre = lambda _model, _tokenizer: pre
    with torch.inference_mode():
        kind(root, gguf.LlamaFileType.ALL_F32, out, model_name=out.stem).write()


def decoder(root: Path, config: object, kind: type, vocabulary: str, bos: int = 1) -> tuple[torch.nn.Module, object]:
    size = byte_bpe(root, vocabulary == "bpe-ended") if vocabulary.startswith("bpe") else sentence_bpe(root, bos)
    config.vocab_size = size  # type: ignore[attr-defined]
    model = randomised(kind(config))
    model.save_pretrained(root)
    return model, None


def embedding(name: str, root: Path) -> dict:
    if name.startswith("xlm-roberta"):
        model, tokenizer = xlm_roberta(root, transformers.XLMRobertaModel)
        sentence_transformers(root, "mean_tokens")
        both = {pooling: vectors(model, tokenizer, pooling) for pooling in ("mean", "cls")}
        return {"pooling": "mean", "embeddings": both["mean"], "cls": both["cls"]}
    config = transformers.Qwen3Config(**DECODER, rms_norm_eps=1e-6, tie_word_embeddings=True)
    model, _ = decoder(root, config, transformers.Qwen3ForCausalLM, "bpe-ended")
    sentence_transformers(root, "lasttoken")
    tokenizer = Tokenizer.from_file(str(root / "tokenizer.json"))
    whole = lambda text: {"input_ids": tokenizer.encode(text).ids}  # noqa: E731
    return {"pooling": "last", "embeddings": vectors(model.model, whole, "last")}


def chat(name: str, root: Path) -> dict:
    t = transformers
    plain = {**DECODER, "rms_norm_eps": 1e-5}
    made = {
        "llama": lambda: (
            t.LlamaConfig(**plain, rope_theta=10000.0, tie_word_embeddings=True, bos_token_id=0, eos_token_id=2),
            t.LlamaForCausalLM,
            "bpe",
            1,
        ),
        "llama-sentencepiece": lambda: (
            t.LlamaConfig(**plain, bos_token_id=1, eos_token_id=2),
            t.LlamaForCausalLM,
            "spm",
            1,
        ),
        "qwen3": lambda: (t.Qwen3Config(**plain, tie_word_embeddings=True), t.Qwen3ForCausalLM, "bpe", 1),
        "ernie4_5": lambda: (
            t.Ernie4_5Config(**plain, tie_word_embeddings=True, bos_token_id=1, eos_token_id=2),
            t.Ernie4_5ForCausalLM,
            "spm",
            1,
        ),
        "gemma2": lambda: (
            t.Gemma2Config(
                **plain,
                query_pre_attn_scalar=8,
                sliding_window=64,
                bos_token_id=2,
                eos_token_id=1,
                attn_implementation="eager",
            ),
            t.Gemma2ForCausalLM,
            "spm",
            2,
        ),
        "gemma3": lambda: (
            t.Gemma3TextConfig(
                **{**plain, "num_hidden_layers": 6},
                query_pre_attn_scalar=8,
                sliding_window=64,
                bos_token_id=2,
                eos_token_id=1,
                attn_implementation="eager",
            ),
            t.Gemma3ForCausalLM,
            "spm",
            2,
        ),
    }[name]()
    model, _ = decoder(root, *made)
    shown = _shown(root)
    for last in range(300, 400):
        ids = [*range(40, 60), 411, last]
        steps = greedy(model, ids)
        if all(shown(step["token"]) for step in steps):
            return {"prompt": ids, "steps": steps}
    raise SystemExit(f"{name} always ends")


CLASSES = {
    "xlm-roberta": None,
    "xlm-roberta-reranker": None,
    "qwen3-embedding": "qwen2",
    "llama": "smollm",
    "llama-sentencepiece": None,
    "qwen3": "qwen2",
    "ernie4_5": None,
    "gemma2": None,
    "gemma3": None,
}


def main() -> None:
    truth: dict[str, object] = {
        "made_with": {name: version(name) for name in ("torch", "transformers", "sentencepiece")}
    }
    OUT.mkdir(exist_ok=True)
    only = sys.argv[2:] or list(CLASSES)
    for name in only:
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            if name.endswith("reranker"):
                model, tokenizer = xlm_roberta(root, transformers.XLMRobertaForSequenceClassification, num_labels=1)
                truth[name] = {"pooling": "rank", "pairs": scores(model, tokenizer)}
            elif "embedding" in name or name.startswith("xlm"):
                truth[name] = embedding(name, root)
            else:
                truth[name] = chat(name, root)
            convert(root, OUT / f"{name}.gguf", CLASSES[name])
        print(name, (OUT / f"{name}.gguf").stat().st_size)
    (OUT / "truth.json").write_text(json.dumps(truth, ensure_ascii=False) + "\n", encoding="utf-8")


main()
