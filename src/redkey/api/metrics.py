"""Figures for operators, in Prometheus' text: sums over all workspaces, nothing of any single one.

Requests are counted in plain integers, which cost almost nothing, and become Prometheus' families when somebody asks.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections import Counter as Counted
from collections.abc import Callable, Iterable, Iterator, Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from redkey.services.figures import COMMIT_SECONDS, UNIT_SIZES, Happened, WorkFigures, age_seconds

MEDIA_TYPE = CONTENT_TYPE_LATEST
_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0, 60.0)

_CLAIMS = {"task.claimed": "won", "task.claim_missed": "missed", "task.claim_rejected": "rejected"}
_ENDS = {"task.complete": "completed", "task.failed": "failed", "task.cancelled": "cancelled"}
_LEASES = {"task.lease_expired": "expired", "task.stalled": "stalled"}


class Observer:
    """Counts the answers of one operation."""

    __slots__ = ("buckets", "method", "route", "statuses", "total")

    def __init__(self, method: str, route: str) -> None:
        self.method, self.route = method, route
        self.statuses: dict[int, int] = {}
        self.buckets = [0] * (len(_BUCKETS) + 1)
        self.total = 0.0

    def __call__(self, status: int, seconds: float) -> None:
        self.statuses[status] = self.statuses.get(status, 0) + 1
        self.buckets[bisect_left(_BUCKETS, seconds)] += 1
        self.total += seconds


class Metrics:
    """The figures of one server. Names of queues and roles are shown only where the figures are closed to strangers."""

    def __init__(self, *, named: bool = False) -> None:
        self._named = named
        self.happened = Happened()
        self.work: Callable[[], Iterable[WorkFigures]] = tuple
        self._registry = CollectorRegistry()
        self._observers: list[Observer] = []
        self._registry.register(self)
        self.records = self.counter("records", "Records appended by this process.")
        self.commits = self.counter("commits", "Units committed by this process.")

    def counter(self, name: str, text: str) -> Counter:
        """A figure that only grows."""
        return Counter(f"redkey_{name}", text, registry=self._registry)

    def gauge(self, name: str, text: str, read: Callable[[], float]) -> None:
        """A figure that is read when somebody asks."""
        Gauge(f"redkey_{name}", text, registry=self._registry).set_function(read)

    def observer(self, method: str, route: str) -> Observer:
        """Counts the answers of one operation."""
        self._observers.append(Observer(method, route))
        return self._observers[-1]

    def text(self) -> bytes:
        return generate_latest(self._registry)

    def collect(self) -> Iterator[Metric]:
        """The families of the observers; Prometheus' registry calls this."""
        requests = CounterMetricFamily("redkey_requests", "Requests answered.", labels=("method", "route", "status"))
        seconds = HistogramMetricFamily(
            "redkey_request_seconds", "Time from a request's headers to its answer.", labels=("method", "route")
        )
        for one in self._observers:
            for status, count in one.statuses.items():
                requests.add_metric((one.method, one.route, str(status)), count)
            if one.statuses:
                seconds.add_metric((one.method, one.route), _cumulative(one.buckets), one.total)
        yield requests
        yield seconds
        yield from self._happened()
        yield from self._work(time.time_ns())

    def _happened(self) -> Iterator[Metric]:
        types = self.happened.types
        for name, text, label, found in (
            ("claims", "Claims by their outcome.", "outcome", _CLAIMS),
            ("tasks_ended", "Attempts at tasks that ended.", "how", _ENDS),
            ("leases_ended", "Holds that ended without their holder.", "how", _LEASES),
        ):
            family = CounterMetricFamily(f"redkey_{name}", text, labels=(label,))
            for type_, value in found.items():
                family.add_metric((value,), types[type_])
            yield family
        units = HistogramMetricFamily("redkey_unit_records", "Records of one unit.")
        units.add_metric((), _cumulative(self.happened.units.counts, UNIT_SIZES), self.happened.units.total)
        yield units
        commits = HistogramMetricFamily("redkey_commit_seconds", "Time to make units durable.")
        commits.add_metric((), _cumulative(self.happened.commits.counts, COMMIT_SECONDS), self.happened.commits.total)
        yield commits

    def _work(self, now: int) -> Iterator[Metric]:
        labels = ("queue", "role") if self._named else ()
        depth = GaugeMetricFamily("redkey_queue_tasks", "Tasks that wait for an agent.", labels=labels)
        age = GaugeMetricFamily("redkey_queue_oldest_seconds", "Age of the oldest task that waits.", labels=labels)
        figures = list(self.work())
        waiting: dict[tuple[str, ...], tuple[int, int]] = {} if self._named else {(): (0, now)}
        for one in (waits for found in figures for waits in found.waiting):
            name: tuple[str, ...] = (one.queue, one.role) if self._named else ()
            tasks, oldest = waiting.get(name, (0, now))
            waiting[name] = tasks + one.tasks, min(oldest, one.oldest)
        for named, (tasks, oldest) in waiting.items():
            depth.add_metric(named, tasks)
            age.add_metric(named, age_seconds(oldest, now))
        states = GaugeMetricFamily("redkey_tasks", "Tasks by state; ended ones of the last minute.", labels=("state",))
        total = sum((Counted(found.states) for found in figures), Counted())
        for state, count in total.items():
            states.add_metric((state,), count)
        workers = GaugeMetricFamily("redkey_workers", "Agents that are active and were seen lately.")
        workers.add_metric((), sum(found.workers for found in figures))
        yield from (depth, age, states, workers)


def _cumulative(buckets: list[int], bounds: Sequence[float] = _BUCKETS) -> list[tuple[str, float]]:
    """Counts up to each bound, as Prometheus wants them."""
    found: list[tuple[str, float]] = []
    count = 0
    for bound, one in zip((*bounds, float("inf")), buckets, strict=True):
        count += one
        found.append(("+Inf" if bound == float("inf") else str(bound), count))
    return found
