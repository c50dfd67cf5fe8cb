"""/proc/cpuinfo of x86-64 and arm64, pure text to facts.

arm64 forms differ: kernel 4.4 may print ``Processor`` and ``Features`` once for the machine, some Phytium kernels
add ``model name`` per core, most print no model at all; then implementer and part name the CPU.
"""

from __future__ import annotations

from dataclasses import replace

from sampan.spec.target import CpuFacts
from sampan.survey.data import Table, table

UNKNOWN_MODEL = "unknown"


def parse(text: str, arch: str) -> CpuFacts:
    """Model, vendor, MIDR fields, and the features that *all* cores share.

    Empty text, or text of another architecture (qemu-user shows the host's /proc/cpuinfo), gives unknown facts.
    """
    word = "flags" if arch == "x86_64" else "Features"
    blocks = _blocks(text)
    if not any(word in block for block in blocks):
        return CpuFacts(model=UNKNOWN_MODEL, features_known=False)
    merged = {key: value for block in reversed(blocks) for key, value in block.items()}
    shared = _shared_features(blocks, word)
    facts = CpuFacts(
        model=merged.get("model name") or merged.get("Model Name") or UNKNOWN_MODEL,
        features=tuple(sorted(shared)),
        features_known=bool(shared),
        vendor=merged.get("vendor_id"),
        implementer=merged.get("CPU implementer"),
        part=merged.get("CPU part"),
        variant=merged.get("CPU variant"),
        revision=merged.get("CPU revision"),
        family=merged.get("cpu family") if arch == "x86_64" else None,
        model_number=merged.get("model") if arch == "x86_64" else None,
        stepping=merged.get("stepping") if arch == "x86_64" else None,
    )
    return _named_by_part(facts)


def processors(text: str) -> int | None:
    """How many logical CPUs are listed; None where the text lists none."""
    count = sum("processor" in block for block in _blocks(text))
    return count or None


def _blocks(text: str) -> list[dict[str, str]]:
    """One dict per blank-line block; ``Key : value`` lines only."""
    blocks = []
    for chunk in text.replace("\r\n", "\n").split("\n\n"):
        pairs = (line.partition(":") for line in chunk.splitlines() if ":" in line)
        block = {key.strip(): value.strip() for key, _, value in pairs}
        if block:
            blocks.append(block)
    return blocks


def _shared_features(blocks: list[dict[str, str]], word: str) -> frozenset[str]:
    """Cores may differ (big.LITTLE): a program may be moved to any of them, so only common features count."""
    sets = [frozenset(block[word].split()) for block in blocks if block.get(word)]
    return frozenset.intersection(*sets) if sets else frozenset()


def _named_by_part(facts: CpuFacts) -> CpuFacts:
    if facts.implementer is None or facts.part is None:
        return facts
    known: Table = table("cpus.toml")
    for cpu in known.values():
        if (cpu.get("implementer"), cpu.get("part")) == (facts.implementer, facts.part):
            model = cpu["model"] if facts.model == UNKNOWN_MODEL else facts.model
            return replace(facts, model=model, vendor=facts.vendor or cpu.get("vendor"))
    if facts.model == UNKNOWN_MODEL:
        return replace(facts, model=f"arm64 implementer {facts.implementer} part {facts.part}")
    return facts
