"""The table of routes, and the metrics of each route."""

from __future__ import annotations

from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from redkey.api.metrics import Metrics
from redkey.api.surface import routes
from redkey.http.route import Route, Table
from redkey.shapes.operation import Operation


async def handler(call: Any) -> None: ...


def table(*paths: str) -> Table:
    return Table((Route(Operation("x", "GET", path), handler), path) for path in paths)


def found(made: Table, path: str) -> tuple[str, dict[str, str]] | None:
    match = made.find(path)
    if match is None:
        return None
    methods, segments = match
    endpoint, names = methods["GET"]
    return endpoint, {name: segments[index] for name, index in names}


def test_what_is_literal_comes_before_what_is_a_parameter() -> None:
    made = table("/queues/{queue_id}/tasks", "/queues/{queue_id}/{what}", "/queues/all/tasks", "/{anything}")
    assert found(made, "/queues/q/tasks") == ("/queues/{queue_id}/tasks", {"queue_id": "q"})
    assert found(made, "/queues/q/other") == ("/queues/{queue_id}/{what}", {"queue_id": "q", "what": "other"})
    assert found(made, "/queues/all/tasks") == ("/queues/all/tasks", {})
    assert found(made, "/x") == ("/{anything}", {"anything": "x"})


@pytest.mark.parametrize(
    "path", ["", "/", "/queues", "/queues/", "/queues//tasks", "/queues/q/tasks/", "queues/q/tasks"]
)
def test_a_parameter_is_never_empty_and_nothing_is_guessed(path: str) -> None:
    assert found(table("/queues/{queue_id}/tasks"), path) is None


def test_a_route_that_is_declared_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="declared twice"):
        table("/a/{b}", "/a/{c}")


def test_every_route_is_found_under_its_own_path() -> None:
    made = Table((route, route) for route in routes())
    for route in routes():
        match = made.find(route.operation.path.replace("{", "").replace("}", ""))
        assert match is not None
        assert match[0][route.operation.method][0].operation is route.operation


def test_figures_are_sums_that_prometheus_reads() -> None:
    metrics = Metrics()
    observe = metrics.observer("GET", "/queues/{queue_id}")
    metrics.observer("POST", "/never")
    metrics.gauge("waiting", "Who waits.", lambda: 3)
    for seconds in (0.0001, 0.002, 0.002, 70):
        observe(200, seconds)
    observe(404, 0.3)
    metrics.records.inc(7)
    samples = {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(metrics.text().decode())
        for sample in family.samples
        if not sample.name.endswith("_created")
    }
    labels = (("method", "GET"), ("route", "/queues/{queue_id}"))
    assert samples["redkey_requests_total", *labels, ("status", "200")] == 4
    assert samples["redkey_requests_total", *labels, ("status", "404")] == 1
    assert samples["redkey_request_seconds_count", *labels] == 5
    assert samples["redkey_request_seconds_bucket", ("le", "0.0025"), *labels] == 3
    assert samples["redkey_request_seconds_bucket", ("le", "60.0"), *labels] == 4
    assert samples["redkey_request_seconds_bucket", ("le", "+Inf"), *labels] == 5
    assert (samples["redkey_waiting",], samples["redkey_records_total",]) == (3, 7)
    assert not [name for name in samples if "/never" in str(name)]
