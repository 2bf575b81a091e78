"""One unit, as a plain function over its submissions: nothing in it knows of an event loop or of threads.

    at the beginning      the world is brought to the head, and what is due is recorded
    each submission       answered again if its key is known; else decided, checked, placed and folded with all that
                          follows, and its reply is made
    at the end            all records are hashed and handed to the store, with rows, content and the time of what is
                          due next

A unit is of one workspace. A request is decided on the consequences of the one before it, so deciding and folding
cannot be separate stages. What a unit does to its workspace is `unit_of_work`; when units run, and which callers are
answered then, is `commit_path`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import msgspec
import structlog

from redkey.commands.decision import Refused
from redkey.commands.draft import Ids
from redkey.commands.due import next_time
from redkey.errors import RedKeyError, StoreError, StoreFailed, UpgradeNeeded
from redkey.ledger.network import MessageRefused, is_projected
from redkey.ledger.ports import Unit
from redkey.reducers.world import World
from redkey.services.answers import Answers, KeepAnswer
from redkey.services.documents import Documents
from redkey.services.failures import OrderAway
from redkey.services.ordered.fees import FeeDesk
from redkey.services.ordered.messages import ProjectMessages
from redkey.services.ordered.projection import StructureMissing
from redkey.services.ordered.work import OrderedWork
from redkey.services.outcome import Outcome
from redkey.services.place import Place
from redkey.services.prefetching import reads_of
from redkey.services.submission import Submission
from redkey.services.unit_of_work import TopicWork
from redkey.services.workspaces import check_visitor
from redkey.services.worlds import Loan

_log = structlog.get_logger("redkey.services")
# The result of a submission: an outcome, or why there is none.
Answer = Outcome | RedKeyError


class Ordered(Protocol):
    """What a unit needs of the driver of an ordered workspace."""

    @property
    def desk(self) -> FeeDesk | None: ...


class UnitMeans(msgspec.Struct, frozen=True):
    """What units keep from one to the next. Data of a topic is used by that topic's unit alone."""

    ids: Ids
    answers: Answers
    documents: Documents
    # The local topics of workspaces that are ordered by a network that this server can reach.
    ordered: Mapping[str, Ordered] = {}
    # Units run where each read is a round trip.
    is_far: bool = False
    # Signs a checkpoint inside units, when it is time.
    sign: Callable[[Unit, str], None] | None = None


class UnitRun:
    """One unit: its submissions, the world that it was lent, and its results so far."""

    __slots__ = ("answers", "batch", "loan", "topic", "work")

    def __init__(self, batch: Sequence[Submission], loan: Loan) -> None:
        self.batch, self.loan, self.topic = batch, loan, loan.topic
        # As many as were decided, so that the caller can see where the unit failed.
        self.answers: list[Answer] = []
        # None if the world cannot be read.
        self.work: TopicWork | None = None


def run_unit(means: UnitMeans, unit: Unit, run: UnitRun) -> None:
    """Run the submissions in their order, and pass everything to the unit."""
    world = settle_all(means, unit, run)
    if run.work is not None and world is not None:
        run.work.finish()
        if run.work.records and means.sign is not None:
            means.sign(unit, run.topic)
        unit.put_due(run.topic, next_time(world))


def settle_all(means: UnitMeans, unit: Unit, run: UnitRun) -> World | None:
    """Record what is due, then decide and fold each submission; return the world, None if it cannot be read."""
    topic, answers, projected = run.topic, run.answers, is_projected(run.topic)
    means.documents.begin(unit, topic)
    try:
        world = run.loan.enter(unit)
    except StoreError:
        raise
    except RedKeyError as cause:
        # The workspace cannot be read: all callers get the reason.
        answers += [cause] * len(run.batch)
        return None
    if projected and topic not in means.ordered:
        # Records written by this server alone would differ from those of other servers.
        answers += [OrderAway()] * len(run.batch)
        return None
    kind = OrderedWork if projected else TopicWork
    run.work = work = kind(unit, topic, world, means.ids, run.loan.loaded_at, means.documents)
    if isinstance(work, OrderedWork):
        work.desk = means.ordered[topic].desk
    work.run_due()
    keeps = sum(type(one.command) is KeepAnswer for one in run.batch)
    if means.is_far:
        unit.prefetch(topic, reads_of(unit, topic, world, run.batch, means.answers, means.documents))
    if keeps:
        means.answers.make_room(unit, topic, work.now, keeps)
    for submission in run.batch:
        try:
            answers.append(_settle(means, unit, work, submission))
        except Refused as refused:
            answers.append(refused)
    return world


def _settle(means: UnitMeans, unit: Unit, work: TopicWork, submission: Submission) -> Answer:
    command, idem = submission.command, submission.idem
    if command is None:
        return Outcome()
    if type(command) is KeepAnswer:
        return Outcome(kept=means.answers.keep(unit, submission.topic, command, work.now))
    if type(command) is ProjectMessages:
        return _project(work, command)
    workspace_id = work.workspace_id
    if workspace_id and submission.caller.workspace_id != workspace_id:
        check_visitor(unit, submission.caller)
    if idem:
        kept = means.answers.find(unit, submission.topic, idem, submission.body)
        if kept is not None:
            return Outcome(kept=kept)
    outcome = work.answer(submission) if submission.sent and isinstance(work, OrderedWork) else work.run(submission)
    if submission.reply is None or outcome.outgoing:
        return outcome
    return _replied(outcome, submission, work.place)


def _project(work: TopicWork, command: ProjectMessages) -> Answer:
    """Record what follows from messages, or return why it stopped at one of them; earlier ones stay recorded."""
    try:
        if isinstance(work, OrderedWork):
            # Another server of the same store may have projected some in between.
            known = work.cursor.sequence
            work.project([message for message in command.messages if message.sequence > known])
    except (StructureMissing, MessageRefused, UpgradeNeeded) as stopped:
        return stopped
    return Outcome()


def _replied(outcome: Outcome, submission: Submission, place: Place) -> Answer:
    """Return the outcome with its reply, or why there is no reply, for its caller alone: the records stay."""
    if submission.damage is not None:
        return submission.damage
    try:
        outcome.reply = submission.reply(outcome, place) if submission.reply is not None else None
    except Refused:
        raise
    except StoreFailed as damaged:
        # Content that the reply would show is damaged.
        return damaged
    except Exception as cause:
        _log.error("a reply could not be made", topic=submission.topic, exc_info=cause)
        failure = RedKeyError("The request was recorded, and its reply could not be made.", code="internal_error")
        failure.__cause__ = cause
        return failure
    return outcome


def note_damage(batch: Sequence[Submission], answers: Sequence[Answer]) -> bool:
    """True if a reply of a unit that failed read damaged content; no further try reads it again."""
    met = [(one, answer) for one, answer in zip(batch, answers, strict=False) if isinstance(answer, StoreFailed)]
    for submission, damage in met:
        submission.damage = damage
    return bool(met)
