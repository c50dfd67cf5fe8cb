"""Candidate settings of the engine, the most generous first; the planner takes the first that fits.

Rules, read in the pinned llama.cpp (tools/server/server-context.cpp, src/llama-context.cpp):

- An embedding needs its whole input in one physical batch, so context, batch and ubatch are one number. With
  unified KV every slot may use all of it; without, each gets a share.
- The server caps a slot at the trained context by itself, so context above it only makes room for parallel texts.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from sampan.errors import UsageError
from sampan.plan import memory
from sampan.plan.data import Table, table
from sampan.plan.options import PlanOptions
from sampan.spec.plan import EngineSettings
from sampan.spec.weights import WeightsInfo


def candidates(
    weights: WeightsInfo, options: PlanOptions, *, threads: int, memory_known: bool
) -> Iterator[EngineSettings]:
    """At least one. Raises UsageError ``plan.max-tokens`` where more is promised than the model was trained for."""
    if options.max_tokens is not None and options.max_tokens > weights.context_length:
        raise UsageError(
            "plan.max-tokens", asked=options.max_tokens, trained=weights.context_length, model=weights.name
        )
    form = _chat if weights.task == "chat" else _embedding
    return form(weights, options, threads, memory_known=memory_known)


def longest_input(weights: WeightsInfo, options: PlanOptions) -> int:
    """Tokens of the longest text that an embedding service should accept: as asked for, else the model's own."""
    if options.max_tokens is not None:
        return options.max_tokens
    decoders: int = table("plan.toml")["embedding"]["longest"]
    return weights.context_length if memory.is_encoder(weights) else min(weights.context_length, decoders)


def _embedding(
    weights: WeightsInfo, options: PlanOptions, threads: int, *, memory_known: bool
) -> Iterator[EngineSettings]:
    facts: Table = table("plan.toml")["embedding"]
    lengths = [longest_input(weights, options)]
    if memory_known and options.max_tokens is None:
        lengths += [each for each in facts["lengths"] if each < lengths[0]]
    sizes = [max(each, facts["pass_tokens"]) for each in lengths] + lengths[-1:]
    for size in dict.fromkeys(_padded(each) for each in sizes):
        yield EngineSettings(
            context=size,
            batch=size,
            ubatch=size,
            slots=options.concurrency or facts["slots"],
            unified_kv=True,
            threads=threads,
            embedding=True,
            pooling=weights.pooling,
            cache_ram_mib=0,
        )


def _chat(
    weights: WeightsInfo, options: PlanOptions, threads: int, *, memory_known: bool
) -> Iterator[EngineSettings]:
    facts: Table = table("plan.toml")["chat"]
    lengths = facts["lengths"] if memory_known else [facts["unknown_length"]]
    lengths = [options.max_tokens] if options.max_tokens else [min(each, weights.context_length) for each in lengths]
    slots = facts["slots"] if memory_known else [facts["unknown_slots"]]
    slots = [options.concurrency] if options.concurrency else slots
    padded = tuple(dict.fromkeys(_padded(each) for each in lengths))
    for length, count, cache in product(padded, slots, facts["cache_ram_mib"]):
        batch = min(facts["batch"], length * count)
        yield EngineSettings(
            context=length * count,
            batch=batch,
            ubatch=min(facts["ubatch"], batch),
            slots=count,
            unified_kv=False,
            threads=threads,
            embedding=False,
            cache_ram_mib=cache,
        )


def _padded(tokens: int) -> int:
    step: int = table("plan.toml")["engine"]["context_step"]
    return (tokens + step - 1) // step * step
