"""Fees that are shown, against the published price table: for a million wires of real sizes."""

from __future__ import annotations

from itertools import cycle, islice
from pathlib import Path

import pytest

from redkey.ledger.fees import USD, ExchangeRate, Price, submit_price
from redkey.services.network_fees import FeeBook, FeeLimits
from tests.harness.ordered import ListTopic, OrderedDesk

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "agent-wire"
MILLION = 1_000_000
NO_LIMITS = FeeLimits(10**9 * USD, 10**9 * USD)


def real_sizes() -> list[int]:
    """The sizes of the messages of a task's whole life, and of every event that there is a fixture for."""
    topic = ListTopic()
    desk = OrderedDesk(topic, begin=True)
    agent, task = desk.agent("ada"), desk.task()
    desk.complete(desk.hold(task, agent))
    lived = [len(message.wire) for message in topic.messages]
    stated = [
        len(file.read_bytes().strip()) for file in sorted(FIXTURES.glob("**/*.json")) if "invalid" not in file.name
    ]
    return [*lived, *(min(1024, size) for size in stated)]


@pytest.mark.parametrize("rate", [ExchangeRate(12, 1), ExchangeRate(521_339, 30_000), ExchangeRate(1, 7)])
def test_what_is_shown_for_a_million_wires_is_within_one_percent_of_the_table(rate: ExchangeRate) -> None:
    sizes = real_sizes()
    assert len(set(sizes)) > 20
    book, table, now = FeeBook(), 0, 10**18
    prices = {size: submit_price(size) for size in set(sizes)}
    for size in islice(cycle(sizes), MILLION):
        # As the network charges it: in tinybars, at its rate. As it is booked: from what was charged.
        charged = rate.tinybars(prices[size])
        book = book.paid(Price(charged, rate.tinycents(charged)), Price(0, 0), now)
        table += prices[size]
    shown = book.tinycents / USD
    assert book.messages == MILLION
    assert abs(shown - table / USD) <= 0.01 * table / USD
    # What the facts say of one message of 600 bytes, and of the largest.
    assert submit_price(600) / USD == pytest.approx(0.00114)
    assert submit_price(1024) / USD == pytest.approx(0.00143, abs=0.000005)
