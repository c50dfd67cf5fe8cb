"""How many threads the engine gets. Pure; used by the plan and again on the target at each start.

More threads than CPUs' worth of time are worse than useless: ggml's threads spin while they wait, and under a CFS
quota the spinning eats the quota (measured up to 45 times slower). So the result is always a floor, at least 1.
"""

from __future__ import annotations

from sampan.plan.data import table

DECIDE_ON_TARGET = 0  # EngineSettings.threads where the plan cannot know


def choose(
    affinity: int, *, cores: int | None = None, quota: float | None = None, numa_nodes: int | None = None
) -> int:
    """Threads for ``affinity`` usable logical CPUs, within the cgroup's ``quota`` (CPUs' worth of time).

    ``cores`` are physical ones: hyper-threads share the vector units, so they do not count. Of several NUMA nodes
    one is taken, since the weights' pages lie on one. Always >= 1.
    """
    count = max(1, affinity)
    if cores:
        count = min(count, cores)
    if numa_nodes and numa_nodes > 1:
        count = min(count, max(1, (cores or affinity) // numa_nodes))
    if quota is not None:
        count = min(count, max(1, int(quota)))
    return count


def resolve(
    planned: int,
    affinity: int,
    *,
    cores: int | None = None,
    quota: float | None = None,
    numa_nodes: int | None = None,
) -> int:
    """What to start the engine with: the planned number where there is one, but never more than there is here."""
    here = choose(affinity, cores=cores, quota=quota, numa_nodes=numa_nodes)
    if planned == DECIDE_ON_TARGET:
        return here
    usable = choose(affinity, quota=quota)
    return max(1, min(planned, usable))


def count(listed: str | None) -> int | None:
    """How many CPUs a list of the kernel's names, as in ``0-3,8``; None where it is none."""
    total = 0
    for part in (listed or "").split(","):
        first, _, last = part.strip().partition("-")
        if not (first.isdecimal() and (last or first).isdecimal()):
            return None
        total += max(0, int(last or first) - int(first) + 1)
    return total or None


def leave_one(threads: int) -> int:
    """One fewer, for the gateway, where that costs the engine little."""
    return threads - 1 if threads >= table("plan.toml")["threads"]["gateway_from"] else threads
