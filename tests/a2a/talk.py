"""Talking to RedKey as an A2A client: the official client on each transport, and a worker at the other end."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

import grpc.aio
import httpx
from a2a.client import A2ACardResolver, ClientConfig, create_client
from a2a.client.client import Client, ClientCallContext
from a2a.types import (
    GetTaskRequest,
    Message,
    Part,
    Role,
    SendMessageConfiguration,
    SendMessageRequest,
    StreamResponse,
    Task,
    TaskState,
)
from google.protobuf.json_format import MessageToDict

from tests.harness import acts
from tests.harness.client import Client as RedKey
from tests.harness.server import Server

TRANSPORTS = ("JSONRPC", "HTTP+JSON", "GRPC")
GRPC = "[a2a]\ngrpc_port = 0\n"
SECONDS = 60.0


class Talk:
    """The official client on one transport, with a key."""

    def __init__(self, client: Client, key: str) -> None:
        self.client, self.key = client, key

    def context(self, **parameters: str) -> ClientCallContext:
        """What goes with a call: its key, and further headers or metadata."""
        named = {name.replace("_", "-"): value for name, value in parameters.items()}
        key = {"authorization": f"Bearer {self.key}"} if self.key else {}
        return ClientCallContext(service_parameters={**key, **named}, timeout=SECONDS)

    async def send(self, text: str = "Review it", *, immediately: bool = True, **more: Any) -> Task:
        """The task that a message brought about."""
        parameters = more.pop("parameters", {})
        request = asked(text, immediately=immediately, **more)
        found = [one async for one in self.client.send_message(request, context=self.context(**parameters))]
        return self._task(found)

    def _task(self, found: list[StreamResponse]) -> Task:
        assert found[0].WhichOneof("payload") == "task"
        return found[0].task

    async def get(self, task_id: str, **more: Any) -> Task:
        context = self.context(**more.pop("parameters", {}))
        return await self.client.get_task(GetTaskRequest(id=task_id, **more), context=context)


def asked(text: str = "Review it", *, immediately: bool = True, **more: Any) -> SendMessageRequest:
    """A request with one text, or with the parts in `parts`; `configuration` and `message` are further fields."""
    configuration = SendMessageConfiguration(return_immediately=immediately, **more.pop("configuration", {}))
    parts = more.pop("parts", None) or [Part(text=text)]
    message = Message(message_id=uuid4().hex, role=Role.ROLE_USER, parts=parts)
    message.MergeFrom(Message(**more.pop("message", {})))
    return SendMessageRequest(message=message, configuration=configuration, **more)


@asynccontextmanager
async def talking(
    server: Server, transport: str, key: str = "", *, streaming: bool = False, version: str = "1.0"
) -> AsyncIterator[Talk]:
    """The official client, made from the server's own card; of one version of the protocol."""
    async with httpx.AsyncClient(timeout=SECONDS, trust_env=False) as http:
        config = ClientConfig(
            httpx_client=http,
            grpc_channel_factory=grpc.aio.insecure_channel,
            supported_protocol_bindings=[transport],
            use_client_preference=True,
            streaming=streaming,
            polling=False,
        )
        card = await A2ACardResolver(http, server.url).get_agent_card()
        kept = [one for one in card.supported_interfaces if one.protocol_version == version]
        del card.supported_interfaces[:]
        card.supported_interfaces.extend(kept)
        client = await create_client(card, config)
        try:
            yield Talk(client, key or server.key)
        finally:
            await client.close()


def state(task: Any) -> str:
    """The state of a task, a status or an update, without its prefix."""
    status = getattr(task, "status", task)
    return TaskState.Name(status.state).removeprefix("TASK_STATE_")


def as_json(found: Any) -> dict[str, Any]:
    made: dict[str, Any] = MessageToDict(found)
    return made


class Worker:
    """A worker that does what a test tells it to, by the HTTP API."""

    def __init__(self, client: RedKey, name: str = "") -> None:
        self.client = client
        self.agent_id = str(acts.register(self.client, name or f"Reviewer {uuid4().hex[:8]}")["agentId"])
        self.claim_id = ""

    def take(self, task_id: str) -> dict[str, Any]:
        """Claim a task and start; the assignment."""
        claimed = acts.claim(self.client, task_id, self.agent_id)
        assert claimed["status"] == "claimed", claimed
        self.claim_id = claimed["claimId"]
        self._post("start")
        return claimed

    def block(self, reason: str = "Which branch?", kind: str = "ambiguity", **more: Any) -> None:
        self._post("block", {"reason": reason, "blockerType": kind, **more})

    def artifact(self, **body: Any) -> None:
        self._post("artifacts", body)

    def complete(self, **body: Any) -> None:
        self._post("complete", body)

    def fail(self, reason: str = "The tests fail", kind: str = "error") -> None:
        self._post("fail", {"reason": reason, "kind": kind})

    def _post(self, act: str, body: dict[str, Any] | None = None) -> None:
        reply = self.client.post(f"/claims/{self.claim_id}/{act}", body or {})
        assert reply.status in (200, 201), reply.text
