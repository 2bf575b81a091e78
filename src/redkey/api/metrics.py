"""Metrics for operators, in Prometheus' text format: sums over all workspaces, and queues by name for operators.

Requests are counted in plain integers, which cost almost nothing, and become Prometheus' metrics when they are read.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections import Counter as Counted
from collections.abc import Callable, Iterable, Iterator, Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from redkey.errors import StoreError
from redkey.services.figures import COMMIT_SECONDS, UNIT_SIZES, Happened, WorkFigures, age_seconds

MEDIA_TYPE = CONTENT_TYPE_LATEST
_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0, 60.0)

_CLAIMS = {"task.claimed": "won", "task.claim_missed": "missed", "task.claim_rejected": "rejected"}
_ENDS = {"task.complete": "completed", "task.failed": "failed", "task.cancelled": "cancelled"}
_BY_NAME = "; for operators by queue and role"
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
    """The metrics of one server."""

    def __init__(self) -> None:
        self._named = False
        self.happened = Happened()
        self.work: Callable[[], Iterable[WorkFigures]] = tuple
        self._registry = CollectorRegistry()
        self._observers: list[Observer] = []
        self._registry.register(self)
        self.records = self.counter("records", "Records appended by this process.")
        self.commits = self.counter("commits", "Units committed by this process.")

    def counter(self, name: str, text: str) -> Counter:
        """Create a metric that only grows."""
        return Counter(f"redkey_{name}", text, registry=self._registry)

    def gauge(self, name: str, text: str, read: Callable[[], float]) -> None:
        """Create a metric that is computed when it is read."""
        Gauge(f"redkey_{name}", text, registry=self._registry).set_function(read)

    def observer(self, method: str, route: str) -> Observer:
        """Create a counter for the answers of one operation."""
        self._observers.append(Observer(method, route))
        return self._observers[-1]

    def text(self, *, named: bool = False) -> bytes:
        """The metrics as they are read. With `named`, queues and roles are named, which only operators may see."""
        # The registry calls `collect` without arguments, and nothing else runs until it is done.
        self._named = named
        return generate_latest(self._registry)

    def collect(self) -> Iterator[Metric]:
        """The metrics of the observers; Prometheus' registry calls this."""
        requests = CounterMetricFamily("redkey_requests", "Requests answered.", labels=("method", "route", "status"))
        seconds = HistogramMetricFamily(
            "redkey_request_seconds", "Time from a request's headers to its answer.", labels=("method", "route")
        )
        for observer in self._observers:
            for status, count in observer.statuses.items():
                requests.add_metric((observer.method, observer.route, str(status)), count)
            if observer.statuses:
                seconds.add_metric((observer.method, observer.route), _cumulative(observer.buckets), observer.total)
        yield requests
        yield seconds
        yield from self._happened()
        yield from self._work(time.time_ns())

    def _happened(self) -> Iterator[Metric]:
        types = self.happened.types
        for name, text, label, labels_by_type in (
            ("claims", "Claims by their outcome.", "outcome", _CLAIMS),
            ("tasks_ended", "Attempts at tasks that ended.", "how", _ENDS),
            ("leases_ended", "Holds that ended without their holder.", "how", _LEASES),
        ):
            family = CounterMetricFamily(f"redkey_{name}", text, labels=(label,))
            for type_, value in labels_by_type.items():
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
        depth = GaugeMetricFamily("redkey_queue_tasks", f"Tasks that wait for an agent{_BY_NAME}.", labels=labels)
        age = GaugeMetricFamily(
            "redkey_queue_oldest_seconds", f"Age of the oldest task that waits{_BY_NAME}.", labels=labels
        )
        try:
            figures = list(self.work())
        except StoreError:
            # A store that cannot be read is when the other figures are needed most.
            return
        waiting: dict[tuple[str, ...], tuple[int, int]] = {} if self._named else {(): (0, now)}
        for queue in (waiting_queue for work in figures for waiting_queue in work.waiting):
            name: tuple[str, ...] = (queue.queue, queue.role) if self._named else ()
            tasks, oldest = waiting.get(name, (0, now))
            waiting[name] = tasks + queue.tasks, min(oldest, queue.oldest)
        for named, (tasks, oldest) in waiting.items():
            depth.add_metric(named, tasks)
            age.add_metric(named, age_seconds(oldest, now))
        states = GaugeMetricFamily("redkey_tasks", "Tasks by state; ended ones of the last minute.", labels=("state",))
        total = sum((Counted(work.states) for work in figures), Counted())
        for state, count in total.items():
            states.add_metric((state,), count)
        workers = GaugeMetricFamily("redkey_workers", "Agents that are active and were seen lately.")
        workers.add_metric((), sum(work.workers for work in figures))
        yield from (depth, age, states, workers)


def _cumulative(buckets: list[int], bounds: Sequence[float] = _BUCKETS) -> list[tuple[str, float]]:
    """Cumulative counts up to each bound, as Prometheus expects them."""
    cumulative: list[tuple[str, float]] = []
    count = 0
    for bound, bucket in zip((*bounds, float("inf")), buckets, strict=True):
        count += bucket
        cumulative.append(("+Inf" if bound == float("inf") else str(bound), count))
    return cumulative
