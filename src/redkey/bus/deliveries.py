"""Deliveries: the mailbox of each agent, its connection, and the timer that redelivers."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache

import msgspec
import orjson

from redkey.bus.envelope import ALL_AGENTS, VERSION, Ack
from redkey.bus.feed import SessionFeed
from redkey.bus.limits import BusLimits
from redkey.bus.mailbox import AgentMailbox, InFlight, OutgoingMessage, Outlet, ack_seconds
from redkey.bus.model import AgentState, SessionRecord, SessionState

# A message was confirmed: the agent and the message's sequence number.
Taken = Callable[[AgentState, int], None]
# A message reached its delivery limit on a connection: also its id and the number of deliveries.
GivenUp = Callable[[SessionState, AgentState, str, int], None]


class AgentDelivery(msgspec.Struct, eq=False):
    """The mailbox of one agent."""

    session: SessionState
    agent: AgentState
    mailbox: AgentMailbox
    # The start of a line for a message to all agents, addressed to this one.
    address: bytes


class _Addressed(msgspec.Struct, gc=False):
    """The fields of an envelope that matter to its delivery."""

    v: int = VERSION
    topic: str | None = None
    ack: Ack | None = None


_decode = msgspec.json.Decoder(_Addressed).decode
# The timer's heap may hold this many confirmed messages before they are removed.
_CONFIRMED_LIMIT = 1024
# Messages that are due at the same time: to one agent, or one message to many.
Flights = list[tuple[AgentDelivery, InFlight]]


@lru_cache(maxsize=256)
def _read(envelope: bytes) -> _Addressed:
    """Decode an envelope once, however many agents it goes to."""
    return _decode(envelope)


class Deliveries:
    """All mailboxes of a bus."""

    def __init__(self, limits: BusLimits, *, taken: Taken, given_up: GivenUp) -> None:
        self._limits, self._taken, self._given_up = limits, taken, given_up
        self._all: dict[int, AgentDelivery] = {}
        self._due: list[tuple[float, int, Flights]] = []
        self._count = self._confirmed = self._tracked = 0
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0.0

    def open(self, session: SessionState, agent: AgentState, feed: SessionFeed, waiting: Iterable[int] = ()) -> None:
        """Open the mailbox of an agent; `waiting` are its unconfirmed messages."""

        def fetch(seq: int) -> OutgoingMessage | None:
            record = feed.record(seq)
            return outgoing_message(record, agent.id) if record is not None else None

        mailbox = AgentMailbox(fetch, self._limits.window, self._limits.deliveries, waiting)
        self._all[agent.number] = AgentDelivery(session, agent, mailbox, _address(agent.id))

    def close(self, agent: AgentState) -> None:
        """Remove the mailbox of an agent."""
        self._all.pop(agent.number, None)

    def forget(self) -> None:
        """Drop all mailboxes, to load them again from the log."""
        self._all.clear()
        self._due.clear()
        self._tracked = 0

    def outlet(self, agent: AgentState) -> Outlet | None:
        """The connection that an agent's messages go to."""
        delivery = self._all.get(agent.number)
        return delivery.mailbox.outlet if delivery is not None else None

    def attach(self, agent: AgentState, outlet: Outlet) -> None:
        """Deliver an agent's messages to a connection from now on, from the oldest unconfirmed one."""
        delivery = self._all.get(agent.number)
        if delivery is not None:
            delivery.mailbox.attach(outlet)
            self.pump(agent)

    def detach(self, agent: AgentState, outlet: Outlet) -> None:
        """Stop delivering to a closed connection, unless a newer one has replaced it."""
        delivery = self._all.get(agent.number)
        if delivery is not None and delivery.mailbox.outlet is outlet:
            delivery.mailbox.detach()

    def arrive(self, agents: Sequence[AgentState], record: SessionRecord) -> None:
        """Deliver a durable message to the agents that can take it now; it waits for the others."""
        addressed = _read(record.envelope)
        ack, newer = addressed.ack, addressed.v != VERSION
        due = asyncio.get_running_loop().time() + ack_seconds(ack)
        once, to_all = ack is not None and ack.mode == "none", addressed.topic == ALL_AGENTS
        tail = (record.envelope[1:] if to_all else record.envelope) + b"\n"
        flights: Flights = []
        seq, message_id, kind, find = record.seq, record.id, record.type, self._all.get
        for agent in agents:
            delivery = find(agent.number)
            if delivery is None:
                continue
            line = delivery.address + tail if to_all else tail
            flight = InFlight(seq, OutgoingMessage(message_id, line, ack, kind, newer), due)
            if delivery.mailbox.offer(flight, once):
                if once:
                    self._taken(agent, seq)
                else:
                    flights.append((delivery, flight))
        if flights:
            self._track(due, flights)

    def places(self, agent: AgentState) -> list[int]:
        """The sequence numbers of an agent's unconfirmed messages, in order."""
        delivery = self._all.get(agent.number)
        return delivery.mailbox.places if delivery is not None else []

    def drop_oldest(self, agent: AgentState) -> None:
        """Confirm an agent's oldest message for it, to make room."""
        delivery = self._all.get(agent.number)
        places = self.places(agent)
        if delivery is not None and places and delivery.mailbox.withdraw(places[0]):
            self._taken(agent, places[0])

    def progress(self, agent: AgentState, seq: int, message_id: str) -> str:
        """The state of a message for an agent: waiting, delivered (to its connection) or acknowledged."""
        delivery = self._all.get(agent.number)
        return delivery.mailbox.progress(seq, message_id) if delivery is not None else "acknowledged"

    def confirm(self, agent: AgentState, message_id: str, seq_of: Callable[[str], int | None]) -> bool:
        """Confirm a message; false if the agent has no unconfirmed message with this id."""
        if self.confirm_sent(agent, message_id):
            return True
        delivery = self._all.get(agent.number)
        seq = seq_of(message_id) if delivery is not None else None
        if delivery is None or seq is None or not delivery.mailbox.withdraw(seq):
            return False
        self._taken(agent, seq)
        self.pump(agent)
        return True

    def confirm_sent(self, agent: AgentState, message_id: str) -> bool:
        """Confirm a message that was sent to the agent's current connection; false for any other."""
        delivery = self._all.get(agent.number)
        if delivery is None:
            return False
        mailbox = delivery.mailbox
        seq = mailbox.confirm(message_id)
        if seq is None:
            return False
        self._taken(agent, seq)
        self._confirmed += 1
        if self._confirmed > _CONFIRMED_LIMIT and self._confirmed * 2 > self._tracked:
            self._drop_confirmed()
        if mailbox.waiting:
            self.pump(agent)
        return True

    def _drop_confirmed(self) -> None:
        """Remove confirmed messages from the heap before they are due; most are confirmed long before that."""
        kept = []
        for due, count, flights in self._due:
            left = [(delivery, flight) for delivery, flight in flights if delivery.mailbox.waits(flight)]
            if left:
                kept.append((due, count, left))
        self._due = kept
        heapq.heapify(self._due)
        self._confirmed, self._tracked = 0, sum(len(flights) for _, _, flights in kept)

    def _track(self, due: float, flights: Flights) -> None:
        """Check messages again when they are due."""
        self._count += 1
        self._tracked += len(flights)
        heapq.heappush(self._due, (due, self._count, flights))
        # Messages mostly come due in the order in which they were sent, so the timer is nearly always right.
        if self._timer is None or due < self._timer_at:
            self._set_timer()

    def pump(self, agent: AgentState) -> None:
        """Send waiting messages while the agent's connection has room."""
        delivery = self._all.get(agent.number)
        if delivery is None or delivery.mailbox.outlet is None:
            return
        sent, over = delivery.mailbox.pump(asyncio.get_running_loop().time())
        for flight in sent:
            self._track(flight.due, [(delivery, flight)])
        for seq in over:
            self._taken(agent, seq)

    def _set_timer(self) -> None:
        """Set the timer to the first message that is due."""
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
                    self._given_up(delivery.session, delivery.agent, flight.message.id, flight.deliveries)
                    self.pump(delivery.agent)
        if self._due:
            self._set_timer()

    def stop(self) -> None:
        """Stop the timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _address(agent_id: str) -> bytes:
    return b'{"dst":%b,' % orjson.dumps(agent_id)


def outgoing_message(record: SessionRecord, agent_id: str) -> OutgoingMessage:
    """Prepare a message for one agent, addressed to it even if it was sent to all agents."""
    addressed = _read(record.envelope)
    line = record.envelope
    if addressed.topic == ALL_AGENTS:
        line = _address(agent_id) + line[1:]
    return OutgoingMessage(record.id, line + b"\n", addressed.ack, record.type, addressed.v != VERSION)
