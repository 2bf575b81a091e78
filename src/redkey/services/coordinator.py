"""The coordinator: the one write path. Requests that arrive together are decided in one unit and made durable
by one commit; a request is answered only after its records are durable.

Decide, fold and commit run without yielding the event loop, so nobody reads a world ahead of its commit. When a
commit fails, the worlds it changed are dropped and read again; when an fsync fails, the process must stop.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from redkey.commands.caller import Caller
from redkey.commands.decision import Refused
from redkey.commands.draft import Ids
from redkey.commands.due import next_time
from redkey.errors import RedKeyError, StorePoisoned, WriterBusy
from redkey.ledger.ports import Content, Reader, SequencedStore, Unit
from redkey.readmodel.rows import load_world
from redkey.reducers.fold import fold
from redkey.reducers.world import World
from redkey.services.outcome import Outcome, Settled
from redkey.services.submission import Submission
from redkey.services.unit_of_work import TopicWork, key_reused, read_structure
from redkey.wire.decode import decode

# Units stay small enough that nobody waits long for a commit that others fill.
BATCH_LIMIT = 512
WORLDS_LIMIT = 1000
# How many turns the event loop gets to bring more requests before a unit begins.
_DRAIN_TURNS = 2


class Unavailable(RedKeyError):
    """The store cannot take the request now; send it again with the same idempotency key."""

    code = "unavailable"


class Coordinator:
    """Decides and records submissions for every workspace of one store."""

    def __init__(self, store: SequencedStore, ids: Ids, *, on_fatal: Callable[[BaseException], None]) -> None:
        self._store, self._ids, self._on_fatal = store, ids, on_fatal
        self._worlds: dict[str, World] = {}
        self._arrived: deque[Submission] = deque()
        self._draining = self._stopping = False
        self._stopped: RedKeyError | None = None
        self._waiters: dict[tuple[str, str], deque[Submission]] = {}
        # Requests with an idempotency key that are on their way: a retry joins the first.
        self._flights: dict[tuple[str, str], Submission] = {}
        # Workspaces that were used since the idle ones were last let go.
        self._recent: set[str] = set()
        self._listeners: list[Callable[[str, Sequence[Settled]], None]] = []

    def listen(self, listener: Callable[[str, Sequence[Settled]], None]) -> None:
        """Call `listener(topic, records)` after each commit of this process."""
        self._listeners.append(listener)

    async def submit(
        self,
        topic: str,
        caller: Caller,
        command: Any,
        contents: tuple[Content, ...] = (),
        *,
        idem: str = "",
        body: str = "",
        wait_seconds: float = 0,
    ) -> Outcome:
        """The durable outcome of a command; Refused when it may not happen, Unavailable when the store failed."""
        if self._stopped is not None:
            raise self._stopped
        flight = self._flights.get((topic, idem)) if idem else None
        if flight is not None:
            if flight.body != body:
                raise key_reused()
            return await flight.outcome()
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Outcome] = loop.create_future()
        deadline = loop.time() + wait_seconds if wait_seconds else 0
        submission = Submission(topic, caller, command, contents, idem, body, future, deadline)
        self._arrive(submission)
        if not idem:
            return await future
        self._flights[topic, idem] = submission
        try:
            return await submission.outcome()
        finally:
            if submission.future.done():
                self._flights.pop((topic, idem), None)

    def tick(self, topic: str) -> None:
        """Time has passed: let what is due in a workspace be recorded."""
        future: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        future.add_done_callback(lambda done: done.cancelled() or done.exception())
        self._arrive(Submission(topic, _NOBODY, None, (), "", "", future))

    def next_due(self) -> tuple[int, str] | None:
        """The earliest ledger time at which a loaded world may need a tick, and its topic."""
        times = [(when, topic) for topic, world in self._worlds.items() if (when := next_time(world))]
        return min(times, default=None)

    def peek(self, topic: str) -> World:
        """The world at the last commit, for questions that need no unit; do not change it."""
        world = self._worlds.get(topic)
        if world is None:
            world = self._worlds[topic] = load_world(self._store, topic, decode)
            self._recent.add(topic)
            self._evict(topic)
        elif self._store.head(topic).sequence != world.sequence:
            self._catch_up(self._store, topic, world)
        return world

    @property
    def awaited(self) -> bool:
        """True while somebody waits for a task, which another process may bring."""
        return bool(self._waiters)

    def look(self) -> None:
        """Other processes have committed: wake whoever waits for what they brought."""
        for topic in {topic for topic, _ in self._waiters}:
            self.peek(topic)
            self._wake(topic)

    def let_go_idle(self) -> list[tuple[str, int]]:
        """Let go of the worlds that nobody used since this was last called: (topic, when it is next due, or 0)."""
        recent, self._recent = self._recent, set()
        awaited = {topic for topic, _ in self._waiters}
        idle = [topic for topic in self._worlds if topic not in recent and topic not in awaited]
        return [(topic, next_time(self._worlds.pop(topic))) for topic in idle]

    def _arrive(self, submission: Submission) -> None:
        self._arrived.append(submission)
        if not self._draining:
            self._draining = True
            asyncio.get_running_loop().call_soon(self._drain, _DRAIN_TURNS)

    def _drain(self, turns: int) -> None:
        """Let what arrives in the same turns of the loop share one commit."""
        if turns > 1:
            asyncio.get_running_loop().call_soon(self._drain, turns - 1)
            return
        batch = [self._arrived.popleft() for _ in range(min(BATCH_LIMIT, len(self._arrived)))]
        try:
            self._commit(batch)
        except WriterBusy:
            self._arrived.extendleft(reversed(batch))
            waiting = asyncio.get_running_loop().run_in_executor(None, self._store.hold)
            waiting.add_done_callback(self._lock_taken)
            return
        self._draining = False
        if self._arrived:
            self._draining = True
            asyncio.get_running_loop().call_soon(self._drain, 1)

    def _lock_taken(self, waiting: asyncio.Future[None]) -> None:
        if waiting.cancelled() or waiting.exception() is not None:
            self._draining = False
            self._fail(list(self._arrived), Unavailable())
            self._arrived.clear()
            return
        self._drain(1)

    def _commit(self, batch: list[Submission]) -> None:
        live = [submission for submission in batch if not submission.future.done()]
        if not live:
            return
        try:
            answers, works = self._attempt(live)
        except WriterBusy:
            raise
        except StorePoisoned as poison:
            self._stopped = poison
            self._fail(live, poison)
            self._on_fatal(poison)
        except Exception as cause:
            self._forget(live)
            if len(live) > 1:
                # One of them cannot be done: the others must not suffer for it.
                for submission in live:
                    self._commit([submission])
            else:
                refused = cause if isinstance(cause, RedKeyError) else RedKeyError(str(cause), code="internal_error")
                self._fail(live, refused)
        else:
            self._answer(live, answers, works)

    def _attempt(self, live: list[Submission]) -> tuple[list[Outcome | Refused], dict[str, TopicWork]]:
        works: dict[str, TopicWork] = {}
        answers: list[Outcome | Refused] = []
        with self._store.write(wait=False) as unit:
            for submission in live:
                work = works.get(submission.topic)
                if work is None:
                    world = self._world(unit, submission.topic)
                    work = works[submission.topic] = TopicWork(unit, submission.topic, world, self._ids)
                    work.run_due()
                if submission.command is None:
                    answers.append(Outcome())
                    continue
                try:
                    answers.append(work.run(submission))
                except Refused as refused:
                    answers.append(refused)
            for work in works.values():
                work.finish()
        return answers, works

    def _answer(self, live: list[Submission], answers: list[Outcome | Refused], works: dict[str, TopicWork]) -> None:
        for submission, answer in zip(live, answers, strict=True):
            if submission.future.done():
                continue
            if isinstance(answer, Refused):
                submission.future.set_exception(answer)
            elif submission.deadline and answer.answer == {"status": "no_tasks"}:
                self._park(submission, answer)
            else:
                submission.future.set_result(answer)
        for topic, work in works.items():
            if work.records:
                for listener in self._listeners:
                    listener(topic, work.records)
            self._wake(topic)

    def _park(self, submission: Submission, answer: Outcome) -> None:
        """Keep a caller waiting for a task until one comes or its time is over."""
        loop = asyncio.get_running_loop()
        key = submission.topic, submission.command.queue_id
        if submission.deadline <= loop.time() or self._stopping:
            submission.future.set_result(answer)
            return
        self._waiters.setdefault(key, deque()).append(submission)
        loop.call_at(submission.deadline, _time_is_over, submission.future, answer)

    def _wake(self, topic: str) -> None:
        """A new task wakes one waiter of its queue, not all."""
        world = self._worlds.get(topic)
        if world is None or not world.offered:
            return
        offered, world.offered = world.offered, []
        for queue_id in offered:
            waiting = self._waiters.get((topic, queue_id))
            while waiting:
                submission = waiting.popleft()
                if not submission.future.done():
                    self._arrive(submission)
                    break
            if waiting is not None and not waiting:
                del self._waiters[topic, queue_id]

    def _world(self, unit: Unit, topic: str) -> World:
        world = self._worlds.pop(topic, None)
        if world is None:
            world = load_world(unit, topic, decode)
        elif unit.head(topic).sequence != world.sequence:
            self._catch_up(unit, topic, world)
        # The most recently used stand last.
        self._worlds[topic] = world
        self._recent.add(topic)
        self._evict(topic)
        return world

    def _catch_up(self, reader: Reader, topic: str, world: World) -> None:
        """Fold what other processes wrote; their units wrote the rows already."""
        while records := reader.read(topic, world.sequence, 1000):
            for record in records:
                wire = decode(record.wire)
                ref = wire["payload"].get("structure_ref") or wire["payload"].get("prices_ref")
                structure = read_structure(reader, topic, ref["sha256"]) if ref is not None else None
                fold(world, wire, record.sequence, record.timestamp, structure)
        world.dirty.clear()

    def _evict(self, keep: str) -> None:
        while len(self._worlds) > WORLDS_LIMIT:
            oldest = next(iter(self._worlds))
            if oldest == keep:
                return
            del self._worlds[oldest]

    def _forget(self, submissions: list[Submission]) -> None:
        for submission in submissions:
            self._worlds.pop(submission.topic, None)

    @staticmethod
    def _fail(submissions: list[Submission], cause: RedKeyError) -> None:
        for submission in submissions:
            if not submission.future.done():
                submission.future.set_exception(cause)

    @property
    def stopping(self) -> bool:
        return self._stopping or self._stopped is not None

    def begin_stop(self) -> None:
        """Answer those who wait; from now on nobody is kept waiting."""
        self._stopping = True
        for waiting in self._waiters.values():
            for submission in waiting:
                _time_is_over(submission.future, Outcome(answer={"status": "no_tasks"}))
        self._waiters.clear()

    async def stop(self) -> None:
        """Answer those who wait, let what arrived be recorded, then take nothing more."""
        self.begin_stop()
        while self._draining:
            await asyncio.sleep(0)
        self._stopped = Unavailable("The server is stopping.")


def _time_is_over(future: asyncio.Future[Outcome], answer: Outcome) -> None:
    if not future.done():
        future.set_result(answer)


_NOBODY = Caller("", "", frozenset())
