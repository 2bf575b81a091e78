"""Waiting for tasks to end: read each task once, then follow one event stream for all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from redkey.client.calls import tasks
from redkey.client.calls.ledger import Ledger
from redkey.client.flow import Emit, Flow, Flowing, advance, call, follow
from redkey.client.policy import Policy
from redkey.client.request import EVENT_STREAM, get
from redkey.errors import TimedOut, WorkFailed
from redkey.shapes.events import Event
from redkey.shapes.tasks import Task

_ENDS = ("task.complete", "task.failed", "task.cancelled", "gate.approved", "gate.rejected")


def has_ended(task: Task) -> bool:
    """Whether the task's state is final. A completion that waits for approval is not."""
    return task.state in ("failed", "cancelled") or (task.state == "completed" and not task.gate_id)


def ended(task_ids: Sequence[str]) -> Flowing[Task]:
    """Yield each task as soon as it has ended."""
    return Flowing(lambda policy: _ended(task_ids, policy))


def _ended(task_ids: Sequence[str], policy: Policy) -> Flow[None]:
    pending = dict.fromkeys(task_ids)
    newest = yield from call(Ledger.query.build(None, order="desc", limit=1), policy)
    for task_id in list(pending):
        yield from _look(task_id, pending, policy)
    if not pending:
        return
    after = newest.items[0].sequence if newest.items else 0
    events = follow(get("/stream", Event, accept=EVENT_STREAM, types=_ENDS, after=after), policy)
    effect = advance(events, None)
    while pending:
        if isinstance(effect, Emit):
            event: Event = effect.value
            for task_id in {event.subject.id, event.data.get("taskId", "")} & pending.keys():
                yield from _look(task_id, pending, policy)
            effect = advance(events, None)
        else:
            effect = advance(events, (yield effect))


def _look(task_id: str, pending: dict[str, None], policy: Policy) -> Flow[None]:
    task: Task = yield from call(tasks.Tasks.get.build(None, task_id), policy)
    if has_ended(task):
        del pending[task_id]
        yield Emit(task)


def in_order(task_ids: Sequence[str], ended_tasks: Sequence[Task], timeout: float | None) -> list[Task]:
    """Return the tasks in the order of `task_ids`; TimedOut if some have not ended."""
    by_id = {task.task_id: task for task in ended_tasks}
    missing = [task_id for task_id in dict.fromkeys(task_ids) if task_id not in by_id]
    if missing:
        named = ", ".join(missing[:3]) + (", ..." if len(missing) > 3 else "")
        raise TimedOut(f"{len(missing)} of {len(set(task_ids))} tasks have not ended after {timeout:g} s: {named}")
    return [by_id[task_id] for task_id in task_ids]


def output_of(task: Task) -> Any:
    """Return the output of a completed task; WorkFailed if the task failed or was cancelled."""
    if task.state == "completed":
        return task.output
    if task.state == "cancelled":
        raise WorkFailed(f"{task.task_id} ({task.title}) was cancelled", code="task_cancelled")
    failure = task.failure
    why = f": {failure.reason}" if failure is not None and failure.reason else ""
    kind = f" ({failure.kind})" if failure is not None else ""
    raise WorkFailed(f"{task.task_id} ({task.title}) failed{kind}{why}", code="task_failed")
