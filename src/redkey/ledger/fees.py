"""What messages cost on a Hedera network: the published price table, and the exchange rate that turns it into HBAR.

Prices are set in dollars and paid in HBAR. All amounts are whole numbers: a dollar is 10^10 tinycents, an HBAR is
10^8 tinybars, and an exchange rate says how many cents some number of HBAR are worth.
"""

from __future__ import annotations

import msgspec

USD = 10**10
HBAR = 10**8

# ConsensusSubmitMessage since 2026-05-20: 100 bytes are included. The first signature is included too.
SUBMIT = 8_000_000
INCLUDED_BYTES, LARGEST_MESSAGE = 100, 1024
BYTE = 6_800
SIGNATURE = 1_000_000
# A message to a topic with custom fees (HIP-991), and the creation of topics.
SUBMIT_WITH_FEES = USD // 20
CREATE_TOPIC = USD // 100
CREATE_TOPIC_WITH_FEES = 2 * USD
# Assumed: the project has no measured or published figure for these. What is charged is booked from the network's
# records all the same, so a wrong figure here makes a reservation too large or too small, and never a book wrong.
UPDATE_TOPIC = 2_200_000
DELETE_TOPIC = USD // 200
CREATE_ACCOUNT = USD // 20
TRANSFER = USD // 10_000
QUERY = USD // 10_000


class Price(msgspec.Struct, frozen=True):
    """What a message costs: in tinybars, and in tinycents."""

    tinybars: int
    tinycents: int


class ExchangeRate(msgspec.Struct, frozen=True):
    """`hbars` HBAR are worth `cents` cents, until `expires` (seconds since the epoch)."""

    cents: int
    hbars: int
    expires: int = 0

    def tinybars(self, tinycents: int) -> int:
        """Return a price in tinybars, rounded down as the network does."""
        return tinycents * self.hbars // self.cents

    def tinycents(self, tinybars: int) -> int:
        """Return what an amount of tinybars is worth in tinycents, rounded down."""
        return tinybars * self.cents // self.hbars

    def usd(self, tinybars: int) -> float:
        """Return what an amount of tinybars is worth in dollars."""
        return tinybars * self.cents / self.hbars / USD


class Tariff(msgspec.Struct, frozen=True):
    """What messages to one topic cost: one with the included bytes, and one of the largest size, in tinycents."""

    smallest: int
    largest: int

    def price(self, size: int) -> int:
        """Return the price of a message of `size` bytes: every byte above the included ones costs the same."""
        further = max(0, size - INCLUDED_BYTES)
        return self.smallest + -(-(self.largest - self.smallest) * further // (LARGEST_MESSAGE - INCLUDED_BYTES))


def published_tariff(*, signatures: int = 1, custom_fees: bool = False) -> Tariff:
    """Return what messages cost by the published table; the submit key may add a signature."""
    sizes = (INCLUDED_BYTES, LARGEST_MESSAGE)
    return Tariff(*(submit_price(size, signatures=signatures, custom_fees=custom_fees) for size in sizes))


def submit_price(size: int, *, signatures: int = 1, custom_fees: bool = False) -> int:
    """Return the price of a message of `size` bytes in tinycents; the submit key may add a signature."""
    base = SUBMIT_WITH_FEES if custom_fees else SUBMIT
    return base + max(0, size - INCLUDED_BYTES) * BYTE + max(0, signatures - 1) * SIGNATURE
