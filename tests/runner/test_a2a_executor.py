"""A remote agent, by the official client against the official SDK's own server: stream, poll, cancel."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from redkey.errors import ConfigRefused, RedKeyError, StepFailed
from redkey.runner.envelope import step_input
from redkey.runner.executors.a2a import A2aExecutor
from redkey.runner.executors.a2a_login import Login
from redkey.runner.executors.port import Produced, Step
from redkey.runner.process import Limits
from tests.harness.samples import assignment
from tests.runner.processes import GROWING_SECONDS, PATIENCE_SECONDS

pytest.importorskip("a2a")
pytest.importorskip("sse_starlette")

import uvicorn
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
    Message,
    Part,
    Role,
    Task,
    TaskState,
    TaskStatus,
)
from google.protobuf import json_format, struct_pb2
from starlette.applications import Starlette

ENVELOPE = {"success": True, "summary": "From afar.", "artifacts": [], "recommendation": "proceed"}
Act = Callable[[RequestContext, TaskUpdater], Coroutine[Any, Any, None]]


def data(value: Any) -> Part:
    return Part(data=json_format.ParseDict(value, struct_pb2.Value()))


def words(text: str) -> Message:
    return Message(message_id="m", role=Role.ROLE_AGENT, parts=[Part(text=text)])


class Remote(AgentExecutor):
    """A remote agent whose act a test writes; it remembers what it got and whether it was cancelled."""

    def __init__(self, act: Act) -> None:
        self._act = act
        self.given: list[Any] = []
        self.begun, self.cancelled = asyncio.Event(), asyncio.Event()

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        assert context.message is not None
        self.given.append([json_format.MessageToDict(part) for part in context.message.parts])
        updater = TaskUpdater(event_queue, context.task_id or "", context.context_id or "")
        if context.current_task is None:
            status = TaskStatus(state=TaskState.TASK_STATE_SUBMITTED)
            await event_queue.enqueue_event(Task(id=context.task_id, context_id=context.context_id, status=status))
        await updater.start_work()
        self.begun.set()
        await self._act(context, updater)

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        self.cancelled.set()
        await TaskUpdater(event_queue, context.task_id or "", context.context_id or "").cancel()


@contextlib.asynccontextmanager
async def serving(act: Act, *, streaming: bool = True) -> AsyncIterator[tuple[str, Remote]]:
    """The SDK's own server on a free port."""
    listening = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    card = AgentCard(
        name="Remote",
        description="x",
        version="1",
        supported_interfaces=[AgentInterface(url=f"{url}/rpc", protocol_binding="JSONRPC", protocol_version="1.0")],
        capabilities=AgentCapabilities(streaming=streaming),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[AgentSkill(id="x", name="x", description="x", tags=["x"])],
    )
    remote = Remote(act)
    handler = DefaultRequestHandler(remote, InMemoryTaskStore(), card)
    app = Starlette(routes=[*create_agent_card_routes(card), *create_jsonrpc_routes(handler, "/rpc")])
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off"))
    running = asyncio.create_task(server.serve(sockets=[listening]))
    try:
        yield url, remote
    finally:
        server.should_exit = server.force_exit = True
        await running
        listening.close()


def step(directory: Path, *, say: Any = None, **task: Any) -> Step:
    given = assignment(input={"n": 1}, **task)
    return Step("You are Quinn.", step_input(given, workflow="w"), directory, task=given, say=say)


def run(directory: Path, act: Act, *, streaming: bool = True, **options: Any) -> tuple[Produced, Remote]:
    async def scene() -> tuple[Produced, Remote]:
        async with serving(act, streaming=streaming) as (url, remote):
            return await A2aExecutor(url, poll_seconds=0.05, **options).run(step(directory)), remote

    return asyncio.run(scene())


async def _as_data(context: RequestContext, updater: TaskUpdater) -> None:
    await updater.add_artifact([data(ENVELOPE)], name="output")
    await updater.complete()


async def _as_text(context: RequestContext, updater: TaskUpdater) -> None:
    await updater.add_artifact([Part(text="Here:\n```json\n" + json.dumps(ENVELOPE) + "\n```")])
    await updater.complete()


async def _as_status(context: RequestContext, updater: TaskUpdater) -> None:
    await updater.complete(words(json.dumps(ENVELOPE)))


@pytest.mark.parametrize("streaming", [True, False])
@pytest.mark.parametrize("act", [_as_data, _as_text, _as_status])
def test_the_envelope_comes_back_however_the_agent_tells_it(act: Act, streaming: bool, tmp_path: Path) -> None:
    produced, remote = run(tmp_path, act, streaming=streaming)
    assert produced.output.summary == "From afar."
    text, given = remote.given[0]
    assert text["text"] == "You are Quinn."
    assert given["data"]["context"]["workflow"] == "w"


def test_an_agent_that_needs_something_is_blocked_in_its_own_words(tmp_path: Path) -> None:
    async def act(context: RequestContext, updater: TaskUpdater) -> None:
        await updater.requires_input(words("Which audience?"))

    produced, remote = run(tmp_path, act)
    assert (produced.output.recommendation, produced.output.summary) == ("escalate", "Which audience?")
    assert produced.output.notes == ("blocker_type: ambiguity",)
    # It waits for the answer.
    assert not remote.cancelled.is_set()


def test_the_answer_continues_the_same_remote_task(tmp_path: Path) -> None:
    seen: list[tuple[str | None, str | None, str]] = []

    async def act(context: RequestContext, updater: TaskUpdater) -> None:
        said = context.message.parts[0].text if context.message is not None else ""
        seen.append((context.task_id, context.context_id, said))
        if len(seen) == 1:
            await updater.requires_input(words("Which audience?"))
        else:
            await updater.add_artifact([Part(text=f"For {said}.")], name="draft")
            await updater.complete(words("Written."))

    async def scene() -> tuple[Produced, Produced]:
        async with serving(act) as (url, _):
            executor = A2aExecutor(url, poll_seconds=0.05, kept=tmp_path / "kept")
            asked = await executor.run(step(tmp_path, reference_task_ids=("task_1",)))
            return asked, await executor.run(step(tmp_path, answer="beginners"))

    asked, done = asyncio.run(scene())
    assert asked.output.recommendation == "escalate"
    (first, context, prompt), (second, again, answer) = seen
    assert (first, context) == (second, again)
    assert (prompt, answer) == ("You are Quinn.", "beginners")
    assert (done.output.summary, [one.content for one in done.output.artifacts]) == ("Written.", ["For beginners."])
    assert list((tmp_path / "kept").iterdir()) == []


def test_artifacts_of_any_agent_become_files_and_its_words_progress(tmp_path: Path) -> None:
    said: list[str] = []

    async def say(text: str) -> None:
        said.append(text)

    async def act(context: RequestContext, updater: TaskUpdater) -> None:
        assert context.message is not None
        assert list(context.message.reference_task_ids) == ["task_1"]
        await updater.update_status(TaskState.TASK_STATE_WORKING, words("Half of it is done."))
        await updater.add_artifact([Part(text="# Fine", media_type="text/markdown")], name="report")
        await updater.add_artifact([data({"score": 3})], name="scores")
        await updater.add_artifact([Part(raw=b"\x89PNG", media_type="image/png")], name="../picture")
        await updater.add_artifact([Part(url="https://example.org/big.iso")], name="big")
        await updater.complete(words("All done."))

    async def scene() -> Produced:
        async with serving(act) as (url, _):
            return await A2aExecutor(url).run(step(tmp_path, say=say, reference_task_ids=("task_1",)))

    output = asyncio.run(scene()).output
    assert (output.success, output.summary, output.recommendation) == (True, "All done.", "proceed")
    found = {one.path: one.content for one in output.artifacts}
    assert found.pop("scores.json").split() == ["{", '"score":', "3", "}"]
    assert found == {"report.md": "# Fine", "big.url": "https://example.org/big.iso\n"}
    assert (tmp_path / "picture.png").read_bytes() == b"\x89PNG"
    assert said == ["Half of it is done."]


def test_credentials_go_to_the_agents_own_origin_alone() -> None:
    import httpx

    login = Login.read("https://agent.example/a2a", ["X-Key: s3cret"], None, {})
    auth = login.auth({"x-key": "s3cret"})

    async def sent(url: str) -> dict[str, str]:
        request = httpx.Request("GET", url)
        await anext(auth.async_auth_flow(request))
        return dict(request.headers)

    assert asyncio.run(sent("https://agent.example/rpc"))["x-key"] == "s3cret"
    assert "x-key" not in asyncio.run(sent("https://elsewhere.example/rpc"))
    assert "x-key" not in asyncio.run(sent("http://agent.example/rpc"))
    for wrong in ("no colon", "X-Key: a\r\nb"):
        with pytest.raises(ConfigRefused):
            Login.read("https://agent.example", [wrong], None, {})
    with pytest.raises(ConfigRefused):
        Login.read("https://agent.example", [], "https://agent.example/token", {})


async def _fails(context: RequestContext, updater: TaskUpdater) -> None:
    await updater.failed(words("out of paper"))


async def _rejects(context: RequestContext, updater: TaskUpdater) -> None:
    await updater.reject(words("not my job"))


async def _half_an_envelope(context: RequestContext, updater: TaskUpdater) -> None:
    await updater.add_artifact([data({**ENVELOPE, "recommendation": "perhaps"})])
    await updater.complete()


@pytest.mark.parametrize(
    ("act", "code"),
    [(_fails, "remote_failed"), (_rejects, "remote_rejected"), (_half_an_envelope, "envelope_invalid")],
)
def test_every_wrong_end_has_its_code(act: Act, code: str, tmp_path: Path) -> None:
    with pytest.raises(RedKeyError) as failed:
        run(tmp_path, act)
    assert failed.value.code == code


async def _hangs(context: RequestContext, updater: TaskUpdater) -> None:
    await asyncio.sleep(600)


@pytest.mark.parametrize("streaming", [True, False])
def test_a_lost_lease_cancels_the_remote_task(
    streaming: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "redkey.runner")

    async def scene() -> None:
        async with serving(_hangs, streaming=streaming) as (url, remote):
            running = asyncio.create_task(A2aExecutor(url, poll_seconds=0.05).run(step(tmp_path)))
            await asyncio.wait_for(remote.begun.wait(), PATIENCE_SECONDS)
            async with asyncio.timeout(PATIENCE_SECONDS):
                while "calls its task" not in caplog.text:
                    await asyncio.sleep(0.01)
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
            await asyncio.wait_for(remote.cancelled.wait(), PATIENCE_SECONDS)

    asyncio.run(scene())


def test_time_is_limited_and_the_remote_task_cancelled(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "redkey.runner")

    async def scene() -> None:
        async with serving(_hangs) as (url, remote):
            for seconds in GROWING_SECONDS:
                with pytest.raises(StepFailed) as failed:
                    await A2aExecutor(url, limits=Limits(seconds=seconds)).run(step(tmp_path))
                assert failed.value.code == "timed_out"
                # Only a task whose name has come can be cancelled.
                if "calls its task" in caplog.text:
                    break
            await asyncio.wait_for(remote.cancelled.wait(), PATIENCE_SECONDS)

    asyncio.run(scene())


def test_an_agent_that_is_not_there_cannot_be_started(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
    with pytest.raises(StepFailed) as failed:
        asyncio.run(A2aExecutor(url).run(step(tmp_path)))
    assert failed.value.code == "spawn_failed"
    with pytest.raises(ConfigRefused):
        A2aExecutor("ftp://x")
