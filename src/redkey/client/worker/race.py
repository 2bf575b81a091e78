"""The race: a worker that sees `task.available` on the stream and claims directly, against everybody else who sees it.

A task that was missed is not claimed again before its next `task.available`: an attempt is made for each such event,
and for nothing else. What others are seen to have claimed meanwhile is not tried any more.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable

from redkey.client.calls.ledger import Ledger
from redkey.client.connection import Emission, SyncSender
from redkey.client.operation import Sync
from redkey.client.resources.agents import Agents
from redkey.client.resources.ledger import Events
from redkey.client.resources.tasks import Tasks
from redkey.client.worker.lease import now
from redkey.client.worker.slot import Asked, Won
from redkey.client.worker.tally import Tally
from redkey.errors import NotFound, Unreachable
from redkey.shapes.claims import Claimed, ClaimNext
from redkey.shapes.events import Event

# What opens a task to claims: the first time, and when somebody gave it back, lost it or lifted its block.
_OFFERS = ("task.available", "task.lease_expired", "task.stalled", "task.released", "task.unblocked")
_WAIT_SECONDS = 5.0
# An agent that lacked a role may have been granted it meanwhile.
_ROLES_KNOWN_SECONDS = 5.0


class Candidates:
    """Tasks to try for, the oldest first, each once for each time that it became available."""

    def __init__(self) -> None:
        self._tasks: OrderedDict[str, None] = OrderedDict()
        self._changed = threading.Condition()
        self.is_ended = False

    def add(self, task_id: str) -> None:
        with self._changed:
            self._tasks[task_id] = None
            self._changed.notify()

    def drop(self, task_id: str) -> None:
        with self._changed:
            self._tasks.pop(task_id, None)

    def take(self, timeout: float) -> str | None:
        """The next one; None when none came in time."""
        with self._changed:
            self._changed.wait_for(lambda: self._tasks or self.is_ended, timeout)
            return self._tasks.popitem(last=False)[0] if self._tasks and not self.is_ended else None

    def end(self) -> None:
        """Let nobody wait any more."""
        with self._changed:
            self.is_ended = True
            self._changed.notify_all()


class RaceSource:
    """Follows a queue for one agent, and claims what it sees."""

    following: ClaimNext | None = None

    def __init__(self, sender: SyncSender, queue: str, agent_id: str, lease_seconds: int, tally: Tally) -> None:
        self._queue, self._agent_id, self._lease_seconds, self._tally = queue, agent_id, lease_seconds, tally
        self._tasks: Tasks[Sync] = Tasks(sender)
        self._agents: Agents[Sync] = Agents(sender)
        self._ledger: Ledger[Sync] = Ledger(sender)
        self._events: Events[Sync] = Events(sender)
        self._candidates = Candidates()
        self._stream: Emission[Event] | None = None
        self._roles: tuple[float, frozenset[str]] = (0.0, frozenset())

    def follow(self, fail: Callable[[BaseException], None]) -> None:
        """Follow until `stop`; what is there already is seen first, and nothing falls in between."""
        try:
            head = self._ledger.query(order="desc", limit=1).page().items[0].sequence
            for task in self._tasks.available(self._queue, agent_id=self._agent_id, limit=500):
                self._candidates.add(task.task_id)
            types = ("task.claimed", *_OFFERS)
            self._stream = self._events.follow(types=types, queue=self._queue, after=head)
            if self._candidates.is_ended:
                self._stream.close()
            for event in self._stream:
                if event.type in _OFFERS:
                    self._candidates.add(event.subject.id)
                else:
                    self._candidates.drop(event.subject.id)
        except BaseException as error:
            fail(error)

    def stop(self) -> None:
        self._candidates.end()
        if self._stream is not None:
            self._stream.close()

    def claim(self, asked: Asked) -> Won | None:
        task_id = self._candidates.take(_WAIT_SECONDS)
        if task_id is None or not self._may_claim(task_id):
            return None
        asked_at = now()
        try:
            found = self._tasks.claim(task_id, self._agent_id, lease_seconds=self._lease_seconds, with_task=True)
        except Unreachable:
            # Nobody said that it was missed.
            self._candidates.add(task_id)
            raise
        if isinstance(found, Claimed):
            return found, asked_at
        self._tally.count(found.status)
        return None

    def _may_claim(self, task_id: str) -> bool:
        """Whether the agent has the roles: a claim that is sure to be rejected only fills the record."""
        try:
            needed = set(self._tasks.get(task_id).required_roles)
        except NotFound:
            return False
        known_at, roles = self._roles
        if not needed <= roles and now() - known_at > _ROLES_KNOWN_SECONDS:
            roles = frozenset(self._agents.get(self._agent_id).roles)
            self._roles = (now(), roles)
        return needed <= roles
