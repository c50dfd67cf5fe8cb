"""The gateway's counts in Prometheus' text, by its naming conventions; written by prometheus-client when scraped."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from pathlib import Path

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from sampan import __version__
from sampan.gateway import process_facts
from sampan.gateway.batching import Batching
from sampan.gateway.engine import EngineState
from sampan.gateway.house import House
from sampan.gateway.meter import Histogram

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4.encode()
_PRE = "sampan_"


class Exposition:
    """A collector in prometheus-client's sense, over one house."""

    def __init__(self, house: House) -> None:
        self._house = house
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(self)

    def text(self) -> bytes:
        """What ``/metrics`` answers."""
        return generate_latest(self._registry)

    def describe(self) -> list[Metric]:
        """Nothing beforehand."""
        return []

    def collect(self) -> Iterator[Metric]:
        """All of it."""
        yield from self._requests()
        yield from self._queue()
        yield from self._engine()
        yield from _processes(getattr(self._house.engine, "pid", None))
        yield GaugeMetricFamily(_PRE + "usable_cpus", "CPUs by affinity.", len(os.sched_getaffinity(0)))

    def _requests(self) -> Iterator[Metric]:
        meter = self._house.meter
        requests = CounterMetricFamily(_PRE + "requests", "Answered requests.", labels=("endpoint", "status", "key"))
        for (endpoint, status, key), value in meter.requests.items():
            requests.add_metric((endpoint, str(status), key), value)
        yield requests
        tokens = CounterMetricFamily(
            _PRE + "tokens", "Tokens of answered requests.", labels=("endpoint", "key", "kind")
        )
        for (endpoint, key, kind), value in meter.tokens.items():
            tokens.add_metric((endpoint, key, kind), value)
        yield tokens
        errors = CounterMetricFamily(_PRE + "errors", "Refused or failed requests.", labels=("code",))
        for code, value in meter.errors.items():
            errors.add_metric((code,), value)
        yield errors
        seconds = HistogramMetricFamily(
            _PRE + "request_duration_seconds", "From request to answer.", labels=("endpoint",)
        )
        for endpoint, histogram in meter.seconds.items():
            seconds.add_metric((endpoint,), _buckets(histogram), histogram.sum)
        yield seconds

    def _queue(self) -> Iterator[Metric]:
        house, meter = self._house, self._house.meter
        yield _histogram("queue_duration_seconds", "Waiting before the engine.", meter.queue_seconds)
        yield _histogram("engine_duration_seconds", "One pass of the engine.", meter.engine_seconds)
        yield _histogram("pass_texts", "Texts in one pass.", meter.pass_texts)
        yield _histogram("pass_fill_ratio", "Tokens in one pass, of those that it could take.", meter.pass_fill)
        yield GaugeMetricFamily(_PRE + "inside_requests", "Admitted requests.", house.admission.requests)
        yield GaugeMetricFamily(_PRE + "inside_tokens", "Admitted tokens.", house.admission.tokens)
        yield GaugeMetricFamily(_PRE + "inside_requests_limit", "Its bound.", house.limits.queue_requests)
        yield GaugeMetricFamily(_PRE + "inside_tokens_limit", "Its bound.", house.limits.queue_tokens)
        yield CounterMetricFamily(_PRE + "queue_refusals", "Refused by a full queue.", house.admission.refused)
        yield CounterMetricFamily(_PRE + "shared_texts", "Texts computed once for several.", meter.shared)
        yield CounterMetricFamily(
            _PRE + "retried_texts", "Texts tried alone after a pass failed.", meter.retried_alone
        )
        engine = house.engine
        if isinstance(engine, Batching):
            yield GaugeMetricFamily(_PRE + "waiting_texts", "Texts that wait for a pass.", engine.lanes.texts)
            yield GaugeMetricFamily(_PRE + "waiting_generations", "Generations that wait.", engine.turns.waiting)
            yield CounterMetricFamily(_PRE + "cache_hits", "Texts found in the cache.", engine.cache.hits)
            yield CounterMetricFamily(_PRE + "cache_misses", "Texts not found there.", engine.cache.misses)
            yield GaugeMetricFamily(_PRE + "cache_bytes", "Memory of the cache.", engine.cache.bytes)

    def _engine(self) -> Iterator[Metric]:
        house = self._house
        status = house.engine.status
        about = {
            "version": __version__,
            "model": house.model.id,
            "release": house.model.release,
            "variant": status.variant,
        }
        yield InfoMetricFamily(_PRE + "build", "What is served.", about)
        right = house.on_its_device
        yield GaugeMetricFamily(_PRE + "engine_on_its_device", "0 where it computes on another one.", int(right))
        ready = right and house.ready and not house.draining and status.state is EngineState.READY
        yield GaugeMetricFamily(_PRE + "ready", "1 where /ready says so.", int(ready))
        yield CounterMetricFamily(_PRE + "engine_restarts", "Starts of the engine after its first.", status.restarts)
        passed = house.meter.selftest_ok
        if passed is not None:
            yield GaugeMetricFamily(_PRE + "selftest_passed", "1 where the golden answers were right.", int(passed))


def _processes(engine: int | None) -> Iterator[Metric]:
    memory = GaugeMetricFamily(_PRE + "resident_memory_bytes", "Resident memory.", labels=("process",))
    cpu = CounterMetricFamily(_PRE + "cpu_seconds", "User and system time.", labels=("process",))
    usage = resource.getrusage(resource.RUSAGE_SELF)
    cpu.add_metric(("gateway",), usage.ru_utime + usage.ru_stime)
    memory.add_metric(("gateway",), process_facts.resident_bytes(Path("/proc/self")) or 0)
    if engine is not None:
        place = Path(f"/proc/{engine}")
        memory.add_metric(("engine",), process_facts.resident_bytes(place) or 0)
        cpu.add_metric(("engine",), process_facts.cpu_seconds(place) or 0.0)
    yield memory
    yield cpu
    throttled = process_facts.throttled_seconds()
    if throttled is not None:
        yield CounterMetricFamily(_PRE + "cpu_throttled_seconds", "Time that a CPU quota took.", throttled)


def _histogram(name: str, text: str, histogram: Histogram) -> Metric:
    family = HistogramMetricFamily(_PRE + name, text)
    family.add_metric((), _buckets(histogram), histogram.sum)
    return family


def _buckets(histogram: Histogram) -> list[tuple[str, float]]:
    total, found = 0, []
    for bound, count in zip((*map(str, histogram.bounds), "+Inf"), histogram.counts, strict=True):
        total += count
        found.append((bound, float(total)))
    return found
