"""Fees of a public network: estimated before a message is sent, reserved, and booked from the network's record.

Each workspace has one book, a fact of its topic. Money is kept in tinycents at the exchange rate of its booking, HBAR
in tinybars as the network charged it. A reservation counts against the limits until it is booked or released.
"""

from __future__ import annotations

import msgspec

from redkey.commands.decision import Refused
from redkey.ledger.fees import Price
from redkey.ledger.ports import Reader, Unit
from redkey.wire.times import NANOSECONDS

FEES = "network_fees/"
_HOUR, _DAY = 3600 * NANOSECONDS, 86_400 * NANOSECONDS


class FeeLimits(msgspec.Struct, frozen=True):
    """What may be spent in an hour and in a day, in tinycents."""

    per_hour: int
    per_day: int


class FeeBook(msgspec.Struct, frozen=True):
    """What a workspace paid, and what is reserved. Hours and days are counted from the epoch (UTC)."""

    messages: int = 0
    tinybars: int = 0
    tinycents: int = 0
    reserved: int = 0
    hour: int = 0
    hour_tinycents: int = 0
    day: int = 0
    day_tinycents: int = 0

    def at(self, now: int) -> FeeBook:
        """Return the book at a time: a new hour and a new day begin at zero."""
        hour, day = now // _HOUR, now // _DAY
        # If the clock steps back, no new hour begins: what was spent stays counted.
        fresh: dict[str, int] = {}
        if hour > self.hour:
            fresh |= {"hour": hour, "hour_tinycents": 0}
        if day > self.day:
            fresh |= {"day": day, "day_tinycents": 0}
        return msgspec.structs.replace(self, **fresh)

    def reserve(self, price: Price, limits: FeeLimits, now: int) -> FeeBook:
        """Return the book with a reservation; raise Refused (402) if it would go above a limit."""
        book = self.at(now)
        for spent, limit, name in (
            (book.hour_tinycents, limits.per_hour, "hour"),
            (book.day_tinycents, limits.per_day, "day"),
        ):
            if spent + book.reserved + price.tinycents > limit:
                # Callers of the API read this too: it names no setting of the network.
                text = f"The ledger's budget of this {name} is used up, and nothing was recorded."
                raise Refused(402, "network_budget_exhausted", text)
        return msgspec.structs.replace(book, reserved=book.reserved + price.tinycents)

    def release(self, price: Price) -> FeeBook:
        """Return the book without a reservation: the message was never recorded."""
        return msgspec.structs.replace(self, reserved=max(0, self.reserved - price.tinycents))

    def paid(self, price: Price, reserved: Price, now: int, *, messages: int = 1) -> FeeBook:
        """Return the book with a fee that the network charged, in place of its reservation."""
        book = self.release(reserved).at(now)
        return msgspec.structs.replace(
            book,
            messages=book.messages + messages,
            tinybars=book.tinybars + price.tinybars,
            tinycents=book.tinycents + price.tinycents,
            hour_tinycents=book.hour_tinycents + price.tinycents,
            day_tinycents=book.day_tinycents + price.tinycents,
        )


def read_book(reader: Reader, topic: str) -> FeeBook:
    """Return the book of a workspace's topic."""
    text = reader.setting(FEES + topic)
    return msgspec.json.decode(text, type=FeeBook) if text else FeeBook()


def put_book(unit: Unit, topic: str, book: FeeBook) -> None:
    """Store the book of a workspace's topic."""
    unit.put_fact(topic, FEES + topic, msgspec.json.encode(book).decode())
