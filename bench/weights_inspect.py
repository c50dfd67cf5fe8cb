"""How long `sampan weights inspect` takes and how much memory: a sparse GGUF of 50 GiB, and models named by the user.

.venv/bin/python bench/weights_inspect.py [PATH …]
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[1]
SIZE, TENSORS, TOKENS, RUNS = 50 << 30, 400, 150_000, 5
PROBE = """
import re, sys, time
begin = time.monotonic()
import sampan.cli.main as main
try:
    main.main()
except SystemExit as end:
    code = end.code
peak = re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]
print(code, time.monotonic() - begin, time.process_time(), peak, file=sys.stderr)
"""


def huge(path: Path) -> Path:
    """A GGUF whose header is real and whose tensors are holes."""
    sys.path.insert(0, str(ROOT))
    from tests.fakes import tiny_models as gguf

    sizes = {"block_count": 80, "context_length": 8192, "embedding_length": 8192, "attention.head_count": 64}
    number: Callable[[int], bytes] = lambda value: value.to_bytes(4, "little")  # noqa: E731
    tokens = b"".join(gguf.string(f"token{each}") for each in range(TOKENS))
    fields = [
        gguf.field("general.architecture", 8, gguf.string("llama")),
        *(gguf.field(f"llama.{name}", 4, number(value)) for name, value in sizes.items()),
        gguf.field("tokenizer.ggml.model", 8, gguf.string("gpt2")),
        gguf.field("tokenizer.ggml.pre", 8, gguf.string("llama-bpe")),
        gguf.field("tokenizer.ggml.tokens", 9, number(8) + TOKENS.to_bytes(8, "little") + tokens),
    ]
    each = SIZE // TENSORS // 32 * 32
    tensors = tuple(gguf.raw_tensor(f"blk.{at}.weight", (each // 4,), offset=at * each) for at in range(TENSORS))
    with path.open("wb") as stream:
        head = gguf.raw_gguf(*fields, tensors=tensors)
        stream.write(head)
        stream.truncate(len(head) + TENSORS * each)
    return path


def measure(path: Path) -> None:
    """The best of some runs, start of the process included."""
    runs = []
    for _ in range(RUNS):
        command = [sys.executable, "-c", PROBE, "weights", "inspect", str(path), "--json"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        code, *measured = done.stderr.split()
        seconds, processor, peak = map(float, measured)
        runs.append((processor, seconds, peak, code))
    processor, seconds, peak, code = min(runs)
    print(f"{path.name:<40} {seconds:6.2f} s  {processor:6.2f} s of processor  {peak / 1024:5.0f} MiB  exit {code}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        measure(huge(Path(folder) / "huge.gguf"))
    for word in sys.argv[1:]:
        measure(Path(word))
