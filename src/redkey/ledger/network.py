"""A topic of a public network, as a workspace that is ordered by it needs it.

The network gives every message its place, its time and its payer, and a running hash over all of them. What messages
mean is decided by those who read them. Adapters live beside the stores; all calls wait, so servers make them in
threads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, Protocol

import msgspec

from redkey.errors import LedgerError
from redkey.ledger.fees import Price
from redkey.ledger.record import Head, Record, entity
from redkey.ledger.running_hash import chained

# The shard of the local topics that hold what follows from a topic of a network; local topics proper have shard 1.
_SHARDS = {"mainnet": 2, "testnet": 3, "previewnet": 4}
_OTHER_SHARD = 5


class MessageRefused(LedgerError):
    """A message that a mirror shows does not continue the topic; ask another mirror."""

    code = "message_refused"


class Charge(msgspec.Struct, frozen=True):
    """What became of a transaction, and what it cost: a fee is charged for what failed after consensus too."""

    state: Literal["recorded", "failed", "lost", "pending"]
    price: Price | None = None


class NetworkTopic(Protocol):
    """One topic of a network."""

    # The name of the network, the id of the topic, and the account that pays for what is submitted here.
    network: str
    topic: str
    payer: str

    @property
    def noticed(self) -> Mapping[str, int]:
        """How often a mirror showed rows that were `repeated`, `changed` or `malformed`, or left some out (`gap`)."""

    def listen(self, heard: Callable[[], None]) -> Callable[[], None]:
        """Call `heard` in a thread when a message may have come; the result ends that. Nothing else depends on it."""

    def refresh(self) -> None:
        """Ask the network for what prices depend on: its exchange rate, the topic's own fee, the balance."""

    def price(self, size: int, reserved: int = 0) -> Price:
        """Return what a message costs by what the network said last; asks nobody.

        `reserved` tinycents of the balance are spoken for. NetworkRefused if it may not be paid, NetworkAway if
        prices are not known yet.
        """

    def draw(self) -> str:
        """Return a new transaction id."""

    def submit(self, message: bytes, transaction_id: str) -> int:
        """Submit a message exactly once, whatever happens on the way; return its sequence once it has one.

        Raise a RedKeyError when the network did not take it, or when it is not known whether it did.
        """

    def charged(self, transaction_id: str) -> Charge:
        """Return what became of a transaction and what it cost, by the network's records; NetworkAway."""

    def read(self, head: Head) -> Sequence[Record]:
        """Return the messages after a head, in order and without gap, as far as a mirror shows them."""


def projected_topic(network: str, topic: str) -> str:
    """Return the id of the local topic that holds what follows from a topic of a network.

    Every reader gives it the same id, so every reader computes the same hashes. Its shard is not Hedera's, so no local
    record can be taken for one of the network.
    """
    shard, realm, num = entity(topic)
    if shard != 0:
        raise ValueError(f"{topic!r} is not a topic of shard 0")
    return f"{_SHARDS.get(network, _OTHER_SHARD)}.{realm}.{num}"


def network_topic(local: str) -> str:
    """Return the topic of a network whose consequences a local topic holds."""
    _, realm, num = entity(local)
    return f"0.{realm}.{num}"


def is_projected(topic: str) -> bool:
    """Return whether a local topic holds what follows from a topic of a network."""
    return topic[0] in "2345" and topic[1] == "."


def check_next(head: Head, message: Record) -> Head:
    """Return the head of a topic after its next message; raise MessageRefused if the message does not follow it."""
    place = f"message {message.sequence} of topic {message.topic}"
    if message.sequence != head.sequence + 1:
        text = f"{place} follows message {head.sequence}: the mirror skipped or repeated some; ask another mirror"
        raise MessageRefused(text, code="network_gap")
    expected, _ = chained(head, message.topic, message.payer, message.timestamp, message.wire)
    if expected != message:
        text = f"{place} has a running hash that is not the hash of what it says; ask another mirror"
        raise MessageRefused(text, code="running_hash_wrong")
    if message.timestamp <= head.timestamp:
        raise MessageRefused(f"{place} is not later than the one before it; ask another mirror", code="network_time")
    return Head(message.sequence, message.timestamp, message.running_hash)
