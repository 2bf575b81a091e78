"""Fees that are shown, against the published price table: for a million wires of real sizes."""

from __future__ import annotations

import json
from decimal import Decimal
from itertools import cycle, islice
from pathlib import Path

import pytest
from hiero_sdk_python import PrivateKey
from structlog.testing import capture_logs

from redkey.hedera.network import Network
from redkey.hedera.prices import FeeTerms, TopicPrices
from redkey.hedera.standin.pages import MirrorError
from redkey.hedera.standin.rest import MirrorRest
from redkey.hedera.standin.server import StandIn
from redkey.ledger.fees import USD, ExchangeRate, Price, submit_price
from redkey.services.network_fees import FeeBook, put_book
from redkey.stores.opening import open_store
from tests.harness.ordered import ListTopic, OrderedDesk
from tests.harness.server import serving

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "agent-wire"
MILLION = 1_000_000
TABLE = Path(__file__).with_name("vectors") / "prices.json"


def published(size: int, signatures: int = 1) -> Decimal:
    """The price of a message in dollars by the published figures, worked out apart from the code."""
    table = json.loads(TABLE.read_text())["ConsensusSubmitMessage"]
    base, byte, signature = (Decimal(table[name]) for name in ("base_usd", "byte_usd", "signature_usd"))
    return base + byte * max(0, size - table["included_bytes"]) + signature * (signatures - 1)


@pytest.mark.parametrize("signatures", [1, 2])
def test_the_price_of_every_size_is_the_published_one(signatures: int) -> None:
    for size in range(1, 1025):
        assert submit_price(size, signatures=signatures) == published(size, signatures) * USD


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


def a_million(rate: ExchangeRate) -> tuple[FeeBook, Decimal]:
    """A book with a million messages of real sizes, and their price by the published table."""
    sizes = real_sizes()
    assert len(set(sizes)) > 20
    book, table, now = FeeBook(), Decimal(0), 10**18
    prices = {size: published(size) for size in set(sizes)}
    for size in islice(cycle(sizes), MILLION):
        # As the network charges it: in tinybars, at its rate. As it is booked: from what was charged.
        charged = rate.tinybars(int(prices[size] * USD))
        book = book.paid(Price(charged, rate.tinycents(charged)), Price(0, 0), now)
        table += prices[size]
    assert book.messages == MILLION
    return book, table


@pytest.mark.parametrize("rate", [ExchangeRate(521_339, 30_000), ExchangeRate(1, 7)])
def test_what_is_booked_for_a_million_wires_is_within_one_percent_of_the_table(rate: ExchangeRate) -> None:
    book, table = a_million(rate)
    assert abs(Decimal(book.tinycents) / USD - table) <= table / 100


def test_what_is_shown_for_a_million_wires_is_within_one_percent_of_the_table(tmp_path: Path) -> None:
    book, table = a_million(ExchangeRate(12, 1))
    with serving(tmp_path) as server:
        server.stop()
        with open_store(server.data, create=False) as store:
            [topic] = store.topics()
            with store.write(topic) as unit:
                put_book(unit, topic, book)
    with serving(tmp_path) as server, server.client() as client:
        for path in ("/usage", "/billing/credits"):
            shown = client.get(path).json["ledgerFees"]
            assert shown["messages"] == MILLION
            assert abs(Decimal(str(shown["amount"])) - table) <= table / 100
            assert shown["credits"] == pytest.approx(shown["amount"] * 1000)


def test_a_change_of_the_networks_prices_is_followed_and_told(standin: StandIn, network: Network, topic: str) -> None:
    """For every size, with one signature and with two; to the tinycent."""
    for percent in (100, 250):
        standin.state.percent = percent
        with capture_logs() as logs:
            for keys in ((), (PrivateKey.generate_ed25519(),)):
                prices = TopicPrices(network, topic, FeeTerms(USD), keys)
                prices.refresh()
                for size in (1, 100, 101, 600, 1024):
                    expected = submit_price(size, signatures=1 + len(keys)) * percent // 100
                    assert abs(prices.known_price(size).tinycents - expected) <= 1
        assert [one["code"] for one in logs] == ([] if percent == 100 else ["prices_changed"] * 2)


def test_a_mirror_without_estimates_leaves_the_published_table(
    network: Network, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("redkey.hedera.standin.rest.MirrorRest.estimate", _no_estimates)
    prices = TopicPrices(network, topic, FeeTerms(USD))
    prices.refresh()
    assert prices.known_price(600).tinycents == submit_price(600)


def _no_estimates(self: MirrorRest, body: bytes) -> None:
    raise MirrorError(404, "Not found")
