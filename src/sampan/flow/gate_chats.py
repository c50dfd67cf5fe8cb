"""The gate's figures of chat models: KL divergence and perplexity by the engine's own llama-perplexity."""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path

from sampan import i18n
from sampan.errors import BuildError, FilesystemError
from sampan.flow import gate_engine
from sampan.flow.engine_tools import PERPLEXITY, SERVER, engine_tool
from sampan.flow.tools import Tools
from sampan.spec.gate import GateRow
from sampan.spec.weights import WeightsInfo

# On a busy machine the tool may end well with its last lines unprinted: its log is a ring of messages whose end mark
# overwrites the oldest where the ring is full (common/log.cpp, pause; seen once).
_TRIES = 3


def measure(base: WeightsInfo, files: Mapping[str, WeightsInfo], own: Sequence[str], tools: Tools) -> list[GateRow]:
    """One row a file. The base's logits are kept on disk only while they are needed."""
    from sampan.weights.gate.facts import built_in_texts

    with ExitStack() as stack:
        stack.enter_context(tools.store.locked("gate-work"))  # one at a time: they share a folder, and are timed
        text = "\n".join((*built_in_texts(), *own))
        comparison = _Comparison(base, text, tools, stack)
        return [comparison.row(kind, info) for kind, info in files.items()]


@dataclass
class _Comparison:
    base: WeightsInfo
    text: str
    tools: Tools
    stack: ExitStack
    _logits: Path | None = field(default=None)

    def row(self, kind: str, info: WeightsInfo) -> GateRow:
        """Measured once for each content of file, base, text and tool."""
        tool, server = engine_tool(PERPLEXITY, self.tools), engine_tool(SERVER, self.tools)

        def make(folder: Path) -> None:
            found = self._compare(tool, info)
            found["speed"] = gate_engine.generation_speed(server, info)
            (folder / "figures.json").write_text(json.dumps(found), encoding="utf-8")

        key: dict[str, object] = {"recipe": 1, "file": info.sha256, "base": self.base.sha256}
        key |= {"text": hashlib.sha256(self.text.encode()).hexdigest(), "tool": tool.parent.name}
        key |= {"engine": server.parent.name, "threads": gate_engine.threads()}
        made = self.tools.store.get_or_make("gate-divergence", key, make)
        figures = json.loads((made / "figures.json").read_text(encoding="utf-8"))
        return GateRow(kind, info.path, info.sha256, info.size_bytes, **figures)

    def _compare(self, tool: Path, info: WeightsInfo) -> dict[str, float]:
        from sampan.weights.gate import divergence

        logits = self._logits or self._base_logits(tool)
        argv = divergence.compare_argv(tool, Path(info.path), logits, threads=gate_engine.threads())
        output = ""
        for _ in range(_TRIES):
            output = self._run(argv, info)
            found = divergence.parse(output)
            if found is not None:
                return asdict(found)
        raise BuildError("gate.divergence", path=info.path, detail=_last(output))

    def _base_logits(self, tool: Path) -> Path:
        from sampan.weights.gate import divergence

        folder = Path(self.stack.enter_context(_work_folder(self.tools, self.base)))
        text = folder / "text.txt"
        text.write_text(self.text, encoding="utf-8")
        self._logits = folder / "logits"
        argv = divergence.base_argv(
            tool,
            Path(self.base.path),
            text,
            self._logits,
            threads=gate_engine.threads(),
            vocabulary=self.base.vocabulary,
        )
        output = self._run(argv, self.base)
        if not self._logits.is_file():
            raise BuildError("gate.divergence", path=self.base.path, detail=_last(output))
        return self._logits

    def _run(self, argv: tuple[str, ...], info: WeightsInfo) -> str:
        from sampan.weights.gate.divergence import CHUNK

        with self.tools.progress.task(i18n.text("gate.step.perplexity", kind=info.quantization)) as task:

            def show(line: str) -> None:
                match = CHUNK.match(line)
                if match:
                    task.update(note=match[1] or match[2])

            done = self.tools.runner.run(argv, on_line=show)
        if done.returncode != 0:
            raise BuildError("gate.divergence", path=info.path, detail=_last(done.output))
        return done.output


def _work_folder(tools: Tools, base: WeightsInfo) -> tempfile.TemporaryDirectory[str]:
    """A folder for the logits, beside the cache: they may take a gigabyte. Raises FilesystemError."""
    from sampan.weights.gate.divergence import logits_bytes

    parent = tools.store.scratch("gate", {"recipe": 1})
    for left in parent.iterdir():  # of a killed run; we hold the lock
        shutil.rmtree(left, ignore_errors=True)
    free = shutil.disk_usage(parent).free
    if free < logits_bytes(base.vocabulary):
        raise FilesystemError("disk.full", path=str(parent), free_mib=free >> 20)
    return tempfile.TemporaryDirectory(prefix="logits-", dir=parent)


def _last(output: str) -> str:
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    telling = [line for line in lines if "error" in line.lower() or "fail" in line.lower()]
    return (telling or lines or ["?"])[-1][:300]
