"""A remote agent that speaks A2A, by the official client (extra `redkey[a2a]`).

It gets one message: the prompt as text, the input envelope as data. Its output envelope is data or text in an artifact
of its task, in the task's last status message, or in the message that it answers with. Where the agent streams, it is
followed; where it does not, or the stream breaks, its task is asked for. When the lease is lost the task is cancelled.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import Iterable
from typing import Any, Final
from uuid import uuid4

from redkey.errors import ConfigRefused, StepFailed
from redkey.runner.envelope import input_bytes, read_output
from redkey.runner.executors.port import Produced, Step
from redkey.runner.process import Limits
from redkey.wire.step import StepOutput, kind_of

_log = logging.getLogger("redkey.runner")
_POLL_SECONDS: Final = 1.0
_CANCEL_SECONDS: Final = 10.0
_ENDED: Final = frozenset({"COMPLETED", "FAILED", "CANCELED", "REJECTED", "INPUT_REQUIRED", "AUTH_REQUIRED"})


class A2aExecutor:
    """Calls one remote agent, found by the card at its URL."""

    def __init__(self, url: str, *, limits: Limits | None = None, poll_seconds: float = _POLL_SECONDS) -> None:
        try:
            import a2a.client  # noqa: F401
        except ImportError as cause:
            raise ConfigRefused(
                "the client is not installed: pip install 'redkey[a2a]'", code="extra_missing"
            ) from cause
        if not url.startswith(("http://", "https://")):
            raise ConfigRefused("an A2A agent is named by its http or https URL")
        self._url, self._limits, self._poll_seconds = url, limits or Limits(), poll_seconds

    async def run(self, step: Step) -> Produced:
        import httpx
        from a2a.client import A2AClientError, ClientConfig, create_client

        call = None
        async with httpx.AsyncClient(timeout=httpx.Timeout(30.0, read=None)) as http:
            try:
                async with asyncio.timeout(self._limits.seconds):
                    # An agent that does not stream answers at once with its task, so that it can be cancelled.
                    client = await create_client(self._url, ClientConfig(httpx_client=http, polling=True))
                    call = _Call(client, self._poll_seconds)
                    return Produced(await call.run(step))
            except TimeoutError as cause:
                text = f"the remote agent was stopped after {self._limits.seconds:g} seconds"
                raise StepFailed(text, code="timed_out") from cause
            except (A2AClientError, httpx.HTTPError) as cause:
                code = "remote_failed" if call is not None else "spawn_failed"
                raise StepFailed(f"the remote agent cannot be reached: {cause}", code=code) from cause
            finally:
                if call is not None:
                    await call.close()


class _Call:
    """One message to the agent, and the task that it began there."""

    def __init__(self, client: Any, poll_seconds: float) -> None:
        self._client, self._poll_seconds = client, poll_seconds
        self._task_id = ""
        self._ended = False

    async def run(self, step: Step) -> StepOutput:
        from a2a.client import A2AClientError

        try:
            async for event in self._client.send_message(_request(step)):
                kind = event.WhichOneof("payload")
                if kind == "message":
                    return _read([event.message.parts])
                self._follow(event, kind)
        except A2AClientError as broken:
            if not self._task_id:
                raise
            _log.warning("the stream of the remote agent broke (%s); its task is asked for", broken)
        return await self._poll()

    def _follow(self, event: Any, kind: str) -> None:
        """Remember the task as soon as it has a name: only then can it be cancelled."""
        task_id: str = event.task.id if kind == "task" else getattr(event, kind).task_id
        if task_id != self._task_id:
            _log.info("the remote agent calls its task %s", task_id)
        self._task_id = task_id

    async def _poll(self) -> StepOutput:
        """Ask for the task until it has ended; what a stream told of it is all there."""
        from a2a.types import GetTaskRequest, TaskState

        if not self._task_id:
            raise StepFailed("the remote agent answered nothing", code="remote_failed")
        while True:
            task = await self._client.get_task(GetTaskRequest(id=self._task_id))
            state = TaskState.Name(task.status.state).removeprefix("TASK_STATE_")
            if state in _ENDED:
                self._ended = state not in ("INPUT_REQUIRED", "AUTH_REQUIRED")
                return _result(task, state)
            await asyncio.sleep(self._poll_seconds)

    async def close(self) -> None:
        """Cancel the task if it still runs, whatever cancels us meanwhile."""
        if not self._task_id or self._ended:
            return
        from a2a.types import CancelTaskRequest

        async def cancel() -> None:
            with contextlib.suppress(Exception):
                async with asyncio.timeout(_CANCEL_SECONDS):
                    await self._client.cancel_task(CancelTaskRequest(id=self._task_id))

        await asyncio.shield(asyncio.ensure_future(cancel()))


def _request(step: Step) -> Any:
    from a2a.types import Message, Part, Role, SendMessageRequest
    from google.protobuf import json_format, struct_pb2

    data = json_format.Parse(input_bytes(step.given), struct_pb2.Value())
    parts = [Part(text=step.prompt), Part(data=data, media_type="application/json")]
    return SendMessageRequest(message=Message(message_id=uuid4().hex, role=Role.ROLE_USER, parts=parts))


def _result(task: Any, state: str) -> StepOutput:
    """The envelope of a task that has ended; one that needs somebody is an escalation in the agent's own words."""
    groups = [*(artifact.parts for artifact in reversed(task.artifacts)), task.status.message.parts]
    words = " ".join(part.text for part in task.status.message.parts if part.text).strip()
    if state in ("INPUT_REQUIRED", "AUTH_REQUIRED"):
        kind = "ambiguity" if state == "INPUT_REQUIRED" else "auth"
        asked = words or "The remote agent needs more than it was given."
        return StepOutput(False, asked[:4000], (), "escalate", (f"blocker_type: {kind}",))
    if state != "COMPLETED":
        raise StepFailed(f"the remote agent's task is {state.lower()}: {words or 'no reason'}", code="remote_failed")
    return _read(groups)


def _read(groups: Iterable[Any]) -> StepOutput:
    """The envelope in the first part that holds one: data, or text."""
    from google.protobuf import json_format

    texts: list[str] = []
    for part in (part for parts in groups for part in parts):
        if part.WhichOneof("content") == "data":
            value = json_format.MessageToDict(part.data)
            if kind_of(value) == "output":
                return read_output(json.dumps(value).encode())
        elif part.text:
            texts.append(part.text)
    return read_output("\n".join(texts).encode())
