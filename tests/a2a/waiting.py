"""What A2A 1.0 requires of calls that wait and of streams; rows of the table in `requirements`."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import uuid4

from a2a.types import CancelTaskRequest, Part, SubscribeToTaskRequest, Task
from a2a.utils import errors

from tests.a2a.scene import Scene, first_of, listed, refused
from tests.a2a.talk import asked, state


async def _sending(scene: Scene) -> tuple[asyncio.Future[Task], str]:
    """A send that waits, and the id of the task that it began."""
    context = str(uuid4())
    sending = asyncio.ensure_future(scene.talk.send(immediately=False, message={"context_id": context}))
    async with asyncio.timeout(60):
        while not (found := (await listed(scene.streaming, context_id=context)).tasks):
            assert not sending.done(), "it did not wait"
            await asyncio.sleep(0.02)
    return sending, found[0].id


async def a_terminal_task_cannot_be_followed(scene: Scene) -> None:
    task = await scene.completed()
    talk = scene.streaming
    subscribed = talk.client.subscribe(SubscribeToTaskRequest(id=task.id), context=talk.context())
    await refused(errors.UnsupportedOperationError, first_of(subscribed))


async def a_send_waits_until_the_task_needs_its_client(scene: Scene) -> None:
    worker = await scene.worker()
    sending, task_id = await _sending(scene)
    await asyncio.to_thread(worker.take, task_id)
    await asyncio.to_thread(worker.block)
    assert state(await asyncio.wait_for(sending, 60)) == "INPUT_REQUIRED"


async def a_send_waits_for_every_kind_of_end(scene: Scene) -> None:
    for end in ("FAILED", "REJECTED", "CANCELED", "AUTH_REQUIRED"):
        worker = await scene.worker()
        sending, task_id = await _sending(scene)
        await asyncio.to_thread(worker.take, task_id)
        assert not sending.done(), "it did not wait"
        if end == "CANCELED":
            wanted = CancelTaskRequest(id=task_id)
            await scene.streaming.client.cancel_task(wanted, context=scene.streaming.context())
        elif end == "AUTH_REQUIRED":
            await asyncio.to_thread(worker.block, "Whose key?", "auth")
        else:
            await asyncio.to_thread(worker.fail, "No.", "rejected" if end == "REJECTED" else "error")
        done = await asyncio.wait_for(sending, 60)
        assert (state(done), done.id) == (end, task_id)


async def a_streamed_message_is_refused_as_a_sent_one(scene: Scene) -> None:
    ended, talk = await scene.completed(), scene.streaming
    before = await scene.head()

    def streamed(**message: str) -> Any:
        return first_of(talk.client.send_message(asked(message=message), context=talk.context()))

    await refused(errors.UnsupportedOperationError, streamed(task_id=ended.id))
    await refused(errors.TaskNotFoundError, streamed(task_id="task_01KQVJDB00H6WRB0S2CTBXP2YD"))
    await refused(errors.InvalidParamsError, streamed(context_id="a b"))
    part = asked(parts=[Part(url="file:///etc/passwd")])
    await refused(errors.ContentTypeNotSupportedError, first_of(talk.client.send_message(part, context=talk.context())))
    assert await scene.head() == before


async def return_immediately_does_not_wait(scene: Scene) -> None:
    # The task is cancelled as soon as it is listed. A send that waits comes back with the cancelled task.
    context = str(uuid4())
    sending = asyncio.ensure_future(scene.talk.send(message={"context_id": context}))
    async with asyncio.timeout(60):
        while not (found := (await listed(scene.streaming, context_id=context)).tasks):
            await asyncio.sleep(0.02)
    wanted = CancelTaskRequest(id=found[0].id)
    await scene.streaming.client.cancel_task(wanted, context=scene.streaming.context())
    assert state(await asyncio.wait_for(sending, 60)) == "SUBMITTED"


async def a_stream_begins_with_its_task_and_tells_everything_once(scene: Scene) -> None:
    worker = await scene.worker()
    stream = aiter(scene.streaming.client.send_message(asked(), context=scene.streaming.context()))
    first = await anext(stream)
    assert first.WhichOneof("payload") == "task"
    await asyncio.to_thread(worker.take, first.task.id)
    await asyncio.to_thread(worker.artifact, name="report", content="x")
    await asyncio.to_thread(worker.complete, output={"all": 1}, summary="Done.")
    rest = [one async for one in stream]
    kinds = [one.WhichOneof("payload") for one in rest]
    assert kinds == ["status_update", "artifact_update", "artifact_update", "status_update"]
    done = await scene.talk.get(first.task.id)
    assert rest[-1].status_update.status == done.status
    assert [one.artifact_update.artifact for one in rest[1:3]] == list(done.artifacts)


async def a_stream_of_a_message_ends_when_its_client_is_needed(scene: Scene) -> None:
    worker = await scene.worker()
    stream = aiter(scene.streaming.client.send_message(asked(), context=scene.streaming.context()))
    first = await anext(stream)
    await asyncio.to_thread(worker.take, first.task.id)
    await asyncio.to_thread(worker.block, "Whose key?", "auth")
    rest = [one async for one in stream]
    assert state(rest[-1].status_update) == "AUTH_REQUIRED"
    assert rest[-1].status_update.status.message.parts[0].text == "Whose key?"


async def every_stream_of_a_task_is_the_same(scene: Scene) -> None:
    """One that is closed leaves the others as they are; each ends with the task."""
    task, talk, worker = await scene.talk.send(), scene.streaming, await scene.worker()
    request = SubscribeToTaskRequest(id=task.id)
    streams = [aiter(talk.client.subscribe(request, context=talk.context())) for _ in range(3)]
    firsts = [await anext(stream) for stream in streams]
    assert [first.task for first in firsts] == [task] * 3
    await asyncio.to_thread(worker.take, task.id)
    assert [state((await anext(stream)).status_update) for stream in streams] == ["WORKING"] * 3
    await streams.pop().aclose()
    await asyncio.to_thread(worker.artifact, name="report", content="x")
    await talk.client.cancel_task(CancelTaskRequest(id=task.id), context=talk.context())
    one, other = [[event async for event in stream] for stream in streams]
    assert one == other
    assert [event.WhichOneof("payload") for event in one] == ["artifact_update", "status_update"]
    assert state(one[-1].status_update) == "CANCELED"


async def a_question_does_not_end_a_subscription(scene: Scene) -> None:
    task, talk, worker = await scene.talk.send(), scene.streaming, await scene.worker()
    stream = aiter(talk.client.subscribe(SubscribeToTaskRequest(id=task.id), context=talk.context()))
    await anext(stream)
    await asyncio.to_thread(worker.take, task.id)
    await asyncio.to_thread(worker.block)
    await anext(stream)
    assert state((await anext(stream)).status_update) == "INPUT_REQUIRED"
    await scene.talk.send("main", message={"task_id": task.id})
    await asyncio.to_thread(worker.take, task.id)
    await asyncio.to_thread(worker.complete, summary="Done.")
    rest = [state(event.status_update) async for event in stream]
    assert (rest[0], rest[-1]) == ("WORKING", "COMPLETED")


async def a_send_that_waits_answers_with_everything(scene: Scene) -> None:
    worker = await scene.worker()
    sending, task_id = await _sending(scene)
    await asyncio.to_thread(worker.take, task_id)
    await asyncio.to_thread(worker.artifact, name="report", content="x")
    await asyncio.to_thread(worker.complete, output={"all": 1}, summary="Done.")
    done = await asyncio.wait_for(sending, 60)
    assert done == await scene.talk.get(task_id)
    assert (state(done), [one.name for one in done.artifacts]) == ("COMPLETED", ["report", "output"])
