"""A Hedera topic that gives a workspace its order: messages are submitted once each, and read verified."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from redkey.errors import NetworkAway, NetworkRefused
from redkey.hedera.network import Network, Terms
from redkey.hedera.reader import TopicReader
from redkey.ledger.record import Head, Record, hedera_time

# How long to ask what became of a message: its transaction is valid for two minutes, then the mirror is final.
RESOLVE_SECONDS = 150.0
# How many transactions are tried in all, how often each is sent, and how the pauses between grow.
_TRANSACTIONS, _ATTEMPTS, _PAUSE_SECONDS = 3, 6, 0.2


class HederaTopic:
    """One topic of a network, as an operator writes to it (`redkey.ledger.network.NetworkTopic`)."""

    def __init__(self, client: Network, topic: str, terms: Callable[[int], Terms]) -> None:
        """`terms` says what may be paid for a message of so many bytes, and which keys sign it."""
        self._client, self._terms = client, terms
        self.network, self.topic, self.payer = client.addresses.name, topic, client.operator.account

    def submit(self, message: bytes) -> int:
        """Submit a message exactly once; return its sequence.

        Another transaction is sent only when the one before it is known to be lost.
        """
        for _ in range(_TRANSACTIONS):
            name = self._client.ids.draw()
            self._send(message, name)
            found = self._client.wait(name, seconds=RESOLVE_SECONDS)
            if found.state == "recorded":
                return found.sequence or self._sequence_at(found.timestamp)
            if found.state == "failed":
                text = f"the network refused the message ({found.status}); check the topic and the submit key"
                raise NetworkRefused(text, status=found.status)
            if found.state == "pending":
                text = f"what became of {name} is not known; retry with the same idempotency key"
                raise NetworkAway(text, code="submission_in_doubt")
        raise NetworkAway(f"{_TRANSACTIONS} transactions did not reach consensus; try again later", code="network_busy")

    def _send(self, message: bytes, name: str) -> None:
        """Send a transaction until a node has it: under one id it is recorded once, however often it is sent."""
        terms = self._terms(len(message))
        for attempt in range(_ATTEMPTS):
            try:
                self._client.submit(self.topic, message, name, terms)
            except NetworkAway:
                time.sleep(_PAUSE_SECONDS * attempt)
            else:
                return

    def read(self, head: Head) -> Sequence[Record]:
        """Return the verified messages after a head, at most one page."""
        return TopicReader(self._client.mirror, self.topic, head).read()

    def _sequence_at(self, timestamp: int) -> int:
        """Return the sequence of the message with this consensus time: the mirror's transactions do not name it."""
        rows = self._client.mirror.messages(self.topic, timestamp=f"eq:{hedera_time(timestamp)}", limit=1)
        if not rows:
            raise NetworkAway("the mirror shows the transaction and not its message yet", code="submission_in_doubt")
        return int(rows[0]["sequence_number"])
