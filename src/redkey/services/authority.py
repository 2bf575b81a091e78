"""Authority: what is kept open (streams, long polls, bus connections) ends with the authority it was opened with.

A key that is revoked, a token that runs out, an agent that is deactivated or loses a role: whoever holds something open
by it is told at once, by the records that say so. Records of other processes are looked at when they have committed.
A request that is answered at once needs none of this: the unit that decides it checks its key.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence

import msgspec

from redkey.ledger.ports import SequencedStore
from redkey.readmodel.rows import entity
from redkey.services.keys import Principal
from redkey.services.outcome import Settled, settled
from redkey.wire.envelope import AnyWire
from redkey.wire.events import AgentDeactivated, AgentUpdated, KeyRevoked, RoleRevoked
from redkey.wire.ids import parse_stream

_PAGE = 500


class Hold(msgspec.Struct, eq=False):
    """Something that is open, by whose authority, and how it is ended."""

    key_id: str
    agent_id: str
    end: Callable[[], None]
    timer: asyncio.TimerHandle | None = None


class Authority:
    """Everything that is held open in one server."""

    def __init__(self, store: SequencedStore, wall: Callable[[], float]) -> None:
        self._store, self._wall = store, wall
        self._holds: dict[str, set[Hold]] = {}
        # topic -> up to which record it was looked at.
        self._seen: dict[str, int] = {}

    @property
    def is_awaited(self) -> bool:
        """True while something is open that another process could end."""
        return bool(self._holds)

    def hold(self, principal: Principal, end: Callable[[], None]) -> Callable[[], None]:
        """Call `end` once when the authority of a caller ends. What is returned must be called when it is over."""
        topic, caller = principal.topic, principal.actor
        hold = Hold(caller.key_id, caller.agent_id, end)
        if principal.expires_at:
            left = max(0.0, principal.expires_at - self._wall())
            hold.timer = asyncio.get_running_loop().call_later(left, self._end, topic, hold)
        if topic not in self._holds:
            # From now on the store tells of what others commit to it.
            self._store.known_head(topic)
            self._holds[topic] = set()
            self._seen[topic] = self._store.head(topic).sequence
        self._holds[topic].add(hold)
        row = self._store.row(topic, "key", caller.key_id)
        if row is None or entity(row).revoked_at:
            # Another process revoked it a moment ago; keys are trusted for a second.
            asyncio.get_running_loop().call_soon(self._end, topic, hold)
        return lambda: self._leave(topic, hold)

    def on_commit(self, topic: str, records: Sequence[Settled]) -> None:
        """Records were committed by this process."""
        if topic not in self._holds or not records:
            return
        if records[0].sequence > self._seen[topic] + 1:
            # Others wrote in between.
            self.look_at(topic)
        else:
            self._take(topic, records)

    def look_at(self, topic: str) -> None:
        """Others may have committed to a workspace."""
        while topic in self._holds and (records := self._store.read(topic, self._seen[topic], _PAGE)):
            self._take(topic, [settled(record) for record in records])

    def _take(self, topic: str, records: Iterable[Settled]) -> None:
        for record in records:
            self._seen[topic] = max(self._seen[topic], record.sequence)
            if type(record.event.payload) not in _ENDING:
                continue
            key_id, agent_id = _ended_by(record.event)
            if key_id or agent_id:
                for hold in tuple(self._holds.get(topic, ())):
                    if (key_id and hold.key_id == key_id) or (agent_id and hold.agent_id == agent_id):
                        self._end(topic, hold)
            if topic not in self._holds:
                return

    def _end(self, topic: str, hold: Hold) -> None:
        if hold in self._holds.get(topic, ()):
            self._leave(topic, hold)
            hold.end()

    def _leave(self, topic: str, hold: Hold) -> None:
        if hold.timer is not None:
            hold.timer.cancel()
        holds = self._holds.get(topic)
        if holds is not None:
            holds.discard(hold)
            if not holds:
                del self._holds[topic], self._seen[topic]


# What may end or narrow the authority of somebody.
_ENDING = frozenset({KeyRevoked, RoleRevoked, AgentDeactivated, AgentUpdated})


def _ended_by(wire: AnyWire) -> tuple[str, str]:
    """The key and the agent whose authority a wire ends or narrows."""
    payload = wire.payload
    if type(payload) is KeyRevoked:
        return payload.key_id, ""
    if type(payload) is RoleRevoked:
        return "", payload.agent_id
    if type(payload) is AgentDeactivated or (type(payload) is AgentUpdated and payload.active is False):
        return "", parse_stream(wire.stream.stream_id).subject
    return "", ""
