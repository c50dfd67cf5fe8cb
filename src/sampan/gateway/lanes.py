"""Texts that wait for the engine: two lanes, requests taking turns, ageing. No clock and no engine of its own.

A large request is not a block: its texts go out one at a time between those of others, so nobody waits for the whole.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

from sampan.gateway.engine import Ask, Lane, TextOrTokens
from sampan.gateway.lengths import estimate


class Item:
    """One text that is to be computed, for all who wait for it: jobs and their place in them."""

    __slots__ = ("text", "tokens", "waiting")

    def __init__(self, text: TextOrTokens) -> None:
        self.text = text
        self.tokens = estimate(text)
        self.waiting: list[tuple[Job, int]] = []


class Job:
    """One request's texts. ``entered``: when it came, by the caller's clock; ``left``: texts without a vector."""

    __slots__ = ("ask", "done", "entered", "items", "left", "queue", "tokens", "vectors")

    def __init__(self, size: int, ask: Ask, entered: float, done: Callable[[BaseException | None], None]) -> None:
        self.ask = ask
        self.entered = entered
        self.vectors: list[bytes] = [b""] * size
        self.tokens = 0
        self.left = size
        self.items: list[Item] = []  # all that it waits or waited for
        self.queue: deque[Item] = deque()  # those of them that wait in a lane for it
        self.done = done

    def wait_for(self, item: Item, place: int) -> None:
        """The text at ``place`` is this item's."""
        item.waiting.append((self, place))
        self.items.append(item)

    def give(self, place: int, vector: bytes, tokens: int) -> None:
        """One text's vector."""
        self.vectors[place] = vector
        self.tokens += tokens
        self.left -= 1
        if not self.left:
            self.done(None)


class Lanes:
    """What waits. ``texts`` and ``tokens`` are of both lanes."""

    def __init__(self, ageing_seconds: float) -> None:
        self._ageing = ageing_seconds
        self._bulk_alone = float("-inf")  # when bulk texts last had a pass to themselves
        self._lanes: dict[Lane, deque[Job]] = {lane: deque() for lane in Lane}
        self.texts = 0
        self.tokens = 0

    def add(self, job: Job, items: Iterable[Item]) -> None:
        """The job waits with these items; shortest first, so that texts of a pass are alike in length."""
        job.queue.extend(sorted(items, key=lambda item: item.tokens))
        if job.queue:
            self._count(job.queue, 1)
            self._lanes[job.ask.lane].append(job)

    def put_back(self, items: Iterable[Item]) -> None:
        """Items of a pass that was not computed go first again."""
        for item in items:
            if item.waiting:
                job = item.waiting[0][0]
                lane = self._lanes[job.ask.lane]
                if job not in lane:
                    lane.appendleft(job)
                job.queue.appendleft(item)
                self._count((item,), 1)

    def has(self, lane: Lane) -> bool:
        """True where a job waits in it."""
        return bool(self._lanes[lane])

    def jobs(self) -> list[Job]:
        """All that wait."""
        return [job for lane in self._lanes.values() for job in lane]

    def leave(self, job: Job) -> None:
        """The job waits no longer. What others wait for as well, they take over."""
        lane = self._lanes[job.ask.lane]
        if job in lane:
            lane.remove(job)
        orphans = list(job.queue)
        job.queue.clear()
        self._count(orphans, -1)
        for item in orphans:
            item.waiting = [pair for pair in item.waiting if pair[0] is not job]
        self.put_back(orphans)

    def take(self, now: float, texts: int, tokens: int, bulk_texts: int) -> list[Item]:
        """The next pass: interactive texts first; bulk ones, where no person waits or where they have aged.

        A pass of bulk texts alone has at most ``bulk_texts``, so that whoever comes meanwhile waits for little. Bulk
        texts age only while people leave them no pass of their own: else they would ride along, and slow down, every
        text of a single person. Aged ones are chosen first, so that no length of people's texts leaves them no room;
        where one fills the pass, people wait for one pass, and it ages anew.
        """
        chosen: list[Item] = []
        people = any(job.queue for job in self._lanes[Lane.INTERACTIVE])
        if people and self._have_aged(now):
            self._fill(Lane.BULK, chosen, max(1, texts // 4), tokens // 4)
        riding = len(chosen)
        self._fill(Lane.INTERACTIVE, chosen, texts, tokens)
        if len(chosen) == riding:
            self._bulk_alone = now
            if not people:
                self._fill(Lane.BULK, chosen, bulk_texts, tokens)
        return chosen

    def _have_aged(self, now: float) -> bool:
        bulk = self._lanes[Lane.BULK]
        return bool(bulk) and now - max(min(job.entered for job in bulk), self._bulk_alone) >= self._ageing

    def _fill(self, lane: Lane, chosen: list[Item], texts: int, tokens: int) -> None:
        jobs = self._lanes[lane]
        used = sum(item.tokens for item in chosen)
        while jobs and len(chosen) < texts:
            job = jobs[0]
            if not job.queue:
                jobs.popleft()
                continue
            if chosen and used + job.queue[0].tokens > tokens:
                return
            item = job.queue.popleft()
            used += item.tokens
            self._count((item,), -1)
            chosen.append(item)
            if job.queue:
                jobs.rotate(-1)
            else:
                jobs.popleft()

    def _count(self, items: Iterable[Item], sign: int) -> None:
        for item in items:
            self.texts += sign
            self.tokens += sign * item.tokens
