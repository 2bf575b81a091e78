"""Streams that resume after an event id, by the ledger's extension; rows of the table in `requirements`."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import uuid4

from a2a.types import StreamResponse, SubscribeToTaskRequest
from a2a.utils import errors

from tests.a2a.scene import Scene, first_of, refused
from tests.a2a.talk import asked

LEDGER = "urn:redkey:a2a:ledger:1"


def _position(event: StreamResponse) -> str:
    """The id of an event: what the extension says is the id of its server-sent event too."""
    found = getattr(event, str(event.WhichOneof("payload")))
    return str(found.metadata[LEDGER]["position"])


async def _all(stream: Any) -> list[StreamResponse]:
    try:
        async with asyncio.timeout(60):
            return [event async for event in stream]
    except errors.A2AError as error:
        raise AssertionError("the stream was refused") from error


async def a_subscription_resumes_after_each_of_its_events(scene: Scene) -> None:
    """Also between two objects that came from one record of the ledger."""
    talk, worker = scene.streaming, await scene.worker()
    task = await scene.talk.send()
    request = SubscribeToTaskRequest(id=task.id)

    def follow(**more: str) -> Any:
        return talk.client.subscribe(request, context=talk.context(a2a_extensions=LEDGER, **more))

    following = aiter(follow())
    whole = [await anext(following)]
    await asyncio.to_thread(worker.take, task.id)
    await asyncio.to_thread(worker.artifact, name="report", content="x")
    await asyncio.to_thread(worker.complete, output={"all": 1}, summary="Done.")
    whole += await _all(following)
    positions = [_position(event) for event in whole]
    assert len(set(positions)) == len(whole) == 5
    assert [position for position in positions if "." in position], positions
    for index, position in enumerate(positions[:-1]):
        first, *rest = await _all(follow(last_event_id=position))
        assert first.WhichOneof("payload") == "task"
        assert rest == whole[index + 1 :], position
    await refused(errors.UnsupportedOperationError, first_of(follow(last_event_id=positions[-1])))


async def a_streamed_message_resumes_after_each_of_its_events(scene: Scene) -> None:
    """The same message under the same key is not sent twice, and its stream ends where it ended."""
    talk = scene.streaming
    for end in ("complete", "block"):
        worker, request, named = await scene.worker(), asked(), {"idempotency_key": uuid4().hex}
        named["a2a_extensions"] = LEDGER
        sending = aiter(talk.client.send_message(request, context=talk.context(**named)))
        whole = [await anext(sending)]
        await asyncio.to_thread(worker.take, whole[0].task.id)
        if end == "complete":
            await asyncio.to_thread(worker.complete, output={"all": 1}, summary="Done.")
        else:
            await asyncio.to_thread(worker.block)
        whole += await _all(sending)
        head = await scene.head()
        for index, event in enumerate(whole):
            context = talk.context(last_event_id=_position(event), **named)
            first, *rest = await _all(talk.client.send_message(request, context=context))
            assert first.task.id == whole[0].task.id
            assert rest == whole[index + 1 :], _position(event)
        assert await scene.head() == head


async def an_event_id_that_no_stream_gave_is_refused(scene: Scene) -> None:
    talk, worker, task = scene.streaming, await scene.worker(), await scene.talk.send()
    await asyncio.to_thread(worker.take, task.id)
    head = await scene.head()
    unknown = ("x", "1.x", "-1", "0", f"{head + 1}", "99999999", "9" * 70)
    # Before the task, and of objects that no record of this task has.
    of_no_record = ("1", "1.1", f"{head}.1", f"{head}.7")
    for position in (*unknown, *of_no_record):
        context = talk.context(last_event_id=position)
        following = talk.client.subscribe(SubscribeToTaskRequest(id=task.id), context=context)
        await refused(errors.InvalidParamsError, first_of(following))
    for position in unknown:
        context = talk.context(last_event_id=position, idempotency_key=uuid4().hex)
        await refused(errors.InvalidParamsError, first_of(talk.client.send_message(asked(), context=context)))
    # Without a key the message would be a second one.
    context = talk.context(last_event_id=str(head))
    await refused(errors.InvalidParamsError, first_of(talk.client.send_message(asked(), context=context)))
    assert await scene.head() == head
