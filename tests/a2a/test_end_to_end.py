"""The official client drives RedKey on every transport, with a worker at the other end."""

from __future__ import annotations

import asyncio
import json

import pytest
from a2a.types import CancelTaskRequest, ListTasksRequest, Part, SubscribeToTaskRequest
from google.protobuf import json_format, struct_pb2

from redkey.wire.schema import compile_schema
from tests.a2a.talk import TRANSPORTS, Worker, as_json, asked, state, talking
from tests.harness.client import Client
from tests.harness.server import Server

everywhere = pytest.mark.parametrize("transport", TRANSPORTS)


@everywhere
def test_a_task_is_created_worked_on_and_completed(
    server: Server, owner: Client, worker: Worker, transport: str
) -> None:
    async def run() -> None:
        async with talking(server, transport) as talk:
            data = json_format.ParseDict({"branch": "main", "depth": 3}, struct_pb2.Value())
            parts = [
                Part(text="Review the migration\nAll of it"),
                Part(data=data),
                Part(raw=b"\x00\x01", filename="a.bin"),
            ]
            task = await talk.send(parts=parts)
            assert state(task) == "SUBMITTED"
            worker.take(task.id)
            given = owner.get(f"/tasks/{task.id}").json
            assert (given["title"], given["description"]) == ("Review the migration", "Review the migration\nAll of it")
            assert given["input"]["parts"][0]["data"] == {"branch": "main", "depth": 3}
            file = given["input"]["parts"][1]
            assert owner.get(file["uri"]).content == b"\x00\x01"
            assert state(await talk.get(task.id)) == "WORKING"
            worker.artifact(name="report", content="# Fine", mediaType="text/markdown")
            worker.complete(output={"verdict": "good"}, summary="Reviewed.")
            done = await talk.get(task.id)
        assert state(done) == "COMPLETED"
        assert done.status.message.parts[0].text == "Reviewed."
        found = {one.name: as_json(one)["parts"][0] for one in done.artifacts}
        assert found["report"] == {"text": "# Fine", "mediaType": "text/markdown", "filename": "report"}
        assert found["output"] == {"data": {"verdict": "good"}, "mediaType": "application/json"}
        (asked_for,) = done.history
        assert [part.WhichOneof("content") for part in asked_for.parts] == ["text", "data", "raw"]

    asyncio.run(run())


@everywhere
def test_a_file_of_a_message_is_kept_as_the_schema_spells_it(
    server: Server, owner: Client, worker: Worker, transport: str
) -> None:
    async def run() -> None:
        async with talking(server, transport) as talk:
            task = await talk.send("Merge it")
            worker.take(task.id)
            files = [
                Part(url="https://example.com/a.pdf", media_type="application/pdf", filename="a.pdf"),
                Part(raw=b"\x00\x01", media_type="text/x-diff; charset=utf-8"),
            ]
            said = await talk.send(parts=[Part(text="See these"), *files], message={"task_id": task.id})
        # The client sees what it sent, in its own spelling.
        assert [part.media_type for part in said.history[-1].parts] == ["", *(one.media_type for one in files)]
        (kept,) = owner.get(f"/tasks/{task.id}/messages").json["items"]
        document = {"message_id": kept["messageId"], "role": kept["role"], "parts": kept["parts"]}
        assert compile_schema("schemas/agent-wire/v1.1/message.schema.json").findings(document) == []
        assert [part.get("media_type") for part in kept["parts"]] == [None, *(one.media_type for one in files)]
        event = owner.get(f"/receipts/{kept['eventId']}").json
        ref = json.loads(event["offline"]["wire"])["payload"]["parts_ref"]["sha256"]
        stored = owner.get(f"/content/{ref}").json
        assert stored.keys() == {"message_id", "role", "parts", "a2a", "nonce"}
        assert stored["parts"] == kept["parts"]

    asyncio.run(run())


@everywhere
def test_a_question_is_answered_and_the_history_stays_in_order(
    server: Server, owner: Client, worker: Worker, transport: str
) -> None:
    async def run() -> None:
        async with talking(server, transport) as talk:
            task = await talk.send("Merge it")
            worker.take(task.id)
            worker.block("Which branch?")
            asking = await talk.get(task.id)
            assert state(asking) == "INPUT_REQUIRED"
            assert asking.status.message.parts[0].text == "Which branch?"
            answered = await talk.send("main", message={"task_id": task.id, "context_id": task.context_id})
            assert (answered.id, state(answered)) == (task.id, "WORKING")
            worker.take(task.id)
            assert owner.get(f"/tasks/{task.id}").json["answer"] == "main"
            await talk.send("And tag it", message={"task_id": task.id})
            said = owner.get(f"/tasks/{task.id}/messages").json["items"]
            assert [one["parts"][0]["text"] for one in said] == ["And tag it"]
            worker.complete(summary="Merged.")
            done = await talk.get(task.id)
            short = await talk.get(task.id, history_length=1)
        assert [one.parts[0].text for one in done.history] == ["Merge it", "Which branch?", "main", "And tag it"]
        assert [one.parts[0].text for one in short.history] == ["And tag it"]

    asyncio.run(run())


@everywhere
def test_a_blocking_send_waits_for_the_worker(server: Server, owner: Client, worker: Worker, transport: str) -> None:
    async def run() -> None:
        async with talking(server, transport) as talk, talking(server, "JSONRPC") as other:
            context = f"wait-{transport.lower().replace('+', '-')}"
            sending = asyncio.create_task(talk.send(immediately=False, message={"context_id": context}))
            async with asyncio.timeout(60):
                while not (found := await _listed(other, context)):
                    assert not sending.done(), "it did not wait"
                    await asyncio.sleep(0.02)
            await asyncio.to_thread(worker.take, found[0])
            assert not sending.done()
            await asyncio.to_thread(worker.complete, summary="Done.")
            done = await asyncio.wait_for(sending, 60)
        assert (done.id, state(done)) == (found[0], "COMPLETED")

    async def _listed(talk: object, context: str) -> list[str]:
        request = ListTasksRequest(context_id=context)
        listed = await talk.client.list_tasks(request, context=talk.context())  # type: ignore[attr-defined]
        return [task.id for task in listed.tasks]

    asyncio.run(run())


@everywhere
def test_a_stream_has_the_task_first_and_every_update_once(
    server: Server, owner: Client, worker: Worker, transport: str
) -> None:
    async def run() -> None:
        async with talking(server, transport, streaming=True) as talk:
            stream = aiter(talk.client.send_message(asked("Stream it"), context=talk.context()))
            first = await anext(stream)
            task_id = first.task.id
            subscribed = aiter(talk.client.subscribe(SubscribeToTaskRequest(id=task_id), context=talk.context()))
            snapshot = await anext(subscribed)
            assert snapshot.task == first.task
            await asyncio.to_thread(worker.take, task_id)
            await asyncio.to_thread(worker.artifact, name="report", content="x")
            await asyncio.to_thread(worker.complete, output="all", summary="Done.")
            rest = [one async for one in stream]
            assert rest == [one async for one in subscribed]
        kinds = [one.WhichOneof("payload") for one in rest]
        assert kinds == ["status_update", "artifact_update", "artifact_update", "status_update"]
        assert [state(one.status_update) for one in (rest[0], rest[-1])] == ["WORKING", "COMPLETED"]

    asyncio.run(run())


@everywhere
def test_cancelling_really_cancels(server: Server, owner: Client, worker: Worker, transport: str) -> None:
    async def run() -> None:
        async with talking(server, transport) as talk:
            task = await talk.send()
            worker.take(task.id)
            cancelled = await talk.client.cancel_task(CancelTaskRequest(id=task.id), context=talk.context())
            assert state(cancelled) == "CANCELED"
        assert owner.get(f"/tasks/{task.id}").json["state"] == "cancelled"
        beat = owner.post(f"/claims/{worker.claim_id}/heartbeat", {})
        assert beat.json["state"] == "cancelled"

    asyncio.run(run())
