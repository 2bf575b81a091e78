"""A mailbox: the unconfirmed messages of one agent, in order.

It owns the order, the window of sent messages and the limit of deliveries to one connection. It stores sequence
numbers; bodies are fetched when they are sent. The time and the connection come from outside.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Protocol

import msgspec

from redkey.bus.envelope import ACK_TIMEOUT_MS, Ack


class Outlet(Protocol):
    """Where messages are sent: one connection."""

    @property
    def paused(self) -> bool:
        """True while the reader takes less than it is sent."""
        ...

    def write(self, line: bytes) -> None: ...

    def deliver(self, message: OutgoingMessage) -> None:
        """Send a message in the version that the reader speaks."""
        ...


class OutgoingMessage(msgspec.Struct, frozen=True, gc=False):
    """A message that is ready to be sent."""

    id: str
    line: bytes
    ack: Ack | None
    type: str = "message.send"
    # A line of v1.
    newer: bool = False


class InFlight(msgspec.Struct, gc=False):
    """A message that was sent and is not yet confirmed."""

    seq: int
    message: OutgoingMessage
    due: float
    deliveries: int = 1


Fetch = Callable[[int], OutgoingMessage | None]


class AgentMailbox:
    """Messages for one agent."""

    def __init__(self, fetch: Fetch, window: int, deliveries: int, waiting: Iterable[int] = ()) -> None:
        self._fetch, self._window, self._deliveries = fetch, window, deliveries
        # The sequence numbers of messages that are not sent yet.
        self.waiting: deque[int] = deque(waiting)
        self._in_flight: dict[str, InFlight] = {}
        # Messages at their delivery limit; the next connection gets them again.
        self._parked: dict[str, int] = {}
        self.outlet: Outlet | None = None

    def __len__(self) -> int:
        return len(self.waiting) + len(self._in_flight) + len(self._parked)

    @property
    def places(self) -> list[int]:
        """The sequence numbers of all unconfirmed messages, in order."""
        sent = [flight.seq for flight in self._in_flight.values()]
        return sorted([*sent, *self._parked.values(), *self.waiting])

    def progress(self, seq: int, message_id: str) -> str:
        """The state of a message: waiting, delivered or acknowledged."""
        if message_id in self._in_flight or message_id in self._parked:
            return "delivered"
        return "waiting" if seq in self.waiting else "acknowledged"

    def arrive(self, seq: int) -> None:
        """Add a message that is not sent yet."""
        self.waiting.append(seq)

    def attach(self, outlet: Outlet) -> None:
        """Send to a connection from now on, beginning with the oldest unconfirmed message."""
        self.detach()
        self.outlet = outlet

    def detach(self) -> None:
        """Stop sending; all unconfirmed messages wait again."""
        self.waiting = deque(self.places)
        self._in_flight.clear()
        self._parked.clear()
        self.outlet = None

    def offer(self, flight: InFlight, once: bool) -> bool:
        """Send a message if no other waits and there is room; otherwise let it wait and return false.

        With `once` it needs no confirmation.
        """
        outlet = self.outlet
        if outlet is None or self.waiting or len(self._in_flight) >= self._window or outlet.paused:
            self.waiting.append(flight.seq)
            return False
        outlet.deliver(flight.message)
        if not once:
            self._in_flight[flight.message.id] = flight
        return True

    def send(self, seq: int, message: OutgoingMessage, now: float) -> InFlight | None:
        """Send a message; None if it needs no confirmation."""
        if self.outlet is not None:
            self.outlet.deliver(message)
        if message.ack is not None and message.ack.mode == "none":
            return None
        flight = self._in_flight[message.id] = InFlight(seq, message, now + ack_seconds(message.ack))
        return flight

    def pump(self, now: float) -> tuple[list[InFlight], list[int]]:
        """Send while there is room; return what needs confirmation, and the numbers of what does not."""
        sent: list[InFlight] = []
        over: list[int] = []
        outlet = self.outlet
        while outlet is not None and self.waiting and len(self._in_flight) < self._window and not outlet.paused:
            seq = self.waiting.popleft()
            message = self._fetch(seq)
            flight = self.send(seq, message, now) if message is not None else None
            if flight is None:
                over.append(seq)
            else:
                sent.append(flight)
        return sent, over

    def confirm(self, message_id: str) -> int | None:
        """Confirm a sent message and return its sequence number; None if no sent message has this id."""
        flight = self._in_flight.pop(message_id, None)
        return flight.seq if flight is not None else self._parked.pop(message_id, None)

    def withdraw(self, seq: int) -> bool:
        """Confirm a message that this connection was not sent; false if it does not wait here."""
        try:
            self.waiting.remove(seq)
        except ValueError:
            return False
        return True

    def overdue(self, flight: InFlight, now: float) -> bool:
        """Send a message again whose time is over. False if it reached the delivery limit and is parked."""
        outlet = self.outlet
        if outlet is None or self._in_flight.get(flight.message.id) is not flight:
            return True
        flight.due = now + ack_seconds(flight.message.ack)
        if outlet.paused:
            # The reader has not taken the first copy yet.
            return True
        if flight.deliveries >= self._deliveries:
            del self._in_flight[flight.message.id]
            self._parked[flight.message.id] = flight.seq
            return False
        flight.deliveries += 1
        outlet.deliver(flight.message)
        return True

    def waits(self, flight: InFlight) -> bool:
        """Whether a sent message is still unconfirmed."""
        return self._in_flight.get(flight.message.id) is flight


def ack_seconds(ack: Ack | None) -> float:
    """How long an agent has to confirm a message."""
    return (ack.timeout_ms if ack is not None and ack.timeout_ms is not None else ACK_TIMEOUT_MS) / 1000
