"""The coordinator: the interface of the write path. Everything that is written is submitted here.

Requests that arrive together are decided in one unit and made durable by one commit; a request is answered only after
its records are durable. How that happens is `commit_path`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from redkey.commands.actor import Actor
from redkey.commands.decision import key_reused
from redkey.errors import CommitInDoubt, RedKeyError
from redkey.ledger.network import is_projected
from redkey.ledger.ports import Content, StoreUnit, Unit
from redkey.reducers.world import World
from redkey.services.acts import AnyAct, Perform, new_topic, on_store, on_topic
from redkey.services.commit_path import CommitPath
from redkey.services.failures import Unavailable
from redkey.services.ordered.driver import OrderedTopic
from redkey.services.outcome import Outcome
from redkey.services.submission import Done, MakeReply, Request, Submission

# How many workspaces that may need a tick are read from the store at once.
_DUE_LIMIT = 100
T = TypeVar("T")
_NOBODY = Actor("", "", frozenset())


class Coordinator(CommitPath):
    """Takes commands, acts and questions about every workspace of one store."""

    def loaded(self, topic: str) -> World | None:
        """Return the world of a topic if it is in memory and no unit has it."""
        return self._worlds.get(topic)

    def order(self, driver: OrderedTopic) -> None:
        """Order a workspace by a network: requests are submitted there, and answered by what the network orders."""
        self._ordered[driver.topic] = driver

    def resume(self, submission: Submission) -> None:
        """Answer a request in a unit: everything up to its messages is projected."""
        if submission.over:
            return
        self._arrive(submission)

    async def submit(
        self,
        topic: str,
        caller: Actor,
        command: Request,
        contents: tuple[Content, ...] = (),
        *,
        idem: str = "",
        body: str = "",
        wait_seconds: float = 0,
        reply: MakeReply | None = None,
        extensions: dict[str, Any] | None = None,
    ) -> Outcome:
        """Submit a command and return its durable outcome, with its reply if `reply` is given.

        Refused if it is not allowed; Unavailable or a StoreError if the store did not take it: then nothing was
        recorded.
        """
        future: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()

        def done(answer: Outcome | RedKeyError) -> None:
            if future.done():
                return
            if isinstance(answer, Outcome):
                future.set_result(answer)
            else:
                future.set_exception(answer)

        submission = self.enqueue(
            topic,
            caller,
            command,
            contents,
            done,
            idem=idem,
            body=body,
            wait_seconds=wait_seconds,
            reply=reply,
            extensions=extensions,
        )
        # A cancelled caller leaves at once: otherwise it could win a task without ever learning of it.
        future.add_done_callback(lambda _: submission.leave(done))
        return await future

    def enqueue(
        self,
        topic: str,
        caller: Actor,
        command: Request,
        contents: tuple[Content, ...],
        done: Done,
        *,
        idem: str = "",
        body: str = "",
        wait_seconds: float = 0,
        reply: MakeReply | None = None,
        extensions: dict[str, Any] | None = None,
    ) -> Submission:
        """Accept a command; call `done` with its durable outcome, or with the reason why there is none.

        To stop waiting, call `leave(done)` of the returned submission.
        """
        if self._stopped is not None:
            raise self._stopped()
        if topic in self._doubtful:
            raise CommitInDoubt
        submission = self._flights.get((topic, idem)) if idem else None
        if submission is not None:
            if submission.body != body:
                raise key_reused()
            submission.join(done)
            return submission
        deadline = asyncio.get_running_loop().time() + wait_seconds if wait_seconds else 0
        submission = Submission(
            topic, caller, command, contents, idem, body, self._ended, deadline, reply, done, extensions=extensions
        )
        if idem:
            self._flights[topic, idem] = submission
        self._arrive(submission)
        return submission

    async def act(self, topic: str, work: Callable[[Unit], T]) -> T:
        """Run work in a unit of its own and return its result once the unit is durable; see `acts`.

        An exception from the work is raised here, and nothing was written. A coordinator that has stopped still accepts
        acts of the server itself, such as the last checkpoint, until the store closes.
        """
        act = on_topic(topic, work, wait=not self._store.inline)
        self._take_act(act)
        return await act.future

    async def join(self, topic: str, work: Callable[[Unit], T]) -> T:
        """Run work as `act` does, if it may run twice: where units are inline, several such acts share a commit."""
        act = on_topic(topic, work, wait=not self._store.inline, joins=True)
        self._take_act(act)
        return await act.future

    async def act_on_store(self, work: Callable[[StoreUnit], T]) -> T:
        """Run work as `act` does, on the whole store."""
        act = on_store(work, wait=not self._store.inline)
        self._take_act(act)
        return await act.future

    async def create_topic(self, fact: str, topic: str | None = None) -> str:
        """Create a topic, or return the one that has this fact already."""
        act = new_topic(fact, topic, wait=not self._store.inline)
        self._take_act(act)
        return await act.future

    def act_from_thread(self, loop: asyncio.AbstractEventLoop) -> Perform:
        """Return a function by which other threads act: they wait while the loop runs their work."""
        return _FromThread(self, loop)

    def _take_act(self, act: AnyAct) -> None:
        self._acts.append(act)
        self._begin_draining()

    def _ended(self, submission: Submission) -> None:
        """Remove a submission that was answered or has no callers left."""
        if submission.idem:
            self._flights.pop((submission.topic, submission.idem), None)
        if submission.timer is not None:
            self._waiters.leave(submission)

    def tick(self, topic: str) -> None:
        """Record what is due in a workspace."""
        if is_projected(topic):
            driver = self._ordered.get(topic)
            if driver is not None:
                driver.tick()
            return
        self._arrive(Submission(topic, _NOBODY, None, (), "", "", self._ended))

    def due_topics(self, wall: int, monotonic: int) -> list[str]:
        """List the workspaces that may need a tick. Loaded ones are judged by their own ledger's time, all others by
        the store.
        """
        stored = self._store.due(wall, _DUE_LIMIT)
        return [*dict.fromkeys((*self._worlds.due(wall, monotonic), *stored))]

    def peek(self, topic: str) -> World:
        """Return the world at the last commit, for questions that need no unit; do not change it."""
        if self._writers is not None:
            # A unit may take the world at any time, and other code runs while the store is read.
            return self._worlds.peek_beside(topic, self._store.known_head(topic))
        if topic in self._peeked:
            # Once a turn is enough: every request of this turn came before it began.
            return self._worlds.peek(topic, 0)
        if not self._peeked:
            asyncio.get_running_loop().call_soon(self._peeked.clear)
        self._peeked.add(topic)
        return self._worlds.peek(topic, self._store.known_head(topic))

    @property
    def awaited(self) -> bool:
        """True while callers wait for a task, which another process may create."""
        return bool(self._waiters.topics)

    @property
    def waiting(self) -> int:
        """Return how many callers wait for a task."""
        return self._waiters.count

    @property
    def is_shared(self) -> bool:
        """True while several workspaces write: large work is then done in small pieces."""
        return self._arrived.is_shared

    def let_go_idle(self) -> None:
        """Unload the worlds that were not used since this was last called."""
        self._worlds.let_go_idle(self._waiters.topics)

    # Stopping.

    def begin_stop(self) -> None:
        """Answer all waiting callers; from now on no caller is kept waiting."""
        self._stopping = True
        self._waiters.stop()

    async def stop(self) -> None:
        """Answer all waiting callers, record what has arrived, then accept nothing more."""
        self.begin_stop()
        await self._idle.wait()
        if self._writers is not None:
            self._writers.give_up()
        self._stopped = self._stopped or partial(Unavailable, "The server is stopping.")


class _FromThread:
    """Runs acts for threads: each thread blocks while the loop runs its act."""

    def __init__(self, coordinator: Coordinator, loop: asyncio.AbstractEventLoop) -> None:
        self._coordinator, self._loop = coordinator, loop

    def __call__(self, topic: str, work: Callable[[Unit], T]) -> T:
        return asyncio.run_coroutine_threadsafe(self._coordinator.act(topic, work), self._loop).result()

    def on_store(self, work: Callable[[StoreUnit], T]) -> T:
        return asyncio.run_coroutine_threadsafe(self._coordinator.act_on_store(work), self._loop).result()
