"""Tasks as their owners see them: made, seen, explained, stopped, tried again, spoken of, claimed."""

from __future__ import annotations

from redkey.client.calls import tasks as calls
from redkey.client.operation import Mode, Operation
from redkey.client.request import Request, at, post
from redkey.shapes.tasks import (
    MessageAdded,
    Part,
    TextPart,
)


class Tasks(calls.Tasks[Mode]):
    """Tasks of the workspace."""

    @Operation
    def add_message(
        self,
        task_id: str,
        *parts: Part | str,
        metadata: dict[str, str | int | float | bool | None] | None = None,
    ) -> Request[MessageAdded]:
        """Say something about a task that has not ended, in parts; text may be given as it is."""
        said = [TextPart(text=part) if isinstance(part, str) else part for part in parts]
        return post(at("tasks", task_id, "messages"), MessageAdded, parts=said, metadata=metadata)
