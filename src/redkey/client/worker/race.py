"""The race: a worker reads `task.available` events and claims those tasks in competition with the other listeners.

A missed task is not tried again before its next `task.available`: there is one attempt for each such event. A task that
the stream shows as claimed is not tried.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable

from redkey.client.calls.ledger import Ledger
from redkey.client.connection import Emission
from redkey.client.operation import Sync
from redkey.client.resources.agents import Agents
from redkey.client.resources.ledger import Events
from redkey.client.resources.tasks import Tasks
from redkey.client.worker.lease import now
from redkey.client.worker.member import Member
from redkey.client.worker.slot import Asked, Won
from redkey.client.worker.tally import Tally
from redkey.errors import ClientError, NotFound, Unreachable
from redkey.shapes.claims import Claimed, ClaimNext, Missed
from redkey.shapes.events import Event

# The events that make a task claimable: at first, and after a release, a lost claim or a lifted block.
_OFFERS = ("task.available", "task.lease_expired", "task.stalled", "task.released", "task.unblocked")
_WAIT_SECONDS = 5.0
# An agent that lacked a role may have been granted it in the meantime.
_ROLES_KNOWN_SECONDS = 5.0


class Candidates:
    """Tasks to claim, oldest first, each once per `task.available` event."""

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
        """Return the next task; None if there is none in time."""
        with self._changed:
            self._changed.wait_for(lambda: self._tasks or self.is_ended, timeout)
            return self._tasks.popitem(last=False)[0] if self._tasks and not self.is_ended else None

    def end(self) -> None:
        """Wake all waiting threads."""
        with self._changed:
            self.is_ended = True
            self._changed.notify_all()


class RaceSource:
    """Follows a queue for one agent and claims the tasks that it sees."""

    following: ClaimNext | None = None

    def __init__(self, member: Member, tally: Tally) -> None:
        self._queue, self._lease_seconds = member.worker.queue, member.worker.lease_seconds
        self._agent_id, self._tally, sender = member.agent_id, tally, member.sender
        self._tasks: Tasks[Sync] = Tasks(sender)
        self._agents: Agents[Sync] = Agents(sender)
        self._ledger: Ledger[Sync] = Ledger(sender)
        self._events: Events[Sync] = Events(sender)
        self._candidates = Candidates()
        self._stream: Emission[Event] | None = None
        self._roles: tuple[float, frozenset[str]] = (0.0, frozenset())
        self._log, self._names = member.log, dict[str, str]()

    def follow(self, fail: Callable[[BaseException], None]) -> None:
        """Follow until `stop`. Tasks that are available already are tried first, and no event is missed in between."""
        try:
            head = self._ledger.query(order="desc", limit=1).page().items[0].sequence
            for task in self._tasks.available(self._queue, agent_id=self._agent_id, limit=500):
                self._candidates.add(task.task_id)
            types = ("task.claimed", *_OFFERS)
            self._stream = self._events.follow(type=types, queue=self._queue, after=head)
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
            outcome = self._tasks.claim(task_id, self._agent_id, lease_seconds=self._lease_seconds, with_task=True)
        except Unreachable:
            # The claim was not answered, so it was not necessarily missed.
            self._candidates.add(task_id)
            raise
        if isinstance(outcome, Claimed):
            return outcome, asked_at
        self._tally.count(outcome.status)
        if isinstance(outcome, Missed):
            self._log.missed(task_id, self._name_of(outcome.winning_agent_id))
        else:
            self._log.rejected(self._queue, f"{outcome.reason} {outcome.detail}".strip())
        return None

    def _name_of(self, agent_id: str) -> str:
        """Return the agent's readable name; each name is fetched once."""
        if agent_id not in self._names:
            try:
                self._names[agent_id] = self._agents.get(agent_id).slug
            except ClientError:
                return agent_id
        return self._names[agent_id]

    def _may_claim(self, task_id: str) -> bool:
        """Whether the agent has the required roles: a claim that is certain to be rejected only fills the ledger."""
        try:
            needed = set(self._tasks.get(task_id).required_roles)
        except NotFound:
            return False
        known_at, roles = self._roles
        if not needed <= roles and now() - known_at > _ROLES_KNOWN_SECONDS:
            roles = frozenset(self._agents.get(self._agent_id).roles)
            self._roles = (now(), roles)
        return needed <= roles
