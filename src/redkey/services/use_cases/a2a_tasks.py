"""Tasks for A2A clients: created by a message, continued by one, followed, listed, cancelled.

Nothing is decided here that other interfaces do not decide too: these are the use cases of tasks, and they show the A2A
projection of the records.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Coroutine, Mapping
from itertools import islice
from typing import Any

import msgspec

from redkey.commands.decision import Refused, wrong
from redkey.commands.tasks import AddMessage, CancelTask, UnblockTask
from redkey.ledger import content
from redkey.ledger.ports import Content
from redkey.readmodel import a2a_list
from redkey.readmodel.a2a_list import Wanted
from redkey.readmodel.a2a_view import Lens, Sighted, Told
from redkey.readmodel.view import Shelf
from redkey.services.caller import Caller, Pending, authority_ended
from redkey.services.following import follow
from redkey.services.outcome import Outcome
from redkey.services.place import Place
from redkey.services.subscriptions import Filter
from redkey.services.use_case import use_case
from redkey.services.use_cases.message_documents import message_document
from redkey.services.use_cases.new_task import record
from redkey.services.use_cases.tasks import read_task
from redkey.services.use_cases.texts import keep_then, refuse_secrets
from redkey.shapes import tasks
from redkey.shapes.tasks import NewTask
from redkey.wire.a2a import MESSAGE

__all__ = ["Sent", "Sighted", "Told", "Wanted"]
# How long a follower waits before it checks whether it may still follow.
_LOOK_SECONDS = 15.0


class Sent(msgspec.Struct, frozen=True):
    """What a client sent about a task: its message as it is kept, its text, and its files."""

    message: Mapping[str, Any]
    text: str
    files: tuple[bytes, ...] = ()
    # The parts as workers read them (`redkey.shapes.tasks.Part`).
    parts: tuple[Mapping[str, Any], ...] = ()


def _lens(caller: Caller, shelf: Shelf) -> Lens:
    return Lens(shelf, caller.topic, caller.means.config.public_url)


def has_queue(caller: Caller, queue_id: str) -> bool:
    """True if the workspace has a queue with this id."""
    return queue_id in caller.means.coordinator.peek(caller.topic).queues


def _attached(caller: Caller, sent: Sent, queue_id: str) -> tuple[Content, ...]:
    """Store the files of a message as content of the workspace. Text files are searched for secrets."""
    for data in sent.files:
        refuse_secrets(caller, data.decode("utf-8", "replace"), queue_id=queue_id)
    return tuple(content.body(data) for data in sent.files)


@use_case(tasks.CREATE_TASK)
def create_task(
    caller: Caller, queue_id: str, task: NewTask, sent: Sent
) -> Pending[Sighted] | Coroutine[Any, Any, Pending[Sighted]]:
    """Put a task on a queue for a message."""

    def reply(outcome: Outcome, place: Place) -> Sighted:
        stream = outcome.records[0].event.stream.stream_id
        own = [one for one in outcome.records if one.event.stream.stream_id == stream]
        return _lens(caller, place).begin((one.event, one.sequence, one.timestamp) for one in own)

    attached = _attached(caller, sent, queue_id)
    return record(caller, queue_id, task, reply, beside={MESSAGE: sent.message}, attached=attached)


@use_case(tasks.ADD_MESSAGE)
async def continue_task(caller: Caller, task_id: str, sent: Sent) -> Sighted:
    """Send a message to a task that has not ended: its answer if it is blocked, else a message to its worker."""
    task = read_task(caller, task_id)

    def reply(outcome: Outcome, place: Place) -> Sighted:
        sighted = _lens(caller, place).sight(task_id, outcome.records[-1].sequence)
        if sighted is None:
            raise AssertionError("a message without a task")
        return sighted

    attached = _attached(caller, sent, task.queue_id)
    document: dict[str, Any] = {MESSAGE: sent.message}

    async def settle(pending: Pending[Sighted] | Coroutine[Any, Any, Pending[Sighted]]) -> Sighted:
        return await caller.reply(pending)

    if task.state == "blocked":
        text = sent.text or msgspec.json.encode(sent.parts).decode()
        try:
            return await settle(
                keep_then(
                    caller,
                    document | {"answer": text},
                    lambda ref, kept: Pending(UnblockTask(task_id, ref), reply, (kept, *attached)),
                    queue_id=task.queue_id,
                )
            )
        except Refused as refused:
            # Another answer was first: this one becomes a message.
            if refused.code != "not_blocked":
                raise
    message_id, role = "msg_" + caller.means.ids.ulid(), "agent" if caller.actor.agent_id else "human"
    return await settle(
        keep_then(
            caller,
            message_document(message_id, role, sent.parts) | document,
            lambda ref, kept: Pending(AddMessage(task_id, message_id, role, ref), reply, (kept, *attached)),
            queue_id=task.queue_id,
        )
    )


@use_case(tasks.GET_TASK)
def get_task(caller: Caller, task_id: str) -> Sighted:
    """Return a task as it is now."""
    read_task(caller, task_id)
    found = _lens(caller, caller.means.store).sight(task_id)
    if found is None:
        raise AssertionError("a task without a beginning")
    return found


@use_case(tasks.GET_TASK)
def resume_task(caller: Caller, task_id: str, sequence: int, skipped: int) -> Sighted:
    """Return a task as it was after a record of the ledger; if only `skipped` objects of that record were sent, as it
    was before it.
    """
    read_task(caller, task_id)
    lens = _lens(caller, caller.means.store)
    found = lens.sight(task_id, sequence - 1 if skipped else sequence) if sequence > 1 else None
    if found is None:
        raise wrong("cursor_invalid", "/Last-Event-ID", "the task did not exist at this place")
    if skipped:
        last = next(islice(lens.after(found.task, found.sequence), skipped - 1, None), None)
        if last is None or last.position != f"{sequence}.{skipped}":
            raise wrong("cursor_invalid", "/Last-Event-ID", "no event of this task has this id")
    return found


@use_case(tasks.CANCEL_TASK)
def cancel_task(caller: Caller, task_id: str) -> Pending[Sighted]:
    """Cancel a task; its holder learns it with the next call."""
    read_task(caller, task_id)

    def reply(outcome: Outcome, place: Place) -> Sighted:
        sighted = _lens(caller, place).sight(task_id, outcome.records[0].sequence)
        if sighted is None:
            raise AssertionError("a task cancelled before it was created")
        return sighted

    return Pending(CancelTask(task_id), reply)


@use_case(tasks.GET_TASK)
async def follow_task(caller: Caller, sighted: Sighted, skipped: int = 0) -> AsyncIterator[Told]:
    """Yield everything that is sent about a task after a place until it has ended: each object once, in order.

    `skipped` objects of the first record were sent before. It ends early when the server stops.
    """
    lens, task, after = _lens(caller, caller.means.store), sighted.task, sighted.sequence
    following = follow(caller, Filter(task_id=task.task_id), after)
    try:
        while not task.closed:
            for told in lens.after(task, after, skipped):
                yield told
                task, after, skipped = told.task, told.sequence, 0
            if task.closed:
                return
            while not following.ended and not following.take():
                if not following.behind:
                    await following.wait(_LOOK_SECONDS)
            if following.ended:
                if not caller.means.subscriptions.stopping:
                    raise authority_ended()
                return
    finally:
        following.leave()


@use_case(tasks.GET_TASK)
async def list_tasks(caller: Caller, wanted: Wanted, before: int, limit: int) -> tuple[list[Sighted], int, int]:
    """List tasks of the workspace, newest status first: a page, the place of the next (0: none), and how many there
    are.
    """
    means, topic = caller.means, caller.topic
    while a2a_list.is_behind(means.store, topic):
        await means.coordinator.act(topic, lambda unit: a2a_list.catch_up(unit, topic))

    def look() -> tuple[list[Sighted], int, int]:
        # Page, tasks and count are those of one moment, the one that the list has reached.
        with means.store.snapshot() as reader:
            until, lens = a2a_list.reached(reader, topic).sequence, _lens(caller, reader)
            found, following = a2a_list.page(reader, topic, wanted, before, limit)
            sighted = [one for listed in found if (one := lens.sight(listed.task_id, until)) is not None]
            return sighted, following, a2a_list.count(reader, topic, wanted)

    return await caller.in_thread(look)
