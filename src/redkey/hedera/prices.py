"""What messages to one topic cost: the network's prices and exchange rate, the topic's own fee, the balance.

Prices are what the mirror estimates for messages of this operator (HIP-1261); without estimates, the published table.

The network is asked beside the requests (`refresh`); a price is worked out from what it said last, so that it can be
known inside a unit.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from threading import Lock

import msgspec
import structlog
from hiero_sdk_python.crypto.private_key import PrivateKey

from redkey.errors import NetworkAway
from redkey.hedera.mirror import MirrorAccount, MirrorTopic
from redkey.hedera.network import Network, Terms
from redkey.hedera.refusals import refusal
from redkey.ledger.fees import INCLUDED_BYTES, LARGEST_MESSAGE, USD, ExchangeRate, Price, Tariff, published_tariff

_log = structlog.get_logger("redkey.hedera")
# How long an exchange rate is used before it is asked for again.
_RATE_SECONDS = 300.0
# The sizes of messages whose prices are asked for, and the relative change of a price that is logged.
_ESTIMATED_SIZES, _NOTICED_CHANGE = (INCLUDED_BYTES, LARGEST_MESSAGE), 0.01
_SIMPLE_KEYS = ("ED25519", "ECDSA_SECP256K1", "ECDSA_secp256k1")


class FeeTerms(msgspec.Struct, frozen=True):
    """The highest fee of a message and of what a topic asks for itself, in tinycents; the low balance in tinybars."""

    max_fee: int
    max_custom_fee: int = 0
    low_balance: int = 0


class TopicPrices:
    """The prices of one topic for one operator. Safe to use from several threads."""

    def __init__(self, network: Network, topic: str, terms: FeeTerms, keys: tuple[PrivateKey, ...] = ()) -> None:
        """`keys` sign beside the operator's: the submit key of a topic that somebody else owns."""
        self._network, self._topic, self._limits, self._keys = network, topic, terms, keys
        self._rate: tuple[float, ExchangeRate] | None = None
        self._custom: int | None = None
        # What the mirror said that messages cost; None if it has no estimates, and when it was asked last.
        self._tariff: Tariff | None = None
        self._tariff_at = -math.inf
        self._balance: int | None = None
        self._is_low = False
        self._lock = Lock()

    def rate(self) -> ExchangeRate:
        """Return the network's exchange rate, asked for every few minutes."""
        with self._lock:
            if self._rate is None or time.monotonic() - self._rate[0] > _RATE_SECONDS:
                self._rate = time.monotonic(), self._network.mirror.exchange_rate()
            return self._rate[1]

    def refresh(self) -> None:
        """Ask the network for everything that a price depends on."""
        # Check the account first: with a wrong key, every topic would look like another account's.
        self._balance = self.balance()
        self.rate()
        self._custom = self._topics_fee()
        self._ask_tariff(self._custom)

    def balance(self) -> int:
        """Return what the operator's account has, in tinybars; warn once when it gets low."""
        account = self._network.operator.account
        found = self._network.mirror.account(account)
        if found is None:
            raise refusal("PAYER_ACCOUNT_NOT_FOUND", account, self._network.addresses.name)
        self._check_key(found)
        is_low = found.tinybars < self._limits.low_balance
        if is_low and not self._is_low:
            _log.warning("the balance is low; send HBAR to the account", account=account, code="balance_low")
        self._is_low = is_low
        return found.tinybars

    def _check_key(self, account: MirrorAccount) -> None:
        """Refuse a key file of another account; of lists of keys only the network knows."""
        key, ours = account.key, self._network.operator.key.public_key().to_string_raw()
        if key is not None and key.kind in _SIMPLE_KEYS and key.key != ours:
            raise refusal("INVALID_SIGNATURE", account.account, self._network.addresses.name)

    def price(self, size: int) -> Price:
        """Return the price of a message after asking the network."""
        # Check the account first: with a wrong key, every topic would look like another account's.
        self.balance()
        self.rate()
        self._custom = self._topics_fee()
        self._ask_tariff(self._custom)
        return self.known_price(size)

    def known_price(self, size: int, reserved: int = 0) -> Price:
        """Return the price of a message by what the network said last.

        NetworkAway if it said nothing yet; NetworkRefused if the price is above a limit, or above what the balance
        holds beside what is reserved, in tinycents.
        """
        if self._rate is None or self._custom is None:
            text = f"the exchange rate of {self._network.addresses.name} is not known yet; try again later"
            raise NetworkAway(text, code="mirror_unreachable")
        rate, custom, operator = self._rate[1], self._custom, self._network.operator
        tinycents = (self._tariff or self._published(custom)).price(size)
        name = self._network.addresses.name
        if tinycents > self._limits.max_fee:
            raise refusal("INSUFFICIENT_TX_FEE", operator.account, name)
        custom_tinycents = rate.tinycents(custom)
        if custom_tinycents > self._limits.max_custom_fee:
            raise refusal("MAX_CUSTOM_FEE_LIMIT_EXCEEDED", operator.account, name)
        price = Price(rate.tinybars(tinycents) + custom, tinycents + custom_tinycents)
        if self._balance is not None and self._balance < price.tinybars + rate.tinybars(reserved):
            raise refusal("INSUFFICIENT_PAYER_BALANCE", operator.account, name)
        return price

    def _published(self, custom: int) -> Tariff:
        return published_tariff(signatures=1 + len(self._keys), custom_fees=custom > 0)

    def _ask_tariff(self, custom: int) -> None:
        """Ask the mirror what messages cost now; warn when that is not what the published table says."""
        if time.monotonic() < self._tariff_at + _RATE_SECONDS:
            return
        self._tariff_at, terms = time.monotonic(), self.terms()
        smallest, largest = (self._network.estimate(self._topic, size, terms) for size in _ESTIMATED_SIZES)
        if smallest is None or largest is None or not 0 < smallest <= largest:
            self._tariff = None
            return
        known, found = self._tariff or self._published(custom), Tariff(smallest, largest)
        pairs = ((found.smallest, known.smallest), (found.largest, known.largest))
        if any(abs(new - old) > old * _NOTICED_CHANGE for new, old in pairs):
            usd = [price / USD for price, _ in pairs]
            _log.warning("the network's prices have changed", topic=self._topic, usd=usd, code="prices_changed")
        self._tariff = found

    def terms(self) -> Terms:
        """Return what a transaction may cost, and the keys that sign it."""
        rate = self.rate()
        return Terms(rate.tinybars(self._limits.max_fee), rate.tinybars(self._limits.max_custom_fee), self._keys)

    def _topics_fee(self) -> int:
        """Return what the topic asks for itself, in tinybars; refuse a topic that would fail and cost a fee."""
        found, account, name = (
            self._network.mirror.topic(self._topic),
            self._network.operator.account,
            self._network.addresses.name,
        )
        if found is None or found.deleted:
            raise refusal("INVALID_TOPIC_ID", account, name)
        if not may_write(found, (self._network.operator.key, *self._keys)):
            raise refusal("UNAUTHORIZED", account, name)
        fees = found.custom_fees.fixed_fees
        if any(fee.denominating_token_id for fee in fees):
            raise refusal("NO_VALID_MAX_CUSTOM_FEE", account, name)
        return sum(fee.amount for fee in fees)


def may_write(topic: MirrorTopic, keys: Sequence[PrivateKey]) -> bool:
    """Return whether one of these is a topic's submit key; of lists of keys only the network knows."""
    key = topic.submit_key
    if key is None or key.kind not in _SIMPLE_KEYS:
        return True
    return key.key in {one.public_key().to_string_raw() for one in keys}
