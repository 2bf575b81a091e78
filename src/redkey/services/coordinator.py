"""The coordinator: the one write path. Requests that arrive together are decided in one unit and made durable
by one commit; a request is answered only after its records are durable.

Decide, fold and commit run without yielding the event loop, so nobody reads a world ahead of its commit. When a
commit fails, the worlds it changed are dropped and read again; when an fsync fails, the process must stop. Which
worlds are loaded is `worlds`'s, who waits for a task is `waiters`'s, what a unit does is `run_unit`'s.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, TypeVar

import structlog

from redkey.commands.actor import Actor
from redkey.commands.decision import key_reused
from redkey.commands.draft import Ids
from redkey.errors import RedKeyError, StoreError, StorePoisoned, WriterBusy
from redkey.ledger.ports import Content, SequencedStore, Unit
from redkey.reducers.changes import Changes
from redkey.reducers.world import World
from redkey.services.acts import Act, Perform
from redkey.services.answers import Answers
from redkey.services.documents import Documents
from redkey.services.failures import Unavailable, internal_failure, store_failure
from redkey.services.outcome import NO_TASKS, Outcome, Settled
from redkey.services.run_unit import Answer, UnitMeans, note_damage, run_unit
from redkey.services.submission import Done, MakeReply, Request, Submission
from redkey.services.turns import Turns
from redkey.services.unit_of_work import TopicWork
from redkey.services.waiters import Waiters
from redkey.services.worlds import Worlds

# How many turns the event loop gets at most to bring more requests before a unit begins.
_DRAIN_TURNS = 16
_NOBODY = Actor("", "", frozenset())

_log = structlog.get_logger("redkey.services")
T = TypeVar("T")
Listener = Callable[[str, Sequence[Settled]], None]


class Coordinator:
    """Decides and records submissions for every workspace of one store."""

    def __init__(
        self,
        store: SequencedStore,
        ids: Ids,
        *,
        on_fatal: Callable[[BaseException], None],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """`now` measures how long units take; the time of the ledger is the store's."""
        self._store, self._on_fatal = store, on_fatal
        self._worlds, self._waiters = Worlds(store), Waiters()
        self._answers, self._documents = Answers(), Documents()
        self._means = UnitMeans(ids, self._worlds, self._answers, self._documents)
        self._arrived, self._now = Turns(now), now
        self._acts: deque[Act[Any]] = deque()
        # Requests with an idempotency key that are on their way: a retry joins the first.
        self._flights: dict[tuple[str, str], Submission] = {}
        self._listeners: list[Listener] = []
        self._act_first = False
        self._draining = self._stopping = False
        self._idle = asyncio.Event()
        # The store's version in this turn of the loop, once somebody has asked for it.
        self._version: int | None = None
        # Why nothing is taken any more.
        self._stopped: Callable[[], RedKeyError] | None = None

    def listen(self, listener: Listener) -> None:
        """Call `listener(topic, records)` after each commit of this process."""
        self._listeners.append(listener)

    def announce(self, topic: str, records: Sequence[Settled]) -> None:
        """Tell the listeners of records that this process committed, through this coordinator or beside it."""
        for listener in self._listeners:
            try:
                listener(topic, records)
            except Exception as error:
                # The records are durable, and the commit path must go on for everybody else.
                _log.error("a listener of commits failed", topic=topic, exc_info=error)

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
    ) -> Outcome:
        """The durable outcome of a command, with its reply where `reply` says how to make it.

        Refused when it may not happen; Unavailable or a StoreError when the store did not take it: then nothing was
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
            topic, caller, command, contents, done, idem=idem, body=body, wait_seconds=wait_seconds, reply=reply
        )
        # A caller that is cancelled leaves at once: what it would win now, nobody would learn of.
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
    ) -> Submission:
        """Take a command; `done` is called with its durable outcome, or with the reason why there is none.

        To stop waiting, call `leave(done)` of the submission that is returned.
        """
        if self._stopped is not None:
            raise self._stopped()
        submission = self._flights.get((topic, idem)) if idem else None
        if submission is not None:
            if submission.body != body:
                raise key_reused()
            submission.join(done)
            return submission
        deadline = asyncio.get_running_loop().time() + wait_seconds if wait_seconds else 0
        submission = Submission(topic, caller, command, contents, idem, body, self._ended, deadline, reply, done)
        if idem:
            self._flights[topic, idem] = submission
        self._arrive(submission)
        return submission

    async def act(self, work: Callable[[Unit], T]) -> T:
        """The result of some work in a unit of its own, once the unit is durable; see `acts`.

        What the work raises is raised here, and nothing was written. A coordinator that has stopped still takes acts
        of the server itself, such as the last checkpoint, until the store closes.
        """
        act = Act(work)
        self._acts.append(act)
        self._begin_draining()
        return await act.future

    def act_from_thread(self, loop: asyncio.AbstractEventLoop) -> Perform:
        """How other threads act: they wait while the loop does their work."""

        def perform(work: Callable[[Unit], T]) -> T:
            return asyncio.run_coroutine_threadsafe(self.act(work), loop).result()

        return perform

    def _ended(self, submission: Submission) -> None:
        """It was answered, or nobody waits for it any more."""
        if submission.idem:
            self._flights.pop((submission.topic, submission.idem), None)
        if submission.timer is not None:
            self._waiters.leave(submission)

    def tick(self, topic: str) -> None:
        """Time has passed: let what is due in a workspace be recorded."""
        self._arrive(Submission(topic, _NOBODY, None, (), "", "", self._ended))

    def due_topics(self, wall: int, monotonic: int) -> list[str]:
        """The workspaces that may need a tick, loaded or not, each judged by its own ledger's time."""
        return self._worlds.due(wall, monotonic)

    def peek(self, topic: str) -> World:
        """The world at the last commit, for questions that need no unit; do not change it."""
        version = self._version
        if version is None:
            # Once a turn is enough: whatever asks in this turn came before it began.
            version = self._version = self._store.version()
            asyncio.get_running_loop().call_soon(self._next_turn)
        return self._worlds.peek(topic, version)

    def _next_turn(self) -> None:
        self._version = None

    @property
    def awaited(self) -> bool:
        """True while somebody waits for a task, which another process may bring."""
        return bool(self._waiters.topics)

    @property
    def waiting(self) -> int:
        """How many wait for a task."""
        return self._waiters.count

    @property
    def is_shared(self) -> bool:
        """True while several workspaces write: whoever has much to do does it in small pieces."""
        return self._arrived.is_shared

    def look(self) -> None:
        """Other processes have committed: wake whoever waits for what they brought."""
        for topic in list(self._waiters.topics):
            world = self._worlds.peek(topic, self._store.version())
            self._wake(topic, world, self._worlds.news(topic))

    def let_go_idle(self) -> None:
        """Let go of the worlds that nobody used since this was last called."""
        self._worlds.let_go_idle(self._waiters.topics)

    # From arrival to commit.

    def _arrive(self, submission: Submission) -> None:
        self._arrived.add(submission)
        if not self._draining:
            self._begin_draining()

    def _begin_draining(self) -> None:
        if not self._draining:
            self._draining = True
            self._idle.clear()
            asyncio.get_running_loop().call_soon(self._drain, _DRAIN_TURNS, 0)

    def _drain(self, turns: int, known: int) -> None:
        """Let what arrives in the same turns of the loop share one commit: as long as each turn brings more."""
        loop = asyncio.get_running_loop()
        arrived = len(self._arrived)
        if turns > 1 and known < arrived < self._arrived.unit_limit:
            loop.call_soon(self._drain, turns - 1, arrived)
            return
        try:
            if self._act_first and self._acts:
                # It found the lock taken the last time: the lock that was waited for is its own.
                self._perform(self._acts.popleft())
            batch = self._next_batch()
            if batch:
                self._commit(batch)
            # Commands and acts take turns, so that neither can hold up the other for long.
            if self._acts:
                self._perform(self._acts.popleft())
        except WriterBusy:
            loop.run_in_executor(None, self._store.hold).add_done_callback(self._lock_taken)
            return
        if self._arrived or self._acts:
            loop.call_soon(self._drain, _DRAIN_TURNS, 0)
        else:
            self._draining = False
            self._idle.set()

    def _lock_taken(self, waiting: asyncio.Future[None]) -> None:
        cause = None if waiting.cancelled() else waiting.exception()
        if waiting.cancelled() or cause is not None:
            self._fail(self._arrived.clear(), partial(store_failure, cause))
            while self._acts:
                self._acts.popleft().fail(store_failure(cause))
            self._drain(1, 0)
            return
        try:
            self._drain(1, 0)
        finally:
            # Everybody may be gone who wanted to write; then nobody else has to wait for them.
            self._store.release()

    def _next_batch(self) -> list[Submission]:
        """What shares the next unit; who is gone is left out, and what was offered to it goes to the next."""
        batch: list[Submission] = []
        for submission in self._arrived.take():
            if not submission.over:
                batch.append(submission)
            else:
                submission.abandon()
                self._pass_on(submission)
        return batch

    def _commit(self, batch: list[Submission]) -> None:
        works: dict[str, TopicWork] = {}
        answers: list[Answer] = []
        try:
            with self._store.write(wait=False) as unit:
                begun = self._now()
                self._settle_all(unit, batch, works, answers)
                for work in works.values():
                    work.finish()
                decided = self._now()
            self._arrived.measured(len(batch), decided - begun, self._now() - decided)
        except WriterBusy:
            self._arrived.put_back(batch)
            raise
        except StorePoisoned as poison:
            self._stopped = partial(StorePoisoned, poison.message)
            self._fail(batch, self._stopped)
            self._on_fatal(poison)
        except StoreError as cause:
            self._drop(batch)
            if not note_damage(batch, answers):
                self._fail(batch, partial(store_failure, cause))
                return
            # Reading damaged content broke the unit. Once more, without the replies that would show it.
            self._arrived.put_back(batch)
        except Exception as cause:
            self._drop(batch)
            if len(batch) == 1:
                failed = internal_failure(cause)
                self._fail(batch, lambda: failed)
                return
            # One of them cannot be done: the others must not suffer for it.
            for submission in batch:
                submission.alone = True
            self._arrived.put_back(batch)
        else:
            self._answer(batch, answers, works)

    def _perform(self, act: Act[Any]) -> None:
        self._act_first = False
        if act.over:
            return
        try:
            act.run(self._store)
        except WriterBusy:
            self._acts.appendleft(act)
            self._act_first = True
            raise
        except StorePoisoned as poison:
            self._stopped = partial(StorePoisoned, poison.message)
            act.fail(self._stopped())
            self._on_fatal(poison)
        except StoreError as cause:
            act.fail(store_failure(cause))
        except Exception as cause:
            act.fail(internal_failure(cause))

    def _settle_all(
        self, unit: Unit, batch: list[Submission], works: dict[str, TopicWork], answers: list[Answer]
    ) -> None:
        run_unit(self._means, unit, batch, works, answers)

    # From commit to answer.

    def _answer(self, batch: list[Submission], answers: list[Answer], works: dict[str, TopicWork]) -> None:
        for topic, work in works.items():
            self._worlds.tell(topic, work.changes)
            self._documents.keep(topic, work.contents.values())
            self._documents.erase(topic, work.place.erased)
        for submission, answer in zip(batch, answers, strict=True):
            if submission.offer is not None and not (isinstance(answer, Outcome) and answer.records):
                self._pass_on(submission)
            if submission.over:
                continue
            if isinstance(answer, Outcome) and submission.deadline and answer.answer == NO_TASKS:
                self._waiters.park(submission, answer)
            else:
                submission.settle(answer)
        for topic, work in works.items():
            if work.records:
                self.announce(topic, work.records)
            world = self._worlds.get(topic)
            if world is not None:
                self._wake(topic, world, self._worlds.news(topic))
        self._worlds.let_go_surplus(self._waiters.topics)

    def _wake(self, topic: str, world: World, news: Changes) -> None:
        for submission in self._waiters.wake(topic, world, news):
            self._arrive(submission)

    def _pass_on(self, submission: Submission) -> None:
        """What was offered to a waiter that did not take it is offered again."""
        world = self._worlds.get(submission.topic)
        if submission.offer is not None and world is not None:
            news = self._worlds.news(submission.topic)
            news.offers.append(submission.offer)
            asyncio.get_running_loop().call_soon(self._wake, submission.topic, world, news)
        submission.offer = None

    def _drop(self, batch: list[Submission]) -> None:
        for submission in batch:
            self._worlds.drop(submission.topic)
            self._answers.forget(submission.topic)

    @staticmethod
    def _fail(submissions: Iterable[Submission], failure: Callable[[], RedKeyError]) -> None:
        for submission in submissions:
            if not submission.over:
                submission.settle(failure())

    # The end.

    @property
    def stopping(self) -> bool:
        return self._stopping or self._stopped is not None

    def begin_stop(self) -> None:
        """Answer those who wait; from now on nobody is kept waiting."""
        self._stopping = True
        self._waiters.stop()

    async def stop(self) -> None:
        """Answer those who wait, let what arrived be recorded, then take nothing more."""
        self.begin_stop()
        if self._draining:
            await self._idle.wait()
        self._stopped = self._stopped or partial(Unavailable, "The server is stopping.")
