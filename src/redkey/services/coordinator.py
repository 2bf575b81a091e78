"""The coordinator: the one write path. Requests that arrive together are decided in one unit and made durable
by one commit; a request is answered only after its records are durable.

A unit is of one workspace. A store whose units are inline runs them on the event loop, without yielding, and commits
those of one turn together; any other runs them on writer threads, one unit a workspace, different workspaces side by
side. Either way the world is lent to its unit, so nobody reads it ahead of its commit, and answers, waiters and
listeners are served on the loop before the workspace's next unit. When a commit fails, its world is dropped and read
again; when its outcome is in doubt, the workspace is closed until that is resolved; when an fsync fails, the process
must stop. Which worlds are loaded is `worlds`'s, who waits for a task is `waiters`'s, what a unit does is `run_unit`'s.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TypeVar

import structlog

from redkey.commands.actor import Actor
from redkey.commands.decision import key_reused
from redkey.commands.draft import Ids
from redkey.errors import CommitInDoubt, RedKeyError, StoreError, StorePoisoned, WriterBusy
from redkey.ledger.ports import Content, SequencedStore, StoreUnit, Unit
from redkey.reducers.world import World
from redkey.services.acts import AnyAct, Perform, new_topic, on_store, on_topic
from redkey.services.answers import Answers
from redkey.services.documents import Documents
from redkey.services.failures import Unavailable, internal_failure, store_failure
from redkey.services.outcome import NO_TASKS, Outcome, Settled
from redkey.services.run_unit import UnitMeans, UnitRun, note_damage, run_unit
from redkey.services.submission import Done, MakeReply, Request, Submission
from redkey.services.turns import Turns
from redkey.services.waiters import Waiters
from redkey.services.worlds import Worlds
from redkey.services.writer_threads import WriterThreads

# How many turns the event loop gets at most to bring more requests before a unit begins.
_DRAIN_TURNS = 16
# How long the callers of a unit in doubt wait for its outcome.
DOUBT_SECONDS = 10.0
# How long a task that another server brought waits for those who wait there; when to look again after a failure.
_FOREIGN_SECONDS, _AGAIN_SECONDS = 0.02, 1.0
# How many workspaces the store is asked for that may need a tick.
_DUE_LIMIT = 100
# How many acts share a commit at most.
_ACTS_TOGETHER = 64
_log = structlog.get_logger("redkey.services")
T = TypeVar("T")
_NOBODY = Actor("", "", frozenset())
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
        self._means = UnitMeans(ids, self._answers, self._documents)
        self._arrived, self._now = Turns(now), now
        self._acts: deque[AnyAct] = deque()
        # Requests with an idempotency key that are on their way: a retry joins the first.
        self._flights: dict[tuple[str, str], Submission] = {}
        self._listeners: list[Listener] = []
        self._act_first = False
        self._draining = self._stopping = False
        self._idle = asyncio.Event()
        self._idle.set()
        # The worlds that were found to be at the head in this turn of the loop.
        self._peeked: set[str] = set()
        # Where units run that are not inline; None where they are.
        self._writers = None if store.inline else WriterThreads(store)
        # Topics whose commit has been in doubt for too long: what comes for them is refused until it is resolved.
        self._doubtful: set[str] = set()
        # Topics to which others have committed, before somebody who waits there is woken.
        self._looking: set[str] = set()
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
        if topic in self._doubtful:
            raise CommitInDoubt
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

    async def act(self, topic: str, work: Callable[[Unit], T]) -> T:
        """The result of some work in a unit of its own, once the unit is durable; see `acts`.

        What the work raises is raised here, and nothing was written. A coordinator that has stopped still takes acts
        of the server itself, such as the last checkpoint, until the store closes.
        """
        act = on_topic(topic, work, wait=not self._store.inline)
        self._take_act(act)
        return await act.future

    async def join(self, topic: str, work: Callable[[Unit], T]) -> T:
        """The same for work that may be done twice: where units are inline, several such acts share a commit."""
        act = on_topic(topic, work, wait=not self._store.inline, joins=True)
        self._take_act(act)
        return await act.future

    async def act_on_store(self, work: Callable[[StoreUnit], T]) -> T:
        """The same on the whole store."""
        act = on_store(work, wait=not self._store.inline)
        self._take_act(act)
        return await act.future

    async def create_topic(self, fact: str) -> str:
        """A new topic, or the one that has this fact already."""
        act = new_topic(fact, wait=not self._store.inline)
        self._take_act(act)
        return await act.future

    def act_from_thread(self, loop: asyncio.AbstractEventLoop) -> Perform:
        """How other threads act: they wait while the loop does their work."""
        return _FromThread(self, loop)

    def _take_act(self, act: AnyAct) -> None:
        self._acts.append(act)
        self._begin_draining()

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
        """The workspaces that may need a tick: those known here are judged by their own ledger's time, all others by
        what the store says."""
        stored = self._store.due(wall, _DUE_LIMIT)
        return [*dict.fromkeys((*self._worlds.due(wall, monotonic), *stored))]

    def peek(self, topic: str) -> World:
        """The world at the last commit, for questions that need no unit; do not change it."""
        if self._writers is not None and topic in self._writers.busy:
            return self._worlds.peek_beside(topic, self._store.known_head(topic))
        if topic in self._peeked:
            # Once a turn is enough: whatever asks in this turn came before it began.
            return self._worlds.peek(topic, 0)
        if not self._peeked:
            asyncio.get_running_loop().call_soon(self._peeked.clear)
        self._peeked.add(topic)
        return self._worlds.peek(topic, self._store.known_head(topic))

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

    def look_at(self, topic: str) -> None:
        """Other processes have committed to a workspace: wake whoever waits for what they brought."""
        if self._writers is None:
            self._look_now(topic)
        elif topic in self._waiters.topics and topic not in self._looking:
            # Whoever waits at the server that brought a task is first; the others do not take a lock for nothing.
            self._looking.add(topic)
            asyncio.get_running_loop().call_later(_FOREIGN_SECONDS, self._look_now, topic)

    def _look_now(self, topic: str) -> None:
        """Fold what others wrote, and wake those for whom something is still offered."""
        self._looking.discard(topic)
        if topic not in self._waiters.topics or (self._writers is not None and topic in self._writers.busy):
            # No caller waits; or a unit or an act runs, and `_look_again` follows it.
            return
        try:
            self._worlds.peek(topic, self._store.known_head(topic))
        except StoreError:
            if not self.stopping:
                asyncio.get_running_loop().call_later(_AGAIN_SECONDS, self._look_now, topic)
            return
        self._wake(topic)

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
        if self._writers is not None:
            self._dispatch(self._writers)
            return
        try:
            if self._act_first and self._acts:
                # It found the lock taken the last time: the lock that was waited for is its own.
                self._perform_next()
            batch = self._present(self._arrived.take())
            if batch:
                self._commit(batch)
            # Commands and acts take turns, so that neither can hold up the other for long.
            if self._acts:
                self._perform_next()
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

    def _present(self, taken: Iterable[Submission]) -> list[Submission]:
        """Those that somebody still waits for; what was offered to one that is gone goes to the next."""
        batch: list[Submission] = []
        for submission in taken:
            if not submission.over:
                batch.append(submission)
            else:
                submission.abandon()
                self._pass_on(submission)
        return batch

    def _commit(self, batch: list[Submission]) -> None:
        """One unit for each workspace of the batch, all of them made durable by one commit."""
        runs: list[UnitRun] = []
        try:
            with self._store.together(wait=False):
                begun = self._now()
                for topic, submissions in _by_topic(batch).items():
                    runs.append(UnitRun(submissions, self._worlds.lend(topic)))
                    self._run(runs[-1])
                decided = self._now()
            self._arrived.measured(len(batch), decided - begun, self._now() - decided)
        except WriterBusy:
            self._arrived.put_back(batch)
            raise
        except Exception as cause:
            self._units_failed(batch, runs, cause)
        else:
            self._answer(runs)

    def _run(self, run: UnitRun) -> None:
        with self._store.write(run.topic) as unit:
            run_unit(self._means, unit, run)

    def _units_failed(self, batch: Sequence[Submission], runs: list[UnitRun], cause: Exception) -> None:
        """Nothing of the batch was recorded: forget what its units have folded, and answer or try again."""
        if isinstance(cause, StorePoisoned):
            self._stopped = partial(StorePoisoned, cause.message)
            self._fail(batch, self._stopped)
            self._on_fatal(cause)
            return
        for run in runs:
            self._worlds.drop(run.loan)
            self._answers.forget(run.topic)
        if isinstance(cause, StoreError):
            damaged = [run for run in runs if note_damage(run.batch, run.answers)]
            if not damaged:
                self._fail(batch, partial(store_failure, cause))
                return
            # Reading damaged content broke the unit. Once more, without the replies that would show it.
        elif len(batch) == 1:
            failed = internal_failure(cause)
            self._fail(batch, lambda: failed)
            return
        else:
            # One of them cannot be done: the others must not suffer for it.
            for submission in batch:
                submission.alone = True
        self._arrived.put_back(batch)

    def _perform_next(self) -> None:
        """Do the next act; with it all that may share its commit."""
        self._act_first = False
        acts = [self._acts.popleft()]
        while acts[0].joins and self._acts and self._acts[0].joins and len(acts) < _ACTS_TOGETHER:
            acts.append(self._acts.popleft())
        acts = [act for act in acts if not act.over]
        try:
            if len(acts) > 1:
                with self._store.together(wait=False):
                    for act in acts:
                        act.run(self._store)
            elif acts:
                acts[0].run(self._store)
        except WriterBusy:
            self._acts.extendleft(reversed(acts))
            self._act_first = True
            raise
        except Exception as cause:
            self._acts_failed(acts, cause)
        else:
            for act in acts:
                act.succeed()

    def _acts_failed(self, acts: list[AnyAct], cause: Exception) -> None:
        if isinstance(cause, StorePoisoned):
            self._stopped = partial(StorePoisoned, cause.message)
            for act in acts:
                act.fail(self._stopped())
            self._on_fatal(cause)
        elif len(acts) > 1:
            # One of them failed: each gets a unit of its own.
            for act in acts:
                act.joins = False
            self._acts.extendleft(reversed(acts))
        else:
            acts[0].fail(store_failure(cause) if isinstance(cause, StoreError) else internal_failure(cause))

    # Units on writer threads.

    def _dispatch(self, writers: WriterThreads) -> None:
        """Begin units for workspaces that are not busy, as long as there are writers; commands and acts take turns."""
        self._draining = False
        while writers.is_free and (self._begin_unit(writers) | self._begin_act(writers)):
            pass
        if not self._arrived and not self._acts and not writers.busy - self._doubtful:
            self._idle.set()

    def _begin_unit(self, writers: WriterThreads) -> bool:
        while taken := self._arrived.take_of(writers.busy):
            batch = self._present(taken)
            if batch:
                run = UnitRun(batch, self._worlds.lend(batch[0].topic))
                writers.start(run.topic, partial(self._run, run), partial(self._unit_ended, writers, run))
                return True
        return False

    def _begin_act(self, writers: WriterThreads) -> bool:
        act = next((one for one in self._acts if one.topic not in writers.busy), None)
        if act is None or not writers.is_free:
            return False
        self._acts.remove(act)
        if not act.over:
            writers.start(act.topic, partial(act.run, self._store), partial(self._act_ended, writers, act))
        return True

    def _unit_ended(self, writers: WriterThreads, run: UnitRun, cause: BaseException | None) -> None:
        if cause is None:
            self._answer([run])
        elif isinstance(cause, CommitInDoubt):
            self._doubt(writers, run.topic, cause, run.batch, partial(self._unit_resolved, run))
        elif isinstance(cause, WriterBusy):
            # The unit did not begin.
            self._worlds.take_back(run.loan, None)
            self._fail(run.batch, partial(store_failure, cause))
        elif isinstance(cause, Exception):
            self._units_failed(run.batch, [run], cause)
        self._look_again(run.topic)
        self._begin_draining()

    def _act_ended(self, writers: WriterThreads, act: AnyAct, cause: BaseException | None) -> None:
        if cause is None:
            act.succeed()
        elif isinstance(cause, CommitInDoubt):
            self._doubt(writers, act.topic, cause, (), partial(self._act_resolved, act))
        elif isinstance(cause, Exception):
            self._acts_failed([act], cause)
        self._look_again(act.topic)
        self._begin_draining()

    def _look_again(self, topic: str) -> None:
        """Look for commits of other servers that were announced while a unit or an act kept the workspace busy."""
        if topic not in self._waiters.topics:
            return
        world = self._worlds.get(topic)
        if world is None or self._store.known_head(topic) > world.sequence:
            self.look_at(topic)

    def _doubt(
        self,
        writers: WriterThreads,
        topic: str,
        cause: CommitInDoubt,
        batch: Sequence[Submission],
        resolved: Callable[[bool], None],
    ) -> None:
        """Whether a unit was committed is not known: its workspace is closed until it is, the others go on."""
        _log.warning("a commit is in doubt", topic=topic, reason=cause.message)
        late = asyncio.get_running_loop().call_later(DOUBT_SECONDS, self._doubt_lasts, topic, batch)

        def end(committed: bool) -> None:
            late.cancel()
            self._doubtful.discard(topic)
            _log.info("a commit was resolved", topic=topic, committed=committed)
            resolved(committed)
            self._look_again(topic)
            self._begin_draining()

        writers.resolve(topic, cause, end)

    def _doubt_lasts(self, topic: str, batch: Sequence[Submission]) -> None:
        """Nobody waits longer: a retry with the same key tells how it ended."""
        self._doubtful.add(topic)
        self._fail([*batch, *self._arrived.clear(topic)], CommitInDoubt)
        for act in [one for one in self._acts if one.topic == topic]:
            self._acts.remove(act)
            act.fail(CommitInDoubt())
        self._begin_draining()

    def _unit_resolved(self, run: UnitRun, committed: bool) -> None:
        if committed:
            self._answer([run])
            return
        # Nothing was recorded: whoever still waits gets another unit.
        self._worlds.drop(run.loan)
        self._answers.forget(run.topic)
        self._arrived.put_back([one for one in run.batch if not one.over])

    def _act_resolved(self, act: AnyAct, committed: bool) -> None:
        if committed:
            act.succeed()
        else:
            act.fail(Unavailable())

    # From commit to answer.

    def _answer(self, runs: Sequence[UnitRun]) -> None:
        """The units are durable: their worlds are everybody's again, and whoever waits for them is served."""
        for run in runs:
            work = run.work
            if work is not None:
                self._worlds.take_back(run.loan, work.changes)
                self._documents.keep(run.topic, work.contents.values())
                self._documents.erase(run.topic, work.place.erased)
        for run in runs:
            for submission, answer in zip(run.batch, run.answers, strict=True):
                if submission.offer is not None and not (isinstance(answer, Outcome) and answer.records):
                    self._pass_on(submission)
                if submission.over:
                    continue
                if isinstance(answer, Outcome) and submission.deadline and answer.answer == NO_TASKS:
                    self._waiters.park(submission, answer)
                else:
                    submission.settle(answer)
        for run in runs:
            if run.work is not None and run.work.records:
                self.announce(run.topic, run.work.records)
            self._wake(run.topic)
        self._worlds.let_go_surplus(self._waiters.topics)

    def _wake(self, topic: str) -> None:
        world = self._worlds.get(topic)
        if world is not None:
            for submission in self._waiters.wake(topic, world, self._worlds.news(topic)):
                self._arrive(submission)

    def _pass_on(self, submission: Submission) -> None:
        """What was offered to a waiter that did not take it is offered again."""
        if submission.offer is not None and self._worlds.get(submission.topic) is not None:
            self._worlds.news(submission.topic).offers.append(submission.offer)
            asyncio.get_running_loop().call_soon(self._wake, submission.topic)
        submission.offer = None

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
        await self._idle.wait()
        if self._writers is not None:
            self._writers.give_up()
        self._stopped = self._stopped or partial(Unavailable, "The server is stopping.")


class _FromThread:
    """Acts that threads wait for while the loop does them."""

    def __init__(self, coordinator: Coordinator, loop: asyncio.AbstractEventLoop) -> None:
        self._coordinator, self._loop = coordinator, loop

    def __call__(self, topic: str, work: Callable[[Unit], T]) -> T:
        return asyncio.run_coroutine_threadsafe(self._coordinator.act(topic, work), self._loop).result()

    def on_store(self, work: Callable[[StoreUnit], T]) -> T:
        return asyncio.run_coroutine_threadsafe(self._coordinator.act_on_store(work), self._loop).result()


def _by_topic(batch: Iterable[Submission]) -> dict[str, list[Submission]]:
    """The submissions of each workspace, in their order."""
    topics: dict[str, list[Submission]] = {}
    for submission in batch:
        topics.setdefault(submission.topic, []).append(submission)
    return topics
