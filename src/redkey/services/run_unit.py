"""One unit, as a plain function over its submissions: nothing in it knows of an event loop or of threads.

    at the beginning      the world is brought to the head, and what time has brought is recorded
    each submission       answered again if its key is known; else decided, checked, placed and folded with all that
                          follows, and its reply is made
    at the end            all records are hashed and handed to the store, with rows, content and the time of what is
                          due next

A unit is of one workspace. A request meets the consequences of the one before it, so deciding and folding cannot be
parted into stages. What a unit does to its workspace is `unit_of_work`'s; when units run, and who is answered then, is
the coordinator's.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import structlog

from redkey.commands.decision import Refused
from redkey.commands.draft import Ids
from redkey.commands.due import next_time
from redkey.errors import RedKeyError, StoreError, StoreFailed
from redkey.ledger.ports import Unit
from redkey.reducers.world import World
from redkey.services.answers import Answers, KeepAnswer
from redkey.services.documents import Documents
from redkey.services.outcome import Outcome
from redkey.services.place import Place
from redkey.services.submission import Submission
from redkey.services.unit_of_work import TopicWork
from redkey.services.workspaces import check_visitor
from redkey.services.worlds import Loan

_log = structlog.get_logger("redkey.services")
# What a submission gets: an outcome, or why there is none.
Answer = Outcome | RedKeyError


class UnitMeans(msgspec.Struct, frozen=True):
    """What units keep from one to the next. What belongs to a topic is used by that topic's unit alone."""

    ids: Ids
    answers: Answers
    documents: Documents


class UnitRun:
    """One unit: its submissions, the world that it was lent, and what came of it so far."""

    __slots__ = ("answers", "batch", "loan", "work")

    def __init__(self, batch: Sequence[Submission], loan: Loan) -> None:
        self.batch, self.loan = batch, loan
        # As many as were decided, so that whoever runs the unit can tell where it failed.
        self.answers: list[Answer] = []
        # None while the world cannot be read.
        self.work: TopicWork | None = None

    @property
    def topic(self) -> str:
        return self.loan.topic


def run_unit(means: UnitMeans, unit: Unit, run: UnitRun) -> None:
    """Do what the submissions ask for, in their order, and hand everything to the unit."""
    world = settle_all(means, unit, run)
    if run.work is not None and world is not None:
        run.work.finish()
        unit.put_due(run.loan.topic, next_time(world))


def settle_all(means: UnitMeans, unit: Unit, run: UnitRun) -> World | None:
    """Record what is due, then decide and fold each submission; the world after it, None if it cannot be read."""
    topic, answers = run.loan.topic, run.answers
    means.documents.begin(unit, topic)
    try:
        world = run.loan.enter(unit)
    except StoreError:
        raise
    except RedKeyError as cause:
        # A workspace that cannot be read: everybody is told why.
        answers += [cause] * len(run.batch)
        return None
    run.work = work = TopicWork(unit, topic, world, means.ids, run.loan.loaded_at, means.documents)
    work.run_due()
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
    workspace_id = work.workspace_id
    if workspace_id and submission.caller.workspace_id != workspace_id:
        check_visitor(unit, submission.caller)
    if idem:
        kept = means.answers.find(unit, submission.topic, idem, submission.body)
        if kept is not None:
            return Outcome(kept=kept)
    outcome = work.run(submission)
    return outcome if submission.reply is None else _replied(outcome, submission, work.place)


def _replied(outcome: Outcome, submission: Submission, place: Place) -> Answer:
    """The outcome with its reply; or why there is no reply, to its caller alone: what was recorded stays recorded."""
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
    """True when a reply of a unit that failed had met damaged content, which no further try looks at again."""
    met = [(one, answer) for one, answer in zip(batch, answers, strict=False) if isinstance(answer, StoreFailed)]
    for submission, damage in met:
        submission.damage = damage
    return bool(met)
