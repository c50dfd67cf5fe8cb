"""The edge, put together once and handed to every stage."""

from __future__ import annotations

from dataclasses import dataclass

from sampan.spec.hub import Hubs
from sampan.spec.ports import Progress, Runner, Store, WheelFetcher


@dataclass(frozen=True)
class Tools:
    """What a workshop stage may use of the world."""

    runner: Runner
    fetcher: WheelFetcher
    store: Store
    progress: Progress
    hubs: Hubs


def workshop_tools(progress: Progress) -> Tools:
    """The real edge: processes, the user's package indexes, the cache on disk."""
    from sampan.edge.hubs import HubClient
    from sampan.edge.net import NetFetcher
    from sampan.edge.process import ProcessRunner
    from sampan.edge.store import DiskStore

    store = DiskStore()
    fetcher = NetFetcher(store, progress=progress)
    return Tools(ProcessRunner(), fetcher, store, progress, HubClient(store, progress))
