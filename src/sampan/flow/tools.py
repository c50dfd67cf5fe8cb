"""The edge, put together once and handed to every stage."""

from __future__ import annotations

from dataclasses import dataclass

from sampan.spec.ports import Progress, Runner, Store, WheelFetcher


@dataclass(frozen=True)
class Tools:
    """What a workshop stage may use of the world."""

    runner: Runner
    fetcher: WheelFetcher
    store: Store
    progress: Progress


def workshop_tools(progress: Progress) -> Tools:
    """The real edge: processes, the user's package indexes, the cache on disk."""
    from sampan.edge.net import NetFetcher
    from sampan.edge.process import ProcessRunner
    from sampan.edge.store import DiskStore

    store = DiskStore()
    return Tools(ProcessRunner(), NetFetcher(store, progress=progress), store, progress)
