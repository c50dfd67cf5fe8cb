"""One file of another type by llama-quantize, checked before anyone may see it."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sampan.disk import existing
from sampan.errors import BuildError, FilesystemError
from sampan.i18n import text
from sampan.spec.ports import Progress, Runner
from sampan.weights.gguf_checks import architecture_of
from sampan.weights.gguf_header import read_header

UNQUANTIZED = frozenset({"F32", "F16", "BF16"})
_TENSOR = re.compile(r"^\[\s*(\d+)/\s*(\d+)\]")
_FALLBACKS = re.compile(r"WARNING: (\d+) of \d+ tensor\(s\) required fallback")
_NO_SPACE = ("No space left on device", "failed to write", "basic_ios::clear")


@dataclass(frozen=True)
class Quantizer:
    """The tool and the door to it. ``threads`` >= 1."""

    tool: Path
    runner: Runner
    threads: int

    def write(self, base: Path, kind: str, out: Path, progress: Progress, *, requantize: bool = False) -> int:
        """Write ``base`` as ``kind`` to ``out``; gives how many tensors had to take another type.

        ``requantize`` permits a base that is quantized already. Raises BuildError ``gate.quantize`` with the tool's
        last words, FilesystemError where there is no room.
        """
        _require_room(base, out)
        flags = ("--allow-requantize",) if requantize else ()
        argv = (str(self.tool), *flags, str(base), str(out), kind, str(self.threads))
        with progress.task(text("gate.step.quantize", kind=kind)) as task:

            def show(line: str) -> None:
                match = _TENSOR.match(line)
                if match:
                    task.update(completed=int(match[1]), total=int(match[2]))

            done = self.runner.run(argv, on_line=show)
        if done.returncode != 0 or not out.is_file():
            _require_room(base, out, said=done.output)
            detail = _last_words(done.output) or f"exit {done.returncode}"
            raise BuildError("gate.quantize", path=str(base), kind=kind, detail=detail)
        architecture_of(read_header(out))  # raises where the file is not whole
        match = _FALLBACKS.search(done.output)
        return int(match[1]) if match else 0


def key_of(base_sha256: str, kind: str, tool: Mapping[str, object]) -> dict[str, object]:
    """What the bytes of a quantized file depend on."""
    return {"recipe": 1, "base": base_sha256, "type": kind, "tool": dict(tool)}


def _require_room(base: Path, out: Path, said: str = "") -> None:
    """A quantized file is never larger than its base (but for F32 of an F16: twice)."""
    free = shutil.disk_usage(existing(out.parent)).free
    if free < base.stat().st_size // 8 or any(words in said for words in _NO_SPACE):
        raise FilesystemError("disk.full", path=str(out), free_mib=free >> 20)


def _last_words(output: str) -> str:
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    telling = [line for line in lines if "fail" in line.lower() or "error" in line.lower()]
    return (telling or lines or [""])[-1][:300]
