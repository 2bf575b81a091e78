"""The commit path: from a submission's arrival, through its unit and the commit, to its reply.

A unit is of one workspace. A store whose units are inline runs them on the event loop, without yielding, and commits
those of one turn together; any other store runs them on writer threads, one unit a workspace, different workspaces in
parallel. Either way the world is lent to its unit, so no reader sees it ahead of its commit, and callers, waiters and
listeners are served on the loop before the workspace's next unit. If a commit fails, its world is dropped and read
again; if its outcome is in doubt, the workspace is closed until that is resolved; if an fsync fails, the process must
stop.

Which worlds are loaded is `worlds`, who waits for a task is `waiters`, what a unit does is `run_unit`. How callers use
the path is `coordinator`.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial

import structlog

from redkey.commands.draft import Ids
from redkey.errors import CommitInDoubt, RedKeyError, StoreError, StorePoisoned, WriterBusy
from redkey.ledger.network import is_projected
from redkey.ledger.ports import SequencedStore, Unit
from redkey.services.acts import AnyAct
from redkey.services.answers import Answers
from redkey.services.documents import Documents
from redkey.services.failures import Unavailable, internal_failure, store_failure
from redkey.services.ordered.driver import OrderedTopic
from redkey.services.outcome import NO_TASKS, Outcome, Settled
from redkey.services.run_unit import UnitMeans, UnitRun, note_damage, run_unit
from redkey.services.submission import Submission
from redkey.services.turns import Turns
from redkey.services.waiters import Waiters
from redkey.services.worlds import Loan, Worlds
from redkey.services.writer_threads import WriterThreads

# The number of event-loop turns at most in which more requests may arrive before a unit starts.
_DRAIN_TURNS = 16
# How long the callers of a unit in doubt wait for its outcome.
DOUBT_SECONDS = 10.0
# How long to leave a task of another server to the waiters there; and the pause before another look after a failure.
_FOREIGN_SECONDS, _AGAIN_SECONDS = 0.02, 1.0
# How many acts share a commit at most.
_ACTS_TOGETHER = 64
_log = structlog.get_logger("redkey.services")
Listener = Callable[[str, Sequence[Settled]], None]


class CommitPath:
    """Runs and commits units for every workspace of one store, and answers their callers."""

    def __init__(
        self,
        store: SequencedStore,
        ids: Ids,
        *,
        on_fatal: Callable[[BaseException], None],
        now: Callable[[], float] = time.monotonic,
        sign: Callable[[Unit, str], None] | None = None,
    ) -> None:
        """`now` measures how long units take; the time of the ledger is the store's.

        `sign` is called at the end of each unit that records something: a checkpoint is committed with the records it
        covers.
        """
        self._store, self._on_fatal = store, on_fatal
        self._worlds, self._waiters = Worlds(store), Waiters()
        self._answers, self._documents = Answers(), Documents()
        # Drivers of the workspaces that a network orders, by local topic.
        self._ordered: dict[str, OrderedTopic] = {}
        self._means = UnitMeans(ids, self._answers, self._documents, self._ordered, not store.inline, sign)
        self._arrived, self._now = Turns(now), now
        self._acts: deque[AnyAct] = deque()
        # Requests with an idempotency key that are not answered yet: a retry joins the first one.
        self._flights: dict[tuple[str, str], Submission] = {}
        self._listeners: list[Listener] = []
        self._act_first = False
        self._draining = self._stopping = False
        self._idle = asyncio.Event()
        self._idle.set()
        # The topics whose worlds were read up to the head in this turn of the loop.
        self._peeked: set[str] = set()
        # The threads for units that are not inline; None if units run on the loop.
        self._writers = None if store.inline else WriterThreads(store)
        # Topics whose commit has been in doubt for too long: requests for them are refused until it is resolved.
        self._doubtful: set[str] = set()
        # Topics with commits of other servers, whose waiters will be woken soon.
        self._looking: set[str] = set()
        # Called with the seconds of each commit; units on writer threads are not measured.
        self.on_measured: Callable[[float], None] = lambda seconds: None
        # Why no request is accepted any more; None while requests are accepted.
        self._stopped: Callable[[], RedKeyError] | None = None

    def listen(self, listener: Listener) -> None:
        """Call `listener(topic, records)` after each commit of this process."""
        self._listeners.append(listener)

    def announce(self, topic: str, records: Sequence[Settled]) -> None:
        """Call the listeners with records that this process committed, through this coordinator or beside it."""
        for listener in self._listeners:
            try:
                listener(topic, records)
            except Exception as error:
                # The records are durable, and the commit path must continue for all other callers.
                _log.error("a listener of commits failed", topic=topic, exc_info=error)

    # Commits of other processes.

    def look_at(self, topic: str) -> None:
        """Wake the waiters of a workspace to which other processes have committed."""
        if self._writers is None:
            self._look_now(topic)
        elif topic in self._waiters.topics and topic not in self._looking:
            # Waiters at the server that created a task come first; the others do not take a lock for nothing.
            self._looking.add(topic)
            asyncio.get_running_loop().call_later(_FOREIGN_SECONDS, self._look_now, topic)

    def _look_now(self, topic: str) -> None:
        """Fold what other processes wrote, and wake the waiters for whom something is still offered."""
        self._looking.discard(topic)
        if topic not in self._waiters.topics:
            return
        if self._writers is None:
            try:
                self._worlds.peek(topic, self._store.known_head(topic))
            except StoreError:
                self._look_later(topic)
                return
            self._wake(topic)
        elif topic in self._writers.busy:
            # A unit or an act is running; `_look_again` comes after it.
            return
        elif not self._writers.is_free:
            self.look_at(topic)
        else:
            loan = self._worlds.lend(topic)
            self._writers.start(topic, partial(loan.approach, self._store), partial(self._looked, loan))

    def _looked(self, loan: Loan, cause: BaseException | None) -> None:
        """End a look for which a thread read what other processes wrote, with the world on loan as for a unit."""
        if cause is None:
            self._worlds.take_back(loan, None)
            self._wake(loan.topic)
            self._look_again(loan.topic)
        else:
            self._worlds.drop(loan)
            self._look_later(loan.topic)
        self._begin_draining()

    def _look_later(self, topic: str) -> None:
        if not self.stopping:
            asyncio.get_running_loop().call_later(_AGAIN_SECONDS, self._look_now, topic)

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
        """Collect the requests that arrive in the same turns of the loop into one commit, as long as each turn brings
        more.
        """
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
                # The lock was taken by another process the last time, and this coordinator waited for it on behalf of
                # the act.
                self._perform_next()
            batch = self._present(self._arrived.take())
            if batch:
                self._commit(batch)
            # Commands and acts take turns, so that neither delays the other for long.
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
            # All callers that wanted to write may have left; then release the lock for other processes.
            self._store.release()

    def _present(self, taken: Iterable[Submission]) -> list[Submission]:
        """Return the submissions that still have a caller; offer the tasks of the others to the next waiter."""
        batch: list[Submission] = []
        for submission in taken:
            if not submission.over:
                batch.append(submission)
            else:
                submission.abandon()
                self._pass_on(submission)
        return batch

    def _commit(self, batch: list[Submission]) -> None:
        """Run one unit for each workspace of the batch, and make all of them durable by one commit."""
        runs: list[UnitRun] = []
        try:
            with self._store.together(wait=False):
                begun = self._now()
                for topic, submissions in _by_topic(batch).items():
                    runs.append(UnitRun(submissions, self._worlds.lend(topic)))
                    self._run(runs[-1])
                decided = self._now()
            seconds = self._now() - decided
            self._arrived.measured(len(batch), decided - begun, seconds)
            self.on_measured(seconds)
        except WriterBusy:
            self._arrived.put_back(batch)
            raise
        except Exception as cause:
            self._units_failed(batch, runs, cause)
        else:
            self._answer(runs)

    def _run(self, run: UnitRun) -> None:
        if not self._store.inline and run.loan.is_far_behind(self._store.known_head(run.topic)):
            run.loan.approach(self._store)
        with self._store.write(run.topic) as unit:
            run_unit(self._means, unit, run)

    def _units_failed(self, batch: Sequence[Submission], runs: list[UnitRun], cause: Exception) -> None:
        """Answer or retry a batch of which nothing was recorded, after forgetting what its units have folded."""
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
            # The unit read damaged content. Run it again without the replies that would show that content.
        elif len(batch) == 1:
            failed = internal_failure(cause)
            self._fail(batch, lambda: failed)
            return
        else:
            # One of them fails: retry each alone, so that the others succeed.
            for submission in batch:
                submission.alone = True
        self._arrived.put_back(batch)

    def _perform_next(self) -> None:
        """Run the next act, and all acts that may share its commit."""
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
            # One of them failed: give each a unit of its own.
            for act in acts:
                act.joins = False
            self._acts.extendleft(reversed(acts))
        else:
            acts[0].fail(store_failure(cause) if isinstance(cause, StoreError) else internal_failure(cause))

    # Units on writer threads.

    def _dispatch(self, writers: WriterThreads) -> None:
        """Start units for workspaces that are not busy while there are free writers; commands and acts take turns."""
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
            # The unit did not start.
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
        """Close a workspace until it is known whether its unit was committed; other workspaces continue."""
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
        """Fail all callers of a workspace in doubt: a retry with the same key gets the outcome."""
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
        # Nothing was recorded: callers that still wait get another unit.
        self._worlds.drop(run.loan)
        self._answers.forget(run.topic)
        self._arrived.put_back([one for one in run.batch if not one.over])

    def _act_resolved(self, act: AnyAct, committed: bool) -> None:
        if committed:
            act.succeed()
        else:
            act.fail(Unavailable())

    # From commit to reply.

    def _answer(self, runs: Sequence[UnitRun]) -> None:
        """Take back the worlds of durable units, answer their callers, and call listeners and waiters."""
        for run in runs:
            work = run.work
            if work is not None:
                self._worlds.take_back(run.loan, work.changes)
                if not is_projected(run.topic):
                    self._worlds.follow(run.topic, work.records)
                self._documents.keep(run.topic, work.contents.values())
                self._documents.erase(run.topic, work.place.erased)
        for run in runs:
            for submission, answer in zip(run.batch, run.answers, strict=True):
                taken = isinstance(answer, Outcome) and (answer.records or answer.outgoing)
                if submission.offer is not None and not taken:
                    self._pass_on(submission)
                if submission.over:
                    continue
                if isinstance(answer, Outcome) and answer.outgoing:
                    self._ordered[run.topic].send(submission, answer.outgoing)
                elif isinstance(answer, Outcome) and submission.deadline and answer.answer == NO_TASKS:
                    submission.sent = ()
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
        """Offer a task to the next waiter: the one it was offered to did not take it."""
        if submission.offer is not None and self._worlds.get(submission.topic) is not None:
            self._worlds.news(submission.topic).offers.append(submission.offer)
            asyncio.get_running_loop().call_soon(self._wake, submission.topic)
        submission.offer = None

    @staticmethod
    def _fail(submissions: Iterable[Submission], failure: Callable[[], RedKeyError]) -> None:
        for submission in submissions:
            if not submission.over:
                submission.settle(failure())

    @property
    def stopping(self) -> bool:
        return self._stopping or self._stopped is not None


def _by_topic(batch: Iterable[Submission]) -> dict[str, list[Submission]]:
    """Group the submissions by workspace, in their order."""
    topics: dict[str, list[Submission]] = {}
    for submission in batch:
        topics.setdefault(submission.topic, []).append(submission)
    return topics
