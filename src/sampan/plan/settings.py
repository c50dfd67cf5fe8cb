"""Candidate settings of the engine, the most generous first; the planner takes the first that fits.

Rules, read in the pinned llama.cpp (tools/server/server-context.cpp, src/llama-context.cpp):

- What must be computed in one pass (all encoders; decoders whose vector is not the last token's) needs its whole
  input in one physical batch: ubatch >= its length. Other input is split, and must leave one place in its slot.
- A slot never takes more than ``--kv-unified-per-slot``, nor than the trained context. Without unified KV it has its
  own share of the context, rounded up to 256; with it, long inputs at once would push one another out. So only
  encoders, which keep no KV cache, share.
- The graph of a pooled embedding is reserved for ubatch tokens rounded up to a multiple of the slots, but for ubatch
  outputs: where the two differ the engine aborts at its start (graph_reserve; seen with ubatch 512 and 3 slots). So
  ubatch is such a multiple.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from sampan.errors import UsageError
from sampan.plan import engine_memory
from sampan.plan.data import Table, table
from sampan.plan.options import PlanOptions
from sampan.spec.plan import EngineSettings
from sampan.spec.weights import WeightsInfo


@dataclass(frozen=True)
class Machine:
    """What of the target decides the settings."""

    threads: int
    memory_known: bool
    reorders: bool = False  # some build keeps weights in an order of its own: mapping them would hold them twice
    numa: bool = False


def candidates(weights: WeightsInfo, options: PlanOptions, machine: Machine) -> Iterator[EngineSettings]:
    """At least one. Raises UsageError ``plan.max-tokens`` where more is promised than the model was trained for."""
    most = most_tokens(weights)
    if options.max_tokens is not None and options.max_tokens > most:
        raise UsageError("plan.max-tokens", asked=options.max_tokens, trained=most, model=weights.name)
    if weights.task == "chat":
        return _chat(weights, options, machine)
    if engine_memory.is_encoder(weights):
        return _encoder(weights, options, machine)
    return _decoder(weights, options, machine)


def is_split(weights: WeightsInfo) -> bool:
    """Whether the engine may compute an input in several passes."""
    if engine_memory.is_encoder(weights):
        return False
    return weights.task in ("chat", "rerank") or weights.pooling == "last"


def most_tokens(weights: WeightsInfo) -> int:
    """The most that can be promised: of a conversation, else of one input."""
    spare = 1 if is_split(weights) and weights.task != "chat" else 0
    return weights.context_length - spare


def longest_input(weights: WeightsInfo, options: PlanOptions) -> int:
    """Tokens of the longest text that an embedding service should accept: as asked for, else the model's own."""
    if options.max_tokens is not None:
        return options.max_tokens
    decoders: int = table("plan.toml")["embedding"]["longest"]
    most = most_tokens(weights)
    return most if engine_memory.is_encoder(weights) else min(most, decoders)


def _lengths(weights: WeightsInfo, options: PlanOptions, machine: Machine) -> list[int]:
    first = longest_input(weights, options)
    if not machine.memory_known or options.max_tokens is not None:
        return [first]
    return [first, *(each for each in table("plan.toml")["embedding"]["lengths"] if each < first)]


def _encoder(weights: WeightsInfo, options: PlanOptions, machine: Machine) -> Iterator[EngineSettings]:
    facts: Table = table("plan.toml")["embedding"]
    lengths = _lengths(weights, options, machine)
    passes = [(each, max(each, facts["pass_tokens"])) for each in lengths] + [(lengths[-1], lengths[-1])]
    for longest, tokens in dict.fromkeys(passes):
        slots = options.concurrency or facts["slots"]
        size = _shared(_padded(tokens), slots)
        yield EngineSettings(
            context=_padded(size),
            batch=size,
            ubatch=size,
            slots=slots,
            unified_kv=True,
            threads=machine.threads,
            embedding=True,
            pooling=weights.pooling,
            load_mode=_load_mode(options, machine),
            numa=_numa(machine),
            longest=longest,
            slot_tokens=longest,
        )


def _decoder(weights: WeightsInfo, options: PlanOptions, machine: Machine) -> Iterator[EngineSettings]:
    facts: Table = table("plan.toml")
    splits = is_split(weights)
    slots = [options.concurrency] if options.concurrency else facts["chat"]["slots"]
    for longest, count in product(_lengths(weights, options, machine), slots):
        room = longest + 1 if splits else longest
        each = _padded(room)
        whole = _shared(each, count)
        batch = min(facts["chat"]["batch"], each * count) if splits else whole
        yield EngineSettings(
            context=each * count,
            batch=batch,
            ubatch=min(_shared(facts["chat"]["ubatch"], count), batch) if splits else whole,
            slots=count,
            unified_kv=False,
            threads=machine.threads,
            embedding=True,
            pooling=weights.pooling,
            load_mode=_load_mode(options, machine),
            kv_type=options.kv_type or "f16",
            numa=_numa(machine),
            longest=longest,
            slot_tokens=room,
        )


def _chat(weights: WeightsInfo, options: PlanOptions, machine: Machine) -> Iterator[EngineSettings]:
    facts: Table = table("plan.toml")["chat"]
    lengths = facts["lengths"] if machine.memory_known else [facts["unknown_length"]]
    lengths = [options.max_tokens] if options.max_tokens else [min(each, weights.context_length) for each in lengths]
    slots = facts["slots"] if machine.memory_known else [facts["unknown_slots"]]
    slots = [options.concurrency] if options.concurrency else slots
    for length, count, cache in product(dict.fromkeys(lengths), slots, facts["cache_ram_mib"]):
        each = _padded(length)
        batch = min(facts["batch"], each * count)
        yield EngineSettings(
            context=each * count,
            batch=batch,
            ubatch=min(facts["ubatch"], batch),
            slots=count,
            unified_kv=False,
            threads=machine.threads,
            embedding=False,
            cache_ram_mib=cache,
            load_mode=_load_mode(options, machine),
            kv_type=options.kv_type or "f16",
            numa=_numa(machine),
            longest=length - 1,
            slot_tokens=length,
        )


def _load_mode(options: PlanOptions, machine: Machine) -> str:
    """Mapped, unless the engine would keep a copy of what is mapped."""
    if options.load_mode is not None:
        return options.load_mode
    if options.lock:
        return "mlock" if machine.reorders else "mmap+mlock"
    return "none" if machine.reorders else "mmap"


def _numa(machine: Machine) -> str | None:
    return "isolate" if machine.numa else None


def _shared(tokens: int, slots: int) -> int:
    """Rounded up to a multiple of the slots."""
    return -(-tokens // slots) * slots


def _padded(tokens: int) -> int:
    step: int = table("plan.toml")["engine"]["context_step"]
    return (tokens + step - 1) // step * step
