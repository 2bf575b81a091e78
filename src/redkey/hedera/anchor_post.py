"""Anchors on their way to a Hedera topic and back from its mirror, for `redkey.services.anchoring`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from threading import Lock
from typing import Any

import structlog

from redkey.errors import NetworkAway, NetworkRefused, ProofRefused
from redkey.hedera.network import Network, Resolution, Terms
from redkey.hedera.refusals import refusal
from redkey.ledger.fees import ExchangeRate, submit_price
from redkey.ledger.mirror import check_rows, parse_row
from redkey.ledger.record import hedera_time
from redkey.services.anchoring import Found, check_affordable
from redkey.services.network_fees import Price

_log = structlog.get_logger("redkey.hedera")
# How long an exchange rate is used before it is asked for again.
_RATE_SECONDS = 300.0


class AnchorPost:
    """One operator, one topic, and the limits of its fees in tinycents."""

    def __init__(
        self, network: Network, topic: str, *, max_fee: int, max_custom_fee: int = 0, low_balance: int = 0
    ) -> None:
        """`low_balance` is in tinybars."""
        self._network, self._topic = network, topic
        self._max_fee, self._max_custom_fee, self._low_balance = max_fee, max_custom_fee, low_balance
        self.network = network.addresses.name
        self._rate: tuple[float, ExchangeRate] | None = None
        self._lock = Lock()

    def draw(self) -> str:
        """Return a new transaction id of the operator."""
        return self._network.ids.draw()

    def close(self) -> None:
        """Close all connections."""
        self._network.close()

    def rate(self) -> ExchangeRate:
        """Return the network's exchange rate, asked for every few minutes."""
        with self._lock:
            if self._rate is None or time.monotonic() - self._rate[0] > _RATE_SECONDS:
                self._rate = time.monotonic(), self._network.mirror.exchange_rate()
            return self._rate[1]

    def price(self, message: bytes) -> Price:
        """Return the price of a message by the price table and the network's exchange rate."""
        rate, custom = self.rate(), self._topics_fee()
        tinycents = submit_price(len(message), custom_fees=custom > 0)
        if tinycents > self._max_fee:
            raise refusal("INSUFFICIENT_TX_FEE", self._network.operator.account, self.network)
        custom_tinycents = custom * rate.cents // rate.hbars
        if custom_tinycents > self._max_custom_fee:
            raise refusal("MAX_CUSTOM_FEE_LIMIT_EXCEEDED", self._network.operator.account, self.network)
        return Price(rate.tinybars(tinycents) + custom, tinycents + custom_tinycents)

    def check_balance(self, price: Price) -> None:
        """Raise Refused (402) if the account cannot pay a price; warn if little is left."""
        account = self._network.operator.account
        found = self._network.mirror.account(account)
        if found is None:
            raise refusal("PAYER_ACCOUNT_NOT_FOUND", account, self.network)
        check_affordable(found.tinybars, price, account)
        if found.tinybars < self._low_balance:
            _log.warning("the balance is low; send HBAR to the account", account=account, code="balance_low")

    def submit(self, message: bytes, transaction_id: str) -> None:
        """Send a message; a repeat with the same id is recorded once."""
        rate = self.rate()
        terms = Terms(rate.tinybars(self._max_fee), rate.tinybars(self._max_custom_fee))
        self._network.submit(self._topic, message, transaction_id, terms)

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
        rate = self.rate()
        fee = Price(found.fee, found.fee * rate.cents // rate.hbars)
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

    def _topics_fee(self) -> int:
        """Return what the topic asks for itself, in tinybars; refuse a topic that would fail and cost a fee."""
        topic, account = self._network.mirror.topic(self._topic), self._network.operator.account
        if topic is None or topic.deleted:
            raise refusal("INVALID_TOPIC_ID", account, self.network)
        key = topic.submit_key
        is_simple = key is not None and key.kind in ("ED25519", "ECDSA_SECP256K1", "ECDSA_secp256k1")
        if key is not None and is_simple and key.key != self._network.operator.key.public_key().to_string_raw():
            raise refusal("UNAUTHORIZED", account, self.network)
        fees = topic.custom_fees.fixed_fees
        if any(fee.denominating_token_id for fee in fees):
            raise refusal("NO_VALID_MAX_CUSTOM_FEE", account, self.network)
        return sum(fee.amount for fee in fees)


def _is_at(row: dict[str, Any], time_text: str) -> bool:
    return bool(row.get("consensus_timestamp") == time_text)
