"""Call a remote agent over A2A, with the official client (extra `redkey[a2a]`).

The agent gets one message: the prompt as text, the input envelope as data, the context, and references to earlier tasks
that it worked on itself (`a2a_memory`). If the agent streams, its status messages become progress. If it does not, or
the stream breaks, its task is polled. Its results become artifacts (`a2a_results`). A question of the agent blocks the
task, and the answer continues the same remote task. When the lease is lost, the remote task is cancelled.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
from hashlib import sha256
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from redkey.client import Assignment
from redkey.errors import ConfigRefused, RedKeyError, StepFailed
from redkey.runner.envelope import input_bytes
from redkey.runner.executors.a2a_login import Login
from redkey.runner.executors.a2a_memory import Remote, RemoteTasks
from redkey.runner.executors.a2a_results import read_results, words_of
from redkey.runner.executors.port import Produced, Step
from redkey.runner.process import Limits
from redkey.wire.a2a import LEDGER
from redkey.wire.step import StepOutput

_log = logging.getLogger("redkey.runner")
_POLL_SECONDS: Final = 1.0
_OPAQUE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,35}")
_CANCEL_SECONDS: Final = 10.0
_WAITING: Final = frozenset({"INPUT_REQUIRED", "AUTH_REQUIRED"})
_ENDED: Final = frozenset({"COMPLETED", "FAILED", "CANCELED", "REJECTED", *_WAITING})


class A2aExecutor:
    """Calls the remote agent whose card is at a URL."""

    def __init__(
        self,
        url: str,
        *,
        login: Login | None = None,
        kept: Path | None = None,
        limits: Limits | None = None,
        poll_seconds: float = _POLL_SECONDS,
    ) -> None:
        """`kept` is the directory in which ids of remote tasks are stored."""
        try:
            import a2a.client  # noqa: F401
        except ImportError as cause:
            raise ConfigRefused(
                "the client is not installed: pip install 'redkey[a2a]'", code="extra_missing"
            ) from cause
        if not url.startswith(("http://", "https://")):
            raise ConfigRefused("an A2A agent is named by its http or https URL")
        self._url, self._limits, self._poll_seconds = url, limits or Limits(), poll_seconds
        self._login, self._known = login or Login(url, {}), RemoteTasks(url, kept)

    async def run(self, step: Step) -> Produced:
        """Call the agent. A2A has no field for costs, so the call counts as free; a reached cap still stops it."""
        async with step.meter.permit():
            return await self._run(step)

    async def _run(self, step: Step) -> Produced:
        import httpx
        from a2a.client import ClientConfig, create_client

        call = None
        async with httpx.AsyncClient(timeout=httpx.Timeout(30.0, read=None)) as http:
            try:
                async with asyncio.timeout(self._limits.seconds):
                    await self._login.headers(http)
                    http.auth = self._login.auth(http)
                    # An agent that does not stream returns its task at once, so that the task can be cancelled.
                    client = await create_client(self._url, ClientConfig(httpx_client=http, polling=True))
                    call = _Call(client, self._poll_seconds, step, self._known)
                    return Produced(await self._answered(call, step))
            except TimeoutError as cause:
                text = f"the remote agent was stopped after {self._limits.seconds:g} seconds"
                raise StepFailed(text, code="timed_out") from cause
            except RedKeyError:
                raise
            except Exception as cause:
                # The client raises its own errors and those of HTTP and JSON; each becomes one line.
                code = "remote_failed" if call is not None else "spawn_failed"
                text = " ".join(str(cause).split())[:300] or type(cause).__name__
                raise StepFailed(f"the remote agent cannot be reached: {text}", code=code) from cause
            finally:
                if call is not None:
                    await call.close()

    async def _answered(self, call: _Call, step: Step) -> StepOutput:
        """Return the output of the remote task; remember the task if it asks a question."""
        from a2a.utils.errors import A2AError

        task = step.task
        remote = self._known.get(task.task_id) if task is not None and task.answer else None
        if remote is not None and remote.waits:
            try:
                return self._ended(call, step, await call.run(remote))
            except A2AError as lost:
                _log.warning("the remote task %s cannot be continued (%s); another one begins", remote.task_id, lost)
                call.forget()
        return self._ended(call, step, await call.run(None))

    def _ended(self, call: _Call, step: Step, output: StepOutput) -> StepOutput:
        if step.task is not None:
            self._known.keep(step.task.task_id, call.task_id, call.context_id, waits=call.waits)
        return output


class _Call:
    """One message to the agent, and the remote task that it started."""

    def __init__(self, client: Any, poll_seconds: float, step: Step, known: RemoteTasks) -> None:
        self._client, self._poll_seconds, self._step, self._known = client, poll_seconds, step, known
        self.task_id = self.context_id = ""
        self._ended = False
        # True while the remote task waits for an answer: it has not ended and must not be cancelled.
        self.waits = False
        self._told = ""

    def forget(self) -> None:
        """Forget the remote task, which no longer exists."""
        self.task_id = self.context_id = ""

    async def run(self, remote: Remote | None) -> StepOutput:
        from a2a.client import A2AClientError

        try:
            async for event in self._client.send_message(_request(self._step, remote, self._known)):
                kind = event.WhichOneof("payload")
                if kind == "message":
                    return read_results([], words_of(event.message.parts), event.message.parts, self._step.directory)
                await self._follow(event, kind)
        except A2AClientError as broken:
            if not self.task_id:
                raise
            _log.warning("the stream of the remote agent broke (%s); its task is polled", broken)
        return await self._poll()

    async def _follow(self, event: Any, kind: str) -> None:
        """Store the task's id as soon as it is known, so it can be cancelled; report status messages as progress."""
        task_id: str = event.task.id if kind == "task" else getattr(event, kind).task_id
        if task_id != self.task_id:
            _log.info("the remote agent calls its task %s", task_id)
        self.task_id = task_id
        self.context_id = getattr(event, kind).context_id or self.context_id
        if kind == "status_update":
            await self._tell(event.status_update.status)

    async def _tell(self, status: Any) -> None:
        """Report a status message as progress; a failure to report does not stop the work."""
        from a2a.types import TaskState

        words = words_of(status.message.parts)
        if status.state != TaskState.TASK_STATE_WORKING or not words or words == self._told:
            return
        self._told = words
        _log.info("the remote agent says: %s", words[:200])
        if self._step.say is not None:
            with contextlib.suppress(RedKeyError):
                await self._step.say(words[:1000])

    async def _poll(self) -> StepOutput:
        """Poll the task until it ends; it has everything that the stream sent."""
        from a2a.types import GetTaskRequest, TaskState

        if not self.task_id:
            raise StepFailed("the remote agent answered nothing", code="remote_failed")
        while True:
            task = await self._client.get_task(GetTaskRequest(id=self.task_id))
            state = TaskState.Name(task.status.state).removeprefix("TASK_STATE_")
            self.context_id = task.context_id or self.context_id
            if state in _ENDED:
                self.waits = state in _WAITING
                self._ended = True
                return _result(task, state, self._step.directory)
            await self._tell(task.status)
            await asyncio.sleep(self._poll_seconds)

    async def close(self) -> None:
        """Cancel the remote task if it still runs, even while this call is cancelled."""
        if not self.task_id or self._ended:
            return
        from a2a.types import CancelTaskRequest

        async def cancel() -> None:
            with contextlib.suppress(Exception):
                async with asyncio.timeout(_CANCEL_SECONDS):
                    await self._client.cancel_task(CancelTaskRequest(id=self.task_id))

        await asyncio.shield(asyncio.ensure_future(cancel()))


def _request(step: Step, remote: Remote | None, known: RemoteTasks) -> Any:
    """Build the message: the whole step, or the answer for a waiting remote task."""
    from a2a.types import Message, Part, Role, SendMessageRequest
    from google.protobuf import json_format, struct_pb2

    task = step.task
    message = Message(message_id=uuid4().hex, role=Role.ROLE_USER)
    if remote is not None:
        message.task_id, message.context_id = remote.task_id, remote.context_id
        message.parts.append(Part(text=task.answer if task is not None else ""))
        return SendMessageRequest(message=message)
    data = json_format.Parse(input_bytes(step.given), struct_pb2.Value())
    message.parts.extend([Part(text=step.prompt), Part(data=data, media_type="application/json")])
    if task is not None:
        message.context_id = _context(task.task_id, task.context_id)
        message.reference_task_ids.extend(known.named(task.reference_task_ids))
        if lineage := _lineage(task, known):
            message.extensions.append(LEDGER)
            message.metadata.update({LEDGER: lineage})
    return SendMessageRequest(message=message)


def _lineage(task: Assignment, known: RemoteTasks) -> dict[str, str]:
    """What messages have no field for: the parent, where the agent knows it, and what the task is grouped by."""
    lineage: dict[str, str] = {}
    if task.parent_task_id and (parent := known.named((task.parent_task_id,))):
        lineage["parentTaskId"] = parent[0]
    if task.correlation_id:
        lineage["correlationId"] = _context(task.task_id, task.correlation_id)
    return lineage


def _context(task_id: str, context_id: str) -> str:
    """Return an opaque context id for the remote agent; RedKey's own context ids may not be valid there."""
    kind, _, name = context_id.partition(":")
    # Tasks that share only a queue are unrelated, so each gets its own context.
    if kind == "queue" or not name:
        return task_id
    return name if _OPAQUE.fullmatch(name) else sha256(context_id.encode()).hexdigest()[:32]


def _result(task: Any, state: str, directory: Path) -> StepOutput:
    """Return the output of a task that has ended; a task that needs input becomes an escalation."""
    words = words_of(task.status.message.parts)
    if state in _WAITING:
        kind = "ambiguity" if state == "INPUT_REQUIRED" else "auth"
        asked = words or "The remote agent needs more than it was given."
        return StepOutput(False, asked[:4000], (), "escalate", (f"blocker_type: {kind}",))
    if state == "REJECTED":
        raise StepFailed(f"the remote agent rejected the task: {words or 'no reason'}", code="remote_rejected")
    if state != "COMPLETED":
        raise StepFailed(f"the remote agent's task is {state.lower()}: {words or 'no reason'}", code="remote_failed")
    return read_results(task.artifacts, words, task.status.message.parts, directory)
