"""Authority: open streams, long polls and bus connections end when the authority they were opened with ends.

When a key is revoked, a token expires, or an agent is deactivated or loses a role, everything that was opened with it
ends at once, triggered by the records that say so. Records of other processes are read when they have committed. A
request that is answered at once does not need this: the unit that decides it checks its key.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence

import msgspec

from redkey import fibers
from redkey.ledger.ports import SequencedStore
from redkey.readmodel.rows import entity
from redkey.services.keys import Principal
from redkey.services.outcome import Settled, settled
from redkey.wire.envelope import AnyWire
from redkey.wire.events import AgentDeactivated, AgentUpdated, KeyRevoked, RoleRevoked
from redkey.wire.ids import parse_stream

_PAGE = 500


class Hold(msgspec.Struct, eq=False):
    """Something open: the caller it was opened for, and the function that ends it."""

    key_id: str
    agent_id: str
    end: Callable[[], None]
    session_id: str = ""
    timer: asyncio.TimerHandle | None = None


class Authority:
    """Everything that is open in one server."""

    def __init__(self, store: SequencedStore, wall: Callable[[], float]) -> None:
        self._store, self._wall = store, wall
        self._holds: dict[str, set[Hold]] = {}
        # topic -> the last record that was checked.
        self._seen: dict[str, int] = {}

    @property
    def is_awaited(self) -> bool:
        """True while something is open that another process could end."""
        return bool(self._holds)

    def hold(self, principal: Principal, end: Callable[[], None]) -> Callable[[], None]:
        """Call `end` once when a caller's authority ends. Call the returned function when the connection is over."""
        topic, caller = principal.topic, principal.actor
        hold = Hold(caller.key_id, caller.agent_id, end, principal.session_id)
        if principal.expires_at:
            left = max(0.0, principal.expires_at - self._wall())
            hold.timer = asyncio.get_running_loop().call_later(left, self._end, topic, hold)
        if topic not in self._holds:
            # From now on the store reports commits of other processes to this topic.
            self._store.known_head(topic)
            head = self._store.head(topic).sequence
            # Another caller may have been first while the head was read.
            self._holds.setdefault(topic, set())
            self._seen.setdefault(topic, head)
        self._holds[topic].add(hold)
        row = self._store.row(topic, "key", caller.key_id)
        if row is None or entity(row).revoked_at:
            # Another process may have revoked the key just now; keys are trusted for a second.
            asyncio.get_running_loop().call_soon(self._end, topic, hold)
        return lambda: self._leave(topic, hold)

    def on_commit(self, topic: str, records: Sequence[Settled]) -> None:
        """End what the new records of this process revoke."""
        if topic not in self._holds or not records:
            return
        if records[0].sequence > self._seen[topic] + 1:
            # Other processes wrote in between.
            if self._store.inline:
                self.look_at(topic)
            else:
                fibers.start(self.look_at, topic)
        else:
            self._take(topic, records)

    def end_session(self, topic: str, session_id: str) -> None:
        """End what a person's session holds open: the session has ended."""
        for hold in tuple(self._holds.get(topic, ())):
            if hold.session_id == session_id:
                self._end(topic, hold)

    def look_at(self, topic: str) -> None:
        """Check a workspace for commits of other processes."""
        while topic in self._holds and (records := self._store.read(topic, self._seen[topic], _PAGE)):
            self._take(topic, [settled(record) for record in records])

    def _take(self, topic: str, records: Iterable[Settled]) -> None:
        for record in records:
            if topic not in self._holds:
                return
            self._seen[topic] = max(self._seen[topic], record.sequence)
            if type(record.event.payload) not in _ENDING:
                continue
            key_id, agent_id = _ended_by(record.event)
            if key_id or agent_id:
                for hold in tuple(self._holds.get(topic, ())):
                    if (key_id and hold.key_id == key_id) or (agent_id and hold.agent_id == agent_id):
                        self._end(topic, hold)

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


# Events that may end or narrow the authority of a caller.
_ENDING = frozenset({KeyRevoked, RoleRevoked, AgentDeactivated, AgentUpdated})


def _ended_by(wire: AnyWire) -> tuple[str, str]:
    """Return the key and the agent whose authority a wire ends or narrows."""
    payload = wire.payload
    if type(payload) is KeyRevoked:
        return payload.key_id, ""
    if type(payload) is RoleRevoked:
        return "", payload.agent_id
    if type(payload) is AgentDeactivated or (type(payload) is AgentUpdated and payload.active is False):
        return "", parse_stream(wire.stream.stream_id).subject
    return "", ""
