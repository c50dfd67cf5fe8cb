"""What a GGUF's header does not tell, from the folder that it was made of."""

from __future__ import annotations

from pathlib import Path

from sampan.weights.describe import Origin, model_name
from sampan.weights.files import inside, integer
from sampan.weights.model_card import modules_of, prompts_of, sentence_config_of


def origin_of(root: Path, sha256: str) -> Origin:
    """Normalization, prefixes and the longest text as the folder has them. Raises BadInputError."""
    modules = modules_of(root)
    model = inside(root, modules["Transformer"]) if modules.get("Transformer") else root
    sentence = sentence_config_of(model)
    query, passage = prompts_of(root)
    longest = integer(sentence, "max_seq_length", model) if sentence.get("max_seq_length") else None
    return Origin(
        name=model_name(root.absolute()),
        source=str(root),
        kind="sentence-transformers" if modules else "huggingface",
        sha256=sha256,
        normalize="Normalize" in modules or not modules,
        longest_text=longest,
        query_prefix=query,
        passage_prefix=passage,
    )
