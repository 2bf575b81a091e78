"""A mailbox: the messages of one agent on their way to it, in order, until it has confirmed each.

It owns the order, the window of unconfirmed messages and the bound on deliveries to one connection. It holds places,
not bodies: those are fetched when they go out. Time and the connection come from outside.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Protocol

import msgspec

from redkey.bus.envelope import ACK_TIMEOUT_MS, Ack


class Outlet(Protocol):
    """Where lines go: one connection."""

    @property
    def paused(self) -> bool:
        """True while the reader takes less than it is sent."""
        ...

    def write(self, line: bytes) -> None: ...

    def deliver(self, parcel: Parcel) -> None:
        """Send a message in the version that the reader speaks."""
        ...


class Parcel(msgspec.Struct, frozen=True, gc=False):
    """A message made ready to go out."""

    id: str
    line: bytes
    ack: Ack | None
    type: str = "message.send"
    # A line of v1.
    newer: bool = False


class InFlight(msgspec.Struct, gc=False):
    """A message that was sent and is not confirmed."""

    seq: int
    parcel: Parcel
    due: float
    deliveries: int = 1


Fetch = Callable[[int], Parcel | None]


class Mailbox:
    """Messages for one agent."""

    def __init__(self, fetch: Fetch, window: int, deliveries: int, waiting: Iterable[int] = ()) -> None:
        self._fetch, self._window, self._deliveries = fetch, window, deliveries
        # The places of messages that were not sent yet.
        self.waiting: deque[int] = deque(waiting)
        self._in_flight: dict[str, InFlight] = {}
        # Given to this connection as often as it may be; the next connection gets them again.
        self._parked: dict[str, int] = {}
        self.outlet: Outlet | None = None

    def __len__(self) -> int:
        return len(self.waiting) + len(self._in_flight) + len(self._parked)

    @property
    def places(self) -> list[int]:
        """Every message that is not confirmed, in order."""
        sent = [one.seq for one in self._in_flight.values()]
        return sorted([*sent, *self._parked.values(), *self.waiting])

    def progress(self, seq: int, message_id: str) -> str:
        """How far a message has come: waiting, delivered or acknowledged."""
        if message_id in self._in_flight or message_id in self._parked:
            return "delivered"
        return "waiting" if seq in self.waiting else "acknowledged"

    def arrive(self, seq: int) -> None:
        self.waiting.append(seq)

    def attach(self, outlet: Outlet) -> None:
        """A connection takes the messages from now on: all that are not confirmed, from the oldest."""
        self.detach()
        self.outlet = outlet

    def detach(self) -> None:
        self.waiting = deque(self.places)
        self._in_flight.clear()
        self._parked.clear()
        self.outlet = None

    def offer(self, flight: InFlight, once: bool) -> bool:
        """Send a message at once if nothing is ahead of it and there is room; else it waits, and the answer is false.

        `once` means that it needs no confirmation.
        """
        outlet = self.outlet
        if outlet is None or self.waiting or len(self._in_flight) >= self._window or outlet.paused:
            self.waiting.append(flight.seq)
            return False
        outlet.deliver(flight.parcel)
        if not once:
            self._in_flight[flight.parcel.id] = flight
        return True

    def send(self, seq: int, parcel: Parcel, now: float) -> InFlight | None:
        """Send a message at once; None when it needs no confirmation."""
        if self.outlet is not None:
            self.outlet.deliver(parcel)
        if parcel.ack is not None and parcel.ack.mode == "none":
            return None
        flight = self._in_flight[parcel.id] = InFlight(seq, parcel, now + ack_seconds(parcel.ack))
        return flight

    def pump(self, now: float) -> tuple[list[InFlight], list[int]]:
        """Send what may go out: what now waits to be confirmed, and the places of what needs no confirmation."""
        sent: list[InFlight] = []
        over: list[int] = []
        outlet = self.outlet
        while outlet is not None and self.waiting and len(self._in_flight) < self._window and not outlet.paused:
            seq = self.waiting.popleft()
            parcel = self._fetch(seq)
            flight = self.send(seq, parcel, now) if parcel is not None else None
            if flight is None:
                over.append(seq)
            else:
                sent.append(flight)
        return sent, over

    def confirm(self, message_id: str) -> int | None:
        """The place of a message that was sent and is now confirmed; None when none of this id is on its way."""
        flight = self._in_flight.pop(message_id, None)
        return flight.seq if flight is not None else self._parked.pop(message_id, None)

    def withdraw(self, seq: int) -> bool:
        """Confirm a message that was sent by an earlier connection only; false when it does not wait here."""
        try:
            self.waiting.remove(seq)
        except ValueError:
            return False
        return True

    def overdue(self, flight: InFlight, now: float) -> bool:
        """Time is over for a message: send it again. False when it was sent as often as it may be, and is parked."""
        outlet = self.outlet
        if outlet is None or self._in_flight.get(flight.parcel.id) is not flight:
            return True
        flight.due = now + ack_seconds(flight.parcel.ack)
        if outlet.paused:
            # It has not even taken the first copy.
            return True
        if flight.deliveries >= self._deliveries:
            del self._in_flight[flight.parcel.id]
            self._parked[flight.parcel.id] = flight.seq
            return False
        flight.deliveries += 1
        outlet.deliver(flight.parcel)
        return True

    def waits(self, flight: InFlight) -> bool:
        """True while a message that was sent is still to be confirmed."""
        return self._in_flight.get(flight.parcel.id) is flight


def ack_seconds(ack: Ack | None) -> float:
    """How long an agent has to confirm a message."""
    return (ack.timeout_ms if ack is not None and ack.timeout_ms is not None else ACK_TIMEOUT_MS) / 1000
