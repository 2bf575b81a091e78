"""The network's records over a long time: mirrors look at 60 days in one request, and the links lead through all."""

from __future__ import annotations

import time
from collections.abc import Iterator

import httpx2
import pytest
from hiero_sdk_python import PrivateKey

from redkey.errors import NetworkAway
from redkey.hedera.network import Network, Operator
from redkey.hedera.prices import FeeTerms
from redkey.hedera.reconciling import charged
from redkey.hedera.standin.rest import MirrorRest
from redkey.hedera.standin.server import StandIn
from redkey.hedera.topics import HederaTopics, hand_over
from redkey.ledger.fees import USD
from tests.harness.hedera import addresses_of, create_topic

DAY = 86_400 * 10**9


class Years:
    """A network and an operator whose clock a test moves on by days."""

    def __init__(self) -> None:
        self.ahead = 0
        self.standin = StandIn(clock=self.now)

    def now(self) -> int:
        return time.time_ns() + self.ahead

    def pass_days(self, days: int) -> None:
        self.ahead += days * DAY


@pytest.fixture
def years() -> Iterator[Years]:
    """A network without faults."""
    made = Years()
    with made.standin:
        yield made


@pytest.fixture
def network(years: Years) -> Iterator[Network]:
    """An operator on that network, with the network's clock."""
    operator = Operator(*years.standin.open_account())
    opened = Network(addresses_of(years.standin), operator, clock=years.now)
    yield opened
    opened.close()


def write(network: Network, topic: str) -> str:
    """Write a message; return its transaction."""
    opened = HederaTopics(network, FeeTerms(USD), lambda _: ()).open(topic)
    name = network.ids.draw()
    opened.submit(b"a message", name)
    return name


def paid(years: Years, account: str) -> int:
    """What the network took from an account."""
    return -sum(one.transfers.get(account, 0) for one in years.standin.state.history)


def test_reconcile_finds_what_was_paid_over_years(years: Years, network: Network) -> None:
    """From the creation of the topic, with months of silence in between and after."""
    years.pass_days(400)
    topic = create_topic(network, network.operator.key)
    before = write(network, topic)
    years.pass_days(200)
    after = write(network, topic)
    years.pass_days(70)
    found = charged(network, topic, changes=True)
    assert {before, after} <= set(found)
    assert len(found) == 3, "the creation too"
    assert sum(tinybars for _, tinybars in found.values()) == paid(years, network.operator.account)
    assert [message for message, _ in charged(network, topic).values()] == [1, 1]


def test_the_last_change_of_a_topic_is_found_though_it_is_months_ago(years: Years, network: Network) -> None:
    topic = create_topic(network, network.operator.key)
    years.pass_days(90)
    hand_over(network, topic, PrivateKey.generate_ed25519(), keeps_writing=True)
    years.pass_days(200)
    topics = HederaTopics(network, FeeTerms(USD), lambda _: ())
    name = topics.last_change(topic)
    assert name == next(reversed(charged(network, topic, changes=True)))
    assert topics.last_change("0.0.424242") == ""


@pytest.mark.parametrize("order", ["asc", "desc"])
def test_a_page_of_the_stand_in_looks_at_sixty_days_and_links_to_the_next(
    years: Years, network: Network, order: str
) -> None:
    topic = create_topic(network, network.operator.key)
    for _ in range(2):
        years.pass_days(150)
        write(network, topic)
    years.pass_days(1)
    account = network.operator.account
    target: str | None = f"/api/v1/transactions?account.id={account}&order={order}&timestamp=gte:0&limit=100"
    if order == "asc":
        began = years.standin.state.topics[topic].created_at
        target = f"/api/v1/transactions?account.id={account}&order=asc&timestamp=gte:{began // 10**9}&limit=100"
    pages, names = 0, list[str]()
    while target is not None:
        answer = httpx2.get(years.standin.rest + target).json()
        names += [one["transaction_id"] for one in answer["transactions"]]
        target, pages = answer["links"]["next"], pages + 1
    assert len(set(names)) == len(names) == 3
    assert pages >= 5, "300 days"
    everything = [one["transaction_id"] for one in answer["transactions"]]
    assert len(everything) < 3, "no page had all of them"


@pytest.mark.parametrize(
    "link",
    [
        "https://elsewhere.example/api/v1/transactions?limit=1",
        "//elsewhere.example/api/v1/transactions?limit=1",
        "/api/v1/accounts?limit=1",
        "always the same",
    ],
)
def test_a_link_that_leads_nowhere_is_refused(link: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mirror is not trusted: neither with the operator's requests nor with an end."""

    def answer(self: MirrorRest, pairs: object) -> dict[str, object]:
        following = "/api/v1/transactions?limit=1" if link == "always the same" else link
        return {"transactions": [], "links": {"next": following}}

    monkeypatch.setattr("redkey.hedera.standin.rest.MirrorRest._transactions", answer)
    with StandIn() as lying:
        operator = Operator(*lying.open_account())
        asked = Network(addresses_of(lying), operator)
        topic = create_topic(asked, operator.key)
        with pytest.raises(NetworkAway) as refused:
            charged(asked, topic)
        asked.close()
    assert refused.value.code == "mirror_unusable"
