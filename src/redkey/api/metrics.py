"""Figures for operators, in Prometheus' text: sums over all workspaces, nothing of any single one."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

MEDIA_TYPE = CONTENT_TYPE_LATEST
_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0, 60.0)

# Counts one answer of an operation: status and seconds.
Observe = Callable[[int, float], None]


class Metrics:
    """The figures of one server."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "redkey_requests", "Requests answered.", ("method", "route", "status"), registry=self._registry
        )
        self._seconds = Histogram(
            "redkey_request_seconds",
            "Time from a request's first byte to its answer.",
            ("method", "route"),
            buckets=_BUCKETS,
            registry=self._registry,
        )
        self.records = Counter("redkey_records", "Records appended by this process.", registry=self._registry)
        self.commits = Counter("redkey_commits", "Units committed by this process.", registry=self._registry)

    def gauge(self, name: str, text: str, read: Callable[[], float]) -> None:
        """A figure that is read when somebody asks."""
        Gauge(f"redkey_{name}", text, registry=self._registry).set_function(read)

    def observer(self, method: str, route: str) -> Observe:
        """Counts the answers of one operation; its children are looked up once a status."""
        seconds = self._seconds.labels(method, route)
        children: dict[int, Counter] = {}

        def observe(status: int, took: float) -> None:
            child = children.get(status)
            if child is None:
                child = children[status] = self._requests.labels(method, route, str(status))
            child.inc()
            seconds.observe(took)

        return observe

    def text(self) -> bytes:
        return generate_latest(self._registry)
