"""Deliveries: every agent's mailbox, the connections they go to, and the clock that redelivers."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache

import msgspec
import orjson

from redkey.bus.envelope import EVERYBODY, VERSION, Ack
from redkey.bus.feed import Feed
from redkey.bus.limits import BusLimits
from redkey.bus.mailbox import InFlight, Mailbox, Outlet, Parcel, ack_seconds
from redkey.bus.state import Agent, Record, Session

# A message was taken: the agent and the place of the message.
Taken = Callable[[Agent, int], None]
# A message was given to a connection as often as it may be: also its id and how often.
GivenUp = Callable[[Session, Agent, str, int], None]


class Delivery(msgspec.Struct, eq=False):
    """One agent's mailbox, and whose it is."""

    session: Session
    agent: Agent
    mailbox: Mailbox
    # What a message to everybody begins with when this agent gets it.
    address: bytes


class _Addressed(msgspec.Struct, gc=False):
    """What of an envelope matters to its delivery."""

    v: int = VERSION
    topic: str | None = None
    ack: Ack | None = None


_decode = msgspec.json.Decoder(_Addressed).decode
# So many confirmed messages may be remembered by the clock before it is cleared of them.
_KEPT = 1024
# Messages that are due at the same time: to one agent, or one message to many.
Flights = list[tuple[Delivery, InFlight]]


@lru_cache(maxsize=256)
def _read(envelope: bytes) -> _Addressed:
    """Looked at once, however many agents a message goes to."""
    return _decode(envelope)


class Deliveries:
    """All mailboxes of a bus."""

    def __init__(self, limits: BusLimits, *, taken: Taken, given_up: GivenUp) -> None:
        self._limits, self._taken, self._given_up = limits, taken, given_up
        self._all: dict[int, Delivery] = {}
        self._due: list[tuple[float, int, Flights]] = []
        self._count = self._confirmed = self._tracked = 0
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0.0

    def open(self, session: Session, agent: Agent, feed: Feed, waiting: Iterable[int] = ()) -> None:
        """Begin an agent's mailbox."""

        def fetch(seq: int) -> Parcel | None:
            record = feed.record(seq)
            return parcel(record, agent.id) if record is not None else None

        mailbox = Mailbox(fetch, self._limits.window, self._limits.deliveries, waiting)
        self._all[agent.number] = Delivery(session, agent, mailbox, _address(agent.id))

    def close(self, agent: Agent) -> None:
        self._all.pop(agent.number, None)

    def forget(self) -> None:
        """Forget everything; the log has it."""
        self._all.clear()
        self._due.clear()
        self._tracked = 0

    def outlet(self, agent: Agent) -> Outlet | None:
        delivery = self._all.get(agent.number)
        return delivery.mailbox.outlet if delivery is not None else None

    def attach(self, agent: Agent, outlet: Outlet) -> None:
        delivery = self._all.get(agent.number)
        if delivery is not None:
            delivery.mailbox.attach(outlet)
            self.pump(agent)

    def detach(self, agent: Agent, outlet: Outlet) -> None:
        """The connection is gone; one that came after it is not touched."""
        delivery = self._all.get(agent.number)
        if delivery is not None and delivery.mailbox.outlet is outlet:
            delivery.mailbox.detach()

    def arrive(self, agents: Sequence[Agent], record: Record) -> None:
        """A message is durable: send it to those who can take it now, and let it wait for the others."""
        addressed = _read(record.envelope)
        ack, newer = addressed.ack, addressed.v != VERSION
        due = asyncio.get_running_loop().time() + ack_seconds(ack)
        once, to_all = ack is not None and ack.mode == "none", addressed.topic == EVERYBODY
        tail = (record.envelope[1:] if to_all else record.envelope) + b"\n"
        flights: Flights = []
        seq, message_id, kind, find = record.seq, record.id, record.type, self._all.get
        for agent in agents:
            delivery = find(agent.number)
            if delivery is None:
                continue
            line = delivery.address + tail if to_all else tail
            flight = InFlight(seq, Parcel(message_id, line, ack, kind, newer), due)
            if delivery.mailbox.offer(flight, once):
                if once:
                    self._taken(agent, seq)
                else:
                    flights.append((delivery, flight))
        if flights:
            self._track(due, flights)

    def places(self, agent: Agent) -> list[int]:
        """The messages that wait for an agent, in order."""
        delivery = self._all.get(agent.number)
        return delivery.mailbox.places if delivery is not None else []

    def drop_oldest(self, agent: Agent) -> None:
        """Take the oldest message off an agent's hands."""
        delivery = self._all.get(agent.number)
        places = self.places(agent)
        if delivery is not None and places and delivery.mailbox.withdraw(places[0]):
            self._taken(agent, places[0])

    def progress(self, agent: Agent, seq: int, message_id: str) -> str:
        """How far a message has come to an agent: waiting, delivered (to its connection) or acknowledged."""
        delivery = self._all.get(agent.number)
        return delivery.mailbox.progress(seq, message_id) if delivery is not None else "acknowledged"

    def confirm(self, agent: Agent, message_id: str, seq_of: Callable[[str], int | None]) -> bool:
        """An agent has a message; false when none of this id waits for it."""
        if self.confirm_sent(agent, message_id):
            return True
        delivery = self._all.get(agent.number)
        seq = seq_of(message_id) if delivery is not None else None
        if delivery is None or seq is None or not delivery.mailbox.withdraw(seq):
            return False
        self._taken(agent, seq)
        self.pump(agent)
        return True

    def confirm_sent(self, agent: Agent, message_id: str) -> bool:
        """As `confirm`, for a message that was sent to the agent's present connection."""
        delivery = self._all.get(agent.number)
        if delivery is None:
            return False
        mailbox = delivery.mailbox
        seq = mailbox.confirm(message_id)
        if seq is None:
            return False
        self._taken(agent, seq)
        self._confirmed += 1
        if self._confirmed > _KEPT and self._confirmed * 2 > self._tracked:
            self._let_go()
        if mailbox.waiting:
            self.pump(agent)
        return True

    def _let_go(self) -> None:
        """Let go of confirmed messages whose time has not come: most are confirmed long before it does."""
        kept = []
        for due, count, flights in self._due:
            left = [one for one in flights if one[0].mailbox.waits(one[1])]
            if left:
                kept.append((due, count, left))
        self._due = kept
        heapq.heapify(self._due)
        self._confirmed, self._tracked = 0, sum(len(flights) for _, _, flights in kept)

    def _track(self, due: float, flights: Flights) -> None:
        """Look again at messages when they are due."""
        self._count += 1
        self._tracked += len(flights)
        heapq.heappush(self._due, (due, self._count, flights))
        # Messages mostly come due in the order in which they were sent, so the timer is nearly always right.
        if self._timer is None or due < self._timer_at:
            self._set_timer()

    def pump(self, agent: Agent) -> None:
        """Send what an agent's connection has room for."""
        delivery = self._all.get(agent.number)
        if delivery is None or delivery.mailbox.outlet is None:
            return
        sent, over = delivery.mailbox.pump(asyncio.get_running_loop().time())
        for flight in sent:
            self._track(flight.due, [(delivery, flight)])
        for seq in over:
            self._taken(agent, seq)

    def _set_timer(self) -> None:
        """Wake when the first message is due."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = self._due[0][0]
        self._timer = asyncio.get_running_loop().call_at(self._timer_at, self._redeliver)

    def _redeliver(self) -> None:
        self._timer = None
        now = asyncio.get_running_loop().time()
        while self._due and self._due[0][0] <= now:
            _, _, flights = heapq.heappop(self._due)
            self._tracked -= len(flights)
            for delivery, flight in flights:
                if not delivery.mailbox.waits(flight):
                    continue
                if delivery.mailbox.overdue(flight, now):
                    self._track(flight.due, [(delivery, flight)])
                else:
                    self._given_up(delivery.session, delivery.agent, flight.parcel.id, flight.deliveries)
                    self.pump(delivery.agent)
        if self._due:
            self._set_timer()

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _address(agent_id: str) -> bytes:
    return b'{"dst":%b,' % orjson.dumps(agent_id)


def parcel(record: Record, agent_id: str) -> Parcel:
    """A message as one agent gets it: addressed to it, whether it was sent to it alone or to everybody."""
    addressed = _read(record.envelope)
    line = record.envelope
    if addressed.topic == EVERYBODY:
        line = _address(agent_id) + line[1:]
    return Parcel(record.id, line + b"\n", addressed.ack, record.type, addressed.v != VERSION)
