"""Tasks as their owners see them: created, seen, explained, stopped, tried again, spoken of, claimed, waited for."""

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
# A request may have 1 MiB in all.
_BATCH_BYTES = 768 * 1024


class PendingTask(CreatedTask, frozen=True, kw_only=True, dict=True):
    """A task that was created, and its result to come."""

    def result(self, *, timeout: float | None = None) -> Any:
        """Wait for the task to end: its output, or WorkFailed with the reason; awaited with the async client.

        TimedOut when it has not ended after `timeout` seconds; then it goes on, and may be waited for again.
        """
        tasks = self.__dict__.get("_tasks")
        if tasks is None:
            raise CallMisused("this reply belongs to no client: use rk.tasks.wait", code="client_missing")
        return tasks._sender.result(self.task_id, timeout)


def _with_result(
    build: Callable[Concatenate[Any, P], Request[CreatedTask]],
) -> Callable[Concatenate[Any, P], Request[PendingTask]]:
    """The same request, whose reply can be waited for."""

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
        """Put many tasks on a queue, in as many requests as they need; each is created, or has a problem of its own.

        When a request fails, those before it have created their tasks; the error has a note that says how many.
        """
        results: list[Any] = []
        given = [as_object(one) for one in tasks]
        for batch in _batches(given):
            try:
                created: TaskResults = yield post(at("queues", queue, "tasks", "batch"), TaskResults, tasks=batch)
            except ApiError as refused:
                if results:
                    refused.add_note(f"The first {len(results)} of {len(given)} tasks were handled before.")
                raise
            results += created.items
        return TaskResults(items=tuple(results))

    @Stream
    def as_ended(self, task_ids: Sequence[str]) -> Flowing[Task]:
        """The tasks, each as soon as it has ended: completed and approved, failed for good, or cancelled."""
        return ended(task_ids)

    @Gathering
    def wait(self, task_ids: Sequence[str], *, timeout: float | None = None) -> tuple[Sequence[str], float | None]:
        """Wait until all these tasks have ended: the tasks, in this order. TimedOut when some have not in time."""
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
        """Say something about a task that has not ended, in parts; text may be given as it is."""
        said = [TextPart(text=part) if isinstance(part, str) else part for part in parts]
        where = at("tasks", task_id, "messages")
        return post(where, MessageAdded, parts=said, metadata=metadata, extensions=extensions)


def _batches(tasks: Sequence[Any]) -> Iterator[Sequence[Any]]:
    """Parts of a list that fit into one request each; an empty list is one part, for the server to refuse."""
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
