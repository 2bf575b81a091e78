"""A remote agent for tests: the official SDK's own server, with an act that a test writes."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from base64 import b64encode
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from redkey.runner.envelope import step_input
from redkey.runner.executors.port import Step
from tests.harness.samples import assignment
from tests.runner.processes import PATIENCE_SECONDS

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
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

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


class Gate:
    """A token endpoint, and the gate of an agent: a token lasts for one request."""

    def __init__(self, answer: dict[str, Any] | None = None) -> None:
        self._answer, self._good = answer, set[str]()
        self.passed = 0

    async def token(self, request: Request) -> Response:
        if request.headers.get("authorization") != "Basic " + b64encode(b"quinn:s3cret").decode():
            return JSONResponse({"error": "invalid_client"}, 401)
        assert await request.body() == b"grant_type=client_credentials"
        token = uuid4().hex
        self._good.add(f"Bearer {token}")
        return JSONResponse(self._answer or {"access_token": token, "token_type": "Bearer", "expires_in": 0})

    def guard(self, app: Any) -> Any:
        """The application, for those with a token."""

        async def guarded(scope: Any, receive: Any, send: Any) -> None:
            request = Request(scope, receive)
            if request.url.path == "/token":
                await (await self.token(request))(scope, receive, send)
                return
            try:
                self._good.remove(request.headers.get("authorization", ""))
            except KeyError:
                await Response("no token", 401)(scope, receive, send)
                return
            self.passed += 1
            await app(scope, receive, send)

        return guarded


@contextlib.asynccontextmanager
async def serving(act: Act, *, streaming: bool = True, gate: Gate | None = None) -> AsyncIterator[tuple[str, Remote]]:
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
    server = uvicorn.Server(uvicorn.Config(gate.guard(app) if gate else app, log_level="error", lifespan="off"))
    running = asyncio.create_task(server.serve(sockets=[listening]))
    try:
        yield url, remote
    finally:
        server.should_exit = server.force_exit = True
        await running
        listening.close()


@contextlib.contextmanager
def beside(act: Act, gate: Gate) -> Iterator[str]:
    """The same server in a thread of its own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    server = serving(act, gate=gate)
    try:
        url, _ = asyncio.run_coroutine_threadsafe(server.__aenter__(), loop).result(PATIENCE_SECONDS)
        try:
            yield url
        finally:
            left = server.__aexit__(None, None, None)
            asyncio.run_coroutine_threadsafe(left, loop).result(PATIENCE_SECONDS)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(PATIENCE_SECONDS)
        loop.close()


def step(directory: Path, *, say: Any = None, **task: Any) -> Step:
    given = assignment(input={"n": 1}, **task)
    return Step("You are Quinn.", step_input(given, workflow="w"), directory, task=given, say=say)


async def as_data(context: RequestContext, updater: TaskUpdater) -> None:
    await updater.add_artifact([data(ENVELOPE)], name="output")
    await updater.complete()
