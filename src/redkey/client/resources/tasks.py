"""Tasks as their owners use them: create, list, explain, cancel, retry, message, claim and wait."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import wraps
from typing import Any, Concatenate, ParamSpec

import msgspec

from redkey.client.calls import tasks as calls
from redkey.client.endings import ended
from redkey.client.flow import Flowing, Steps
from redkey.client.operation import Gathering, Mode, Operation, Procedure, Stream
from redkey.client.request import Request, as_object, at, post
from redkey.errors import ApiError, CallMisused
from redkey.shapes.fields import BATCH_LIMIT
from redkey.shapes.tasks import CreatedTask, MessageAdded, NewTask, Part, Task, TaskResults, TextPart

P = ParamSpec("P")
# A request may have 1 MiB in total.
_BATCH_BYTES = 768 * 1024


class PendingTask(CreatedTask, frozen=True, kw_only=True, dict=True):
    """A created task, and a way to wait for its result."""

    def result(self, *, timeout: float | None = None) -> Any:
        """Wait for the task to end and return its output; WorkFailed with the reason. Await it with the async client.

        TimedOut if it has not ended after `timeout` seconds; the task continues, and you may wait again.
        """
        tasks = self.__dict__.get("_tasks")
        if tasks is None:
            raise CallMisused("this reply belongs to no client: use rk.tasks.wait", code="client_missing")
        return tasks._sender.result(self.task_id, timeout)


def _with_result(
    build: Callable[Concatenate[Any, P], Request[CreatedTask]],
) -> Callable[Concatenate[Any, P], Request[PendingTask]]:
    """Return the same request, with a reply that can be waited for."""

    @wraps(build)
    def built(owner: Any, /, *arguments: P.args, **named: P.kwargs) -> Request[PendingTask]:
        request = build(owner, *arguments, **named)

        def read(body: bytes) -> PendingTask:
            task = PendingTask(**msgspec.structs.asdict(request.read(body)))
            task.__dict__["_tasks"] = owner
            return task

        return msgspec.structs.replace(request, read=read)  # type: ignore[arg-type]

    return built


class Tasks(calls.Tasks[Mode]):
    """Tasks of the workspace."""

    create = Operation(_with_result(calls.Tasks.create.build))

    @Procedure
    def create_many(self, queue: str, tasks: Iterable[NewTask | Mapping[str, Any]]) -> Steps[TaskResults]:
        """Create many tasks on a queue, in as many requests as needed; each result is a task or a problem.

        If a request fails, the requests before it have already created their tasks; a note on the error says how many.
        """
        results: list[Any] = []
        new_tasks = [as_object(one) for one in tasks]
        for batch in _batches(new_tasks):
            try:
                created: TaskResults = yield post(at("queues", queue, "tasks", "batch"), TaskResults, tasks=batch)
            except ApiError as refused:
                if results:
                    refused.add_note(f"The first {len(results)} of {len(new_tasks)} tasks were sent before the error.")
                raise
            results += created.items
        return TaskResults(items=tuple(results))

    @Stream
    def as_ended(self, task_ids: Sequence[str]) -> Flowing[Task]:
        """Yield each task as soon as it has ended: completed and approved, failed for good, or cancelled."""
        return ended(task_ids)

    @Gathering
    def wait(self, task_ids: Sequence[str], *, timeout: float | None = None) -> tuple[Sequence[str], float | None]:
        """Wait until all these tasks have ended, and return them in this order; TimedOut if some have not."""
        if isinstance(task_ids, str):
            raise CallMisused("wait takes a list of task ids", code="ids_invalid")
        return task_ids, timeout

    @Operation
    def add_message(
        self,
        task_id: str,
        *parts: Part | str,
        metadata: dict[str, str | int | float | bool | None] | None = None,
        extensions: Mapping[str, Any] | None = None,
    ) -> Request[MessageAdded]:
        """Add a message to a task that has not ended, as a list of parts or as plain text."""
        message_parts = [TextPart(text=part) if isinstance(part, str) else part for part in parts]
        where = at("tasks", task_id, "messages")
        return post(where, MessageAdded, parts=message_parts, metadata=metadata, extensions=extensions)


def _batches(tasks: Sequence[Any]) -> Iterator[Sequence[Any]]:
    """Split a list into batches that fit into one request each; an empty list is one batch."""
    batch: list[Any] = []
    size = 0
    for task in tasks:
        length = len(msgspec.json.encode(task))
        if batch and (len(batch) == BATCH_LIMIT or size + length > _BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(task)
        size += length
    if batch or not tasks:
        yield batch
