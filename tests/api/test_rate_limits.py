"""Rate limits: a bucket for each key, shown in every answer, refused with the time to wait."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from redkey.config import Rate
from redkey.http.limits import Buckets, Limiter
from redkey.http.problems import Declined
from tests.harness.server import Server


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_without_a_rate_nothing_is_counted() -> None:
    limiter = Limiter(Rate(), Clock())
    assert [limiter.take("k") for _ in range(1000)] == [[]] * 1000


def test_a_bucket_gives_its_burst_and_then_its_rate() -> None:
    clock = Clock()
    limiter = Limiter(Rate(per_second=2, burst=3), clock)
    for left in (2, 1, 0):
        assert (b"ratelimit", f'"key";r={left};t={-(-(3 - left) // 2)}'.encode()) in limiter.take("k")
    with pytest.raises(Declined) as refused:
        limiter.take("k")
    assert (refused.value.status, refused.value.headers["retry-after"]) == (429, "1")
    clock.now += 0.5
    limiter.take("k")
    with pytest.raises(Declined):
        limiter.take("k")


def test_keys_have_buckets_of_their_own_and_quiet_ones_fill_up() -> None:
    clock = Clock()
    limiter = Limiter(Rate(per_second=1, burst=1), clock)
    limiter.take("a")
    limiter.take("b")
    with pytest.raises(Declined):
        limiter.take("a")
    clock.now += 3600
    limiter.take("a")
    with pytest.raises(Declined):
        limiter.take("a")


def test_many_keys_do_not_fill_the_memory() -> None:
    clock = Clock()
    limiter = Limiter(Rate(per_second=10, burst=10), clock)
    for number in range(50_000):
        clock.now += 0.001
        limiter.take(str(number))
    assert len(limiter._buckets) <= 10_000


def test_a_caller_beyond_its_rate_is_told_to_wait(start: Callable[..., Server]) -> None:
    # So slow a rate that a busy machine is not given another request before it has asked for the last one.
    server = start(config="[rate]\nper_second = 0.01\nburst = 3\n")
    with server.client() as client:
        first = client.get("/queues")
        assert (first.status, first.headers["ratelimit"]) == (200, '"key";r=2;t=100')
        assert first.headers["ratelimit-policy"] == '"key";q=3;w=300'
        assert [client.get("/queues").status for _ in range(3)] == [200, 200, 429]
        refused = client.get("/queues")
        assert refused.json["code"] == "rate_limited"
        assert 1 <= int(refused.headers["retry-after"]) <= 100
        assert client.get("/healthz").status == 200


def test_servers_share_the_rate_equally_and_get_it_back() -> None:
    clock, servers = Clock(), 2
    buckets = Buckets(Rate(per_second=4, burst=8), clock, lambda: servers)
    assert (buckets.burst, buckets.per_second) == (4, 2)
    assert [buckets.take("k") for _ in range(4)] == [3, 2, 1, 0]
    assert buckets.take("k") < 0
    assert buckets.wait_seconds(-1) == 1
    clock.now += 1
    assert buckets.take("k") == 1
    servers = 1
    clock.now += 3600
    assert [buckets.take("k") for _ in range(8)] == [7, 6, 5, 4, 3, 2, 1, 0]
    assert buckets.take("k") < 0
    servers = 100
    assert buckets.burst == 1
