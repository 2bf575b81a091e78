"""Figures for operators, in Prometheus' text: sums over all workspaces, nothing of any single one.

Requests are counted in plain integers, which cost almost nothing, and become Prometheus' families when somebody asks.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry, Counter, Gauge
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

MEDIA_TYPE = CONTENT_TYPE_LATEST
_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0, 60.0)


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
    """The figures of one server."""

    def __init__(self) -> None:
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


def _cumulative(buckets: list[int]) -> list[tuple[str, float]]:
    """Counts up to each bound, as Prometheus wants them."""
    found: list[tuple[str, float]] = []
    count = 0
    for bound, one in zip((*_BUCKETS, float("inf")), buckets, strict=True):
        count += one
        found.append(("+Inf" if bound == float("inf") else str(bound), count))
    return found
