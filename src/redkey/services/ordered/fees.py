"""The cost of an ordered workspace's messages: reserved in the unit that decides them, booked from the network.

A transaction id is drawn and stored with its price in the unit that decides the request, before anything is sent. So
after a crash the server still knows what it may have paid for, and books what the network's records show.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence

import msgspec
import structlog

from redkey.commands.decision import Refused
from redkey.errors import NetworkAway, NetworkRefused, RedKeyError
from redkey.ledger.fees import Price
from redkey.ledger.network import Charge, NetworkTopic
from redkey.ledger.ports import Reader, Row, Unit
from redkey.readmodel.rows import SENT
from redkey.services.network_fees import FeeBook, FeeLimits, put_book, read_book
from redkey.services.ordered.means import OrderMeans


class Reserved(msgspec.Struct, frozen=True, omit_defaults=True):
    """The reservation for a transaction: a message, or a change of the topic itself."""

    price: Price
    is_message: bool = True


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Reserved).decode
# How often to ask for prices and the balance, and to book fees.
PRICED_SECONDS, BOOK_SECONDS = 60.0, 2.0
_log = structlog.get_logger("redkey.ordered")
# How many transactions are booked at a time.
BOOKED_TOGETHER = 20


class FeeDesk:
    """The fees of one ordered workspace at one server."""

    def __init__(self, network: NetworkTopic, limits: FeeLimits) -> None:
        self._network, self._limits = network, limits
        # True if the balance did not cover the last fee: it is checked again soon.
        self.is_poor = False
        # True while a budget is used up.
        self.is_over_budget = False

    def reserve(self, unit: Unit, topic: str, sizes: Sequence[int]) -> list[str]:
        """Draw a transaction id for each message and reserve its fee; Refused if it may not be spent.

        Either all of them are reserved or none.
        """
        book, now = read_book(unit, topic), unit.next_timestamp(topic)
        prices: list[Price] = []
        for size in sizes:
            price = self._price(size, book)
            book = self._within_budget(topic, book, price, now)
            prices.append(price)
        names = [self._network.draw() for _ in prices]
        rows = [Row(SENT, name, _encode(Reserved(price))) for name, price in zip(names, prices, strict=True)]
        unit.put_rows(topic, rows)
        put_book(unit, topic, book)
        return names

    def reserve_change(self, unit: Unit, topic: str, name: str, tinycents: int) -> None:
        """Reserve the fee of a transaction that changes the topic itself, so that it is booked once it is known."""
        book, price = read_book(unit, topic), Price(0, tinycents)
        unit.put_rows(topic, [Row(SENT, name, _encode(Reserved(price, is_message=False)))])
        put_book(unit, topic, book.reserve(price, self._limits, unit.next_timestamp(topic)))

    def _within_budget(self, topic: str, book: FeeBook, price: Price, now: int) -> FeeBook:
        try:
            book = book.reserve(price, self._limits, now)
        except Refused as refused:
            if not self.is_over_budget:
                advice = "raise hedera.budget_usd_per_hour or hedera.budget_usd_per_day"
                _log.warning("the budget is used up", topic=topic, reason=refused.message, advice=advice)
            self.is_over_budget = True
            raise
        self.is_over_budget = False
        return book

    def _price(self, size: int, book: FeeBook) -> Price:
        try:
            price = self._network.price(size, book.reserved)
        except NetworkRefused as refused:
            self.is_poor = refused.code == "balance_empty"
            code = "network_balance_empty" if refused.code == "balance_empty" else "network_fee_refused"
            text = "The ledger's fee cannot be paid now, and nothing was recorded. Tell the operator; retry later."
            raise Refused(402, code, text) from refused
        except NetworkAway as away:
            text = "What the ledger charges is not known yet, and nothing was recorded. Retry with the same key."
            raise Refused(503, "order_unavailable", text, retry_seconds=2) from away
        self.is_poor = False
        return price


def unbooked(reader: Reader, topic: str, limit: int = BOOKED_TOGETHER) -> list[str]:
    """Return the transactions of a workspace with a reserved fee that is not booked yet, oldest first."""
    return [row.key for row in reader.rows(topic, SENT, limit=limit)]


def book_charges(unit: Unit, topic: str, charges: Sequence[tuple[str, Charge]]) -> None:
    """Book what the network charged, in place of the reservation; release what never reached the network."""
    book, now, done = read_book(unit, topic), unit.next_timestamp(topic), []
    for name, charge in charges:
        row = unit.row(topic, SENT, name)
        # Another server may have booked it.
        if row is None or charge.state == "pending":
            continue
        reserved = _decode(row.body)
        if charge.price is None:
            book = book.release(reserved.price)
        else:
            book = book.paid(charge.price, reserved.price, now, messages=int(reserved.is_message))
        done.append(name)
    if done:
        unit.delete_rows(topic, SENT, done)
        put_book(unit, topic, book)


class Treasury:
    """Regularly asks a network for prices, and books what it charged."""

    def __init__(self, topic: str, network: NetworkTopic, desk: FeeDesk, means: OrderMeans) -> None:
        self._topic, self._network, self._desk, self._means = topic, network, desk, means
        # When prices were last read, and fees last booked, by the loop's clock.
        self._priced_at = self._booked_at = -math.inf
        # Why prices are not known; empty if they are.
        self.failure = ""

    async def ask_prices(self) -> None:
        """Ask for message prices and the account's balance; a failure does not stop reading."""
        loop = asyncio.get_running_loop()
        if loop.time() < self._priced_at + (BOOK_SECONDS if self.failure or self._desk.is_poor else PRICED_SECONDS):
            return
        self._priced_at = loop.time()
        try:
            await loop.run_in_executor(self._means.readers, self._network.refresh)
            self.failure = ""
        except RedKeyError as cause:
            if cause.code != self.failure:
                _log.warning("prices are not known", topic=self._topic, code=cause.code, reason=cause.message)
            self.failure = cause.code

    async def book(self) -> None:
        """Book what the network charged for transactions that are not booked yet."""
        loop = asyncio.get_running_loop()
        if loop.time() < self._booked_at + BOOK_SECONDS:
            return
        self._booked_at = loop.time()
        names = unbooked(self._means.store, self._topic)

        def ask() -> list[tuple[str, Charge]]:
            return [(name, self._network.charged(name)) for name in names]

        if names:
            charges = await loop.run_in_executor(self._means.readers, ask)
            await self._means.path.act(self._topic, lambda unit: book_charges(unit, self._topic, charges))
