"""Runs in the converter's own environment: the converter, told how the vocabulary cuts a text before byte pairs.

    python named.py SOURCE NAME ARGUMENTS…

The converter recognises vocabularies by a fingerprint; whether one that it has never seen cuts like a known one, only
a person can say.
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path


def main() -> None:
    """``ARGUMENTS`` are those of convert_hf_to_gguf.py."""
    source, name, *arguments = sys.argv[1:]
    script = str(Path(source) / "convert_hf_to_gguf.py")
    sys.path[:0] = [source, str(Path(source) / "gguf-py")]
    from conversion.base import TextModel  # noqa: PLC0415  (found below the path that was given)

    TextModel.get_vocab_base_pre = lambda _self, _tokenizer: name
    sys.argv = [script, *arguments]
    runpy.run_path(script, run_name="__main__")


if __name__ == "__main__":
    main()
