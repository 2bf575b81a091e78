"""The state of a context (a project, a workflow, a queue): a summary of all tasks with its `context_id`."""

from __future__ import annotations

from collections.abc import Iterator

from redkey.ledger.ports import Reader
from redkey.readmodel.rows import ENDED_STATES, LIVE_STATES, entity, pages, task_list
from redkey.reducers.entities import Task
from redkey.shapes.tasks import ContextState
from redkey.wire.decode import decode
from redkey.wire.ids import parse_stream

_PAGE = 500
# The most tasks that are read; a state with more says that it is not complete.
_TASKS = 10_000


def context_state(reader: Reader, topic: str, context_id: str) -> ContextState | None:
    """Return the state of a context; None if it has no tasks."""
    found: dict[str, Task] = {}
    for task in _tasks(reader, topic, context_id):
        if task.context_id == context_id:
            found[task.task_id] = task
        if len(found) > _TASKS:
            break
    if not found:
        return None
    tasks = sorted(found.values(), key=lambda task: task.task_id)[:_TASKS]
    by_state: dict[str, list[str]] = {}
    for task in tasks:
        by_state.setdefault(task.shown_state, []).append(task.task_id)
    artifacts = sorted({artifact.artifact_id for task in tasks for artifact in task.artifacts})
    return ContextState(
        context_id=context_id,
        task_count=len(tasks),
        tasks={state: tuple(ids) for state, ids in by_state.items()},
        blocked="blocked" in by_state,
        blocked_task_ids=tuple(by_state.get("blocked", ())),
        artifact_count=len(artifacts),
        artifact_ids=tuple(artifacts),
        terminal=all(task.ended_at for task in tasks),
        complete=len(found) <= _TASKS,
    )


def _tasks(reader: Reader, topic: str, context_id: str) -> Iterator[Task]:
    """Yield the tasks that may belong to a context: by its queue, or by the event index if a caller chose its name."""
    kind, _, subject = context_id.partition(":")
    if kind == "queue":
        for state in (*LIVE_STATES, *ENDED_STATES):
            yield from pages(reader, topic, "task", task_list(subject, state))
        return
    after = 0
    while records := reader.events(topic, context_id, after, _PAGE):
        for record in records:
            after = record.sequence
            row = reader.row(topic, "task", parse_stream(decode(record.wire)["stream"]["stream_id"]).subject)
            if row is not None:
                yield entity(row)
