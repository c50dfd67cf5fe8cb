"""Running the converter, and asking transformers for the answers that a golden set holds."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sampan.errors import BadInputError, BuildError
from sampan.i18n import text
from sampan.spec.ports import Progress, Runner
from sampan.spec.weights import GoldenChat, GoldenEmbedding, GoldenPair, GoldenSet, WeightsInfo
from sampan.weights.facts import golden_texts
from sampan.weights.files import read_object
from sampan.weights.gate.facts import tolerance
from sampan.weights.gguf_checks import architecture_of
from sampan.weights.gguf_header import read_header
from sampan.weights.golden import CLEAR_MARGIN, SHORTEST_PREFIX
from sampan.weights.reference.tokenizer import NoReferenceError

TYPES = ("f32", "f16", "bf16")
_MOST_PARAMETERS = 2_000_000_000  # the reference holds them as float32
_LONGEST, _STEPS = 512, 16
# No network, no code of the folder's, no byte-code files in what is kept; the user's own Python settings stay out.
QUIET = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONNOUSERSITE": "1",
    "PYTHONPATH": "",
    "TOKENIZERS_PARALLELISM": "false",
}
_SCRIPT, _PRE = "convert_hf_to_gguf.py", "BPE pre-tokenizer was not recognized"
_UNKNOWN = ("is not supported", "Can not map tensor")


@dataclass(frozen=True)
class Converter:
    """The isolated Python, the converter's source and our scripts.

    ``named``: the script that starts the converter with the pre-tokenizer ``pre``, which the user named; None: the
    converter recognises it.
    """

    python: Path
    source: Path
    answers: Path
    runner: Runner
    named: Path | None = None
    pre: str = ""

    def convert(self, folder: Path, kind: str, name: str, out: Path, progress: Progress) -> None:
        """Write ``folder`` as GGUF to ``out``.

        Raises BadInputError ``import.pre_tokenizer``, or ``import.converter`` with the converter's last words.
        """
        script = [str(self.named), str(self.source), self.pre] if self.named else [str(self.source / _SCRIPT)]
        argv = [str(self.python), *script, str(folder), "--outtype", kind, "--outfile", str(out)]
        with progress.task(text("weights.step.convert", name=name)):
            done = self.runner.run([*argv, "--model-name", name], cwd=self.source, env=QUIET)
        if done.returncode != 0 or not out.is_file():
            if _PRE in done.output:
                raise BadInputError("import.pre_tokenizer", path=name)
            detail = reason(done.output) or f"exit {done.returncode}"
            raise BadInputError("import.converter", path=name, detail=detail)
        architecture_of(read_header(out))  # raises where it is not whole, or not for this engine

    def golden(self, folder: Path, info: WeightsInfo, work: Path, progress: Progress) -> GoldenSet:
        """What the unquantized model answers. Raises NoReferenceError, BuildError ``import.answers``."""
        if info.task == "rerank" and not _is_classifier(folder):
            raise NoReferenceError("weights.golden.rank")
        if info.parameters > _MOST_PARAMETERS:
            raise NoReferenceError("weights.golden.size")
        asked, answered = work / "request.json", work / "answers.json"
        asked.write_text(json.dumps(_request(folder, info), ensure_ascii=False), encoding="utf-8")
        argv = [str(self.python), str(self.answers), str(asked), str(answered)]
        with progress.task(text("weights.step.golden", name=info.name)):
            done = self.runner.run(argv, cwd=work, env=QUIET)
        if done.returncode != 0 or not answered.is_file():
            raise BuildError("import.answers", path=info.source, detail=reason(done.output))
        return golden_set(info, json.loads(answered.read_text(encoding="utf-8")))


def _is_classifier(folder: Path) -> bool:
    """One label and a head of its own: others (Qwen3-Reranker) make their score of two tokens' logits."""
    config = read_object(folder / "config.json")
    names, labels = config.get("architectures"), config.get("id2label")
    one = not isinstance(labels, dict) or len(labels) == 1
    return one and isinstance(names, list) and any(str(name).endswith("ForSequenceClassification") for name in names)


def golden_set(info: WeightsInfo, answers: list[dict[str, Any]]) -> GoldenSet:
    """The set from what the script answered. Raises NoReferenceError where no choice of a chat is clear."""
    reference = "transformers, float32, from the unquantized folder"
    if info.task == "embedding":
        vectors = tuple(GoldenEmbedding(one["text"], tuple(one["vector"])) for one in answers)
        least = tolerance().of(info.quantization)
        return GoldenSet(info.name, reference, minimum_cosine=least, embeddings=vectors)
    if info.task == "rerank":
        return GoldenSet(info.name, reference, pairs=tuple(GoldenPair(**one) for one in answers))
    asked = [_clear(one) for one in answers]
    kept = [(chat, clear) for chat, clear in asked if clear >= SHORTEST_PREFIX]
    if not kept:
        raise NoReferenceError("weights.golden.unclear")
    shortest = min(clear for _, clear in kept)
    chats = tuple(chat for chat, _ in kept)
    return GoldenSet(info.name, f"{reference}; greedy", minimum_prefix=shortest, chats=chats)


def _clear(answer: Mapping[str, Any]) -> tuple[GoldenChat, int]:
    """A chat, and how many of its characters come from clear choices."""
    texts, margins = answer["texts"], answer["margins"]
    unclear = next((at for at, margin in enumerate(margins) if margin < CLEAR_MARGIN), len(margins))
    return GoldenChat(answer["prompt"], texts[-1]), len(texts[unclear].rstrip("\ufffd"))


def _request(folder: Path, info: WeightsInfo) -> dict[str, object]:
    known = golden_texts()
    return {
        "folder": str(folder),
        "task": info.task,
        "pooling": info.pooling,
        "texts": list(known.embeddings),
        "passage": " ".join(known.passage.split()),
        "limit": min(info.context_length, _LONGEST),
        "prompts": [asdict(chat) for chat in known.chats],
        "steps": _STEPS,
    }


def reason(output: str) -> str:
    """The line of a program's output that says why it failed."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    telling = [line for line in lines if any(words in line for words in _UNKNOWN)]
    errors = [line for line in lines if "Error" in line]
    return (telling or errors or lines or [""])[-1][:300]
