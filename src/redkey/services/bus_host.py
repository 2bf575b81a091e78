"""Which of several servers hosts the bus: the first one that asked, until an operator moves it.

A session of the bus and its messages are on one server, in that server's data directory. If each server had a bus of
its own, a message would reach only recipients who are connected to the same server. So one server is the host, the
store names it, and the other servers refer callers to it. The host stays the host while it is down: its log has the
messages that were not delivered yet.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

import msgspec

from redkey.errors import StoreError
from redkey.ledger.ports import Reader, StoreUnit
from redkey.services.failures import Unavailable
from redkey.services.log_facts import BUS_HOST

# How long an answer of the store is cached: an operator may move the bus while servers run.
_KEPT_SECONDS = 1.0
# How long a starting server waits before it tries again to become the host.
_PAUSES = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0)

Act = Callable[[Callable[[StoreUnit], None]], Awaitable[None]]


class BusHost(msgspec.Struct, frozen=True):
    """The server that hosts the bus: the id of its data directory, and where it listens."""

    server: str
    url: str


async def claim_bus(act: Act, me: BusHost, *, move: bool) -> None:
    """Take the bus when a server starts; retry a failed commit, so that a short loss of connection does not end the
    start.
    """
    for pause in _PAUSES:
        try:
            await act(lambda unit: take_bus(unit, me, move=move))
        except Unavailable:
            await asyncio.sleep(pause)
        else:
            return
    await act(lambda unit: take_bus(unit, me, move=move))


def take_bus(unit: StoreUnit, me: BusHost, *, move: bool) -> None:
    """Become the host if there is none, if this server is it already (perhaps at a new address), or with `move`."""
    found = read_host(unit)
    if found is None or found.server == me.server or move:
        unit.put_setting(BUS_HOST, msgspec.json.encode(me).decode())


def read_host(reader: Reader) -> BusHost | None:
    """Return the host of the bus; None if no server has asked yet."""
    text = reader.setting(BUS_HOST)
    return msgspec.json.decode(text, type=BusHost) if text else None


class BusElsewhere:
    """Tells one server where the bus is. Call it in a fiber: it reads the store, at most once a second."""

    def __init__(self, reader: Reader, me: BusHost) -> None:
        self._reader, self._me = reader, me
        self._known, self._until = "", 0.0

    def __call__(self) -> str:
        """Return the address of the server that hosts the bus; empty if this one does."""
        if time.monotonic() >= self._until:
            try:
                found = read_host(self._reader)
            except StoreError:
                # If the store does not answer, the last known host still holds.
                return self._known
            self._known = "" if found is None or found.server == self._me.server else found.url
            self._until = time.monotonic() + _KEPT_SECONDS
        return self._known
