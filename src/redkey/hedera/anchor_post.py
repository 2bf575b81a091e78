"""Anchors on their way to a Hedera topic and back from its mirror, for `redkey.services.anchoring`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from redkey.errors import NetworkAway, NetworkRefused, ProofRefused
from redkey.hedera.network import Network, Resolution
from redkey.hedera.prices import FeeTerms, TopicPrices
from redkey.ledger.fees import Price
from redkey.ledger.mirror import check_rows, parse_row
from redkey.ledger.record import hedera_time
from redkey.services.anchoring import Found, check_affordable


class AnchorPost:
    """One operator and one topic."""

    def __init__(self, network: Network, topic: str, terms: FeeTerms) -> None:
        self._network, self._topic = network, topic
        self._prices = TopicPrices(network, topic, terms)
        self.network = network.addresses.name

    def draw(self) -> str:
        """Return a new transaction id of the operator."""
        return self._network.ids.draw()

    def close(self) -> None:
        """Close all connections."""
        self._network.close()

    def price(self, message: bytes) -> Price:
        """Return the price of a message by the price table and the network's exchange rate."""
        return self._prices.price(len(message))

    def check_balance(self, price: Price) -> None:
        """Raise Refused (402) if the account cannot pay a price; warn if little is left."""
        check_affordable(self._prices.balance(), price, self._network.operator.account)

    def submit(self, message: bytes, transaction_id: str) -> None:
        """Send a message; a repeat with the same id is recorded once."""
        self._network.submit(self._topic, message, transaction_id, self._prices.terms())

    def find(self, message: bytes, transaction_id: str) -> Found:
        """Find out what became of a message; it counts as recorded when the mirror shows it and its hash fits."""
        found = self._network.resolve(transaction_id)
        if found.state in ("pending", "lost"):
            return Found(found.state)
        if found.fee is None:
            # A receipt names no fee; the mirror does, a few seconds later.
            found = self._network.resolve_by_mirror(transaction_id)
        if found.fee is None:
            return Found("pending")
        fee = Price(found.fee, self._prices.rate().tinycents(found.fee))
        if found.state == "failed":
            return Found("failed", found.status, fee)
        rows = self._rows(found, message)
        return Found("recorded", found.status, fee, rows) if rows else Found("pending")

    def _rows(self, found: Resolution, message: bytes) -> tuple[dict[str, Any], ...]:
        """Return the rows of a message and of the one before it, verified; none if the mirror does not show them."""
        mirror, time_text = self._network.mirror, hedera_time(found.timestamp)
        rows = [row for row in mirror.messages(self._topic, timestamp=time_text) if _is_at(row, time_text)]
        if not rows:
            return ()
        sequence = rows[0].get("sequence_number", 0)
        if isinstance(sequence, int) and sequence > 1:
            rows = [*mirror.messages(self._topic, sequencenumber=f"eq:{sequence - 1}")[:1], rows[0]]
        return tuple(rows) if self._is_proof(rows, message) else ()

    def _is_proof(self, rows: Sequence[dict[str, Any]], message: bytes) -> bool:
        try:
            parsed = [parse_row(row) for row in rows]
        except ProofRefused as refused:
            raise NetworkAway(f"the mirror shows a wrong row: {refused.message}", code="mirror_changed") from refused
        last = next((one for one in check_rows(parsed) if one.row.sequence == parsed[-1].sequence), None)
        if last is None or last.status != "verified" or last.row.topic != self._topic:
            reason = last.message if last is not None else "the row is missing"
            raise NetworkAway(f"the mirror's row cannot be verified: {reason}", code="mirror_changed")
        if last.row.message != message or last.row.payer != self._network.operator.account:
            text = f"message {last.row.sequence} of {self._topic} has the transaction id of ours and another content"
            raise NetworkRefused(text, code="anchor_foreign")
        return True


def _is_at(row: dict[str, Any], time_text: str) -> bool:
    return bool(row.get("consensus_timestamp") == time_text)
