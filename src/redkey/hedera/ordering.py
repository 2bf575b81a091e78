"""A Hedera topic that gives a workspace its order: messages are submitted once each, and read verified."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence

import structlog

from redkey.errors import NetworkAway, NetworkRefused
from redkey.hedera.network import Network
from redkey.hedera.prices import TopicPrices
from redkey.hedera.reader import TopicReader
from redkey.hedera.refusals import refusal
from redkey.hedera.stream import Waker
from redkey.ledger.fees import Price
from redkey.ledger.network import Charge
from redkey.ledger.record import Head, Record, hedera_time

# How long to ask what became of a message: its transaction is valid for two minutes, then the mirror is final.
RESOLVE_SECONDS = 150.0
_log = structlog.get_logger("redkey.hedera")
# How often a message is sent under its id, and how the pauses between grow.
_ATTEMPTS, _PAUSE_SECONDS = 6, 0.2


class HederaTopic:
    """One topic of a network, as an operator writes to it (`redkey.ledger.network.NetworkTopic`)."""

    def __init__(self, client: Network, topic: str, prices: TopicPrices) -> None:
        self._client, self._prices = client, prices
        # Transactions that certainly were not recorded: nobody has to wait until they no longer can be.
        self._unsent: set[str] = set()
        # What was wrong in the mirror's rows; one thread reads at a time.
        self.noticed: Counter[str] = Counter()
        self.network, self.topic, self.payer = client.addresses.name, topic, client.operator.account

    def listen(self, heard: Callable[[], None]) -> Callable[[], None]:
        """Call `heard` when the mirror streams a message; what it says is read by REST."""
        addresses = self._client.addresses
        waker = Waker(addresses.mirror, self.topic, heard, tls=addresses.is_mirror_tls)
        waker.start()
        return waker.stop

    def refresh(self) -> None:
        """Ask the network for what prices depend on."""
        self._prices.refresh()

    def price(self, size: int, reserved: int = 0) -> Price:
        """Return what a message costs by what the network said last."""
        return self._prices.known_price(size, reserved)

    def draw(self) -> str:
        """Return a new transaction id."""
        return self._client.ids.draw()

    def submit(self, message: bytes, transaction_id: str) -> int:
        """Submit a message exactly once; return its sequence.

        Under one id a message is recorded once, however often it is sent. A caller that sends it again draws another
        id only when this one is known to be lost, or leaves it to the readers, who know a copy.
        """
        self._send(message, transaction_id)
        found = self._client.wait(transaction_id, seconds=RESOLVE_SECONDS)
        if found.state == "recorded":
            return found.sequence or self._sequence_at(found.timestamp)
        if found.state == "failed":
            raise refusal(found.status, self.payer, self.network)
        if found.state == "pending":
            text = f"what became of {transaction_id} is not known; retry with the same idempotency key"
            raise NetworkAway(text, code="submission_in_doubt")
        raise NetworkAway(f"{transaction_id} did not reach consensus; try again", code="network_busy")

    def charged(self, transaction_id: str) -> Charge:
        """Return what became of a transaction and what it cost, by the mirror's records."""
        if transaction_id in self._unsent:
            self._unsent.discard(transaction_id)
            return Charge("lost")
        found = self._client.resolve_by_mirror(transaction_id)
        if found.fee is None:
            return Charge(found.state)
        return Charge(found.state, Price(found.fee, self._prices.rate().tinycents(found.fee)))

    def _send(self, message: bytes, name: str) -> None:
        """Send a transaction until a node has it; NetworkRefused or NetworkAway when it certainly was not recorded."""
        terms, in_doubt = self._prices.terms(), False
        for attempt in range(_ATTEMPTS):
            try:
                self._client.submit(self.topic, message, name, terms)
            except NetworkAway as away:
                in_doubt = in_doubt or away.code == "submission_in_doubt"
                if attempt == _ATTEMPTS - 1 and not in_doubt:
                    self._unsent.add(name)
                    raise
                time.sleep(_PAUSE_SECONDS * attempt)
            except NetworkRefused:
                # An earlier attempt may have been recorded all the same: only `wait` knows.
                if not in_doubt:
                    self._unsent.add(name)
                    raise
                return
            else:
                return

    def read(self, head: Head) -> Sequence[Record]:
        """Return the verified messages after a head, at most one page."""
        known = set(self.noticed)
        reader = TopicReader(self._client.mirror, self.topic, head, noticed=self.noticed)
        try:
            return reader.read()
        finally:
            for kind in self.noticed.keys() - known:
                url, after = self._client.mirror.url, head.sequence
                _log.warning("a mirror shows wrong rows", topic=self.topic, kind=kind, after=after, mirror=url)

    def _sequence_at(self, timestamp: int) -> int:
        """Return the sequence of the message with this consensus time: the mirror's transactions do not name it."""
        rows = self._client.mirror.messages(self.topic, timestamp=f"eq:{hedera_time(timestamp)}", limit=1)
        if not rows:
            raise NetworkAway("the mirror shows the transaction and not its message yet", code="submission_in_doubt")
        return int(rows[0]["sequence_number"])
