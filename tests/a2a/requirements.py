"""What A2A 1.0.1 requires of a server, one function for each requirement, by the official client on any transport.

Each is named after what must hold and raises AssertionError when it does not; `REQUIREMENTS` is the table, by the
sections of the specification (docs/decisions/0143-the-requirements-of-a2a-are-a-table-by-section.md).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import Any
from uuid import uuid4

from a2a.types import (
    CancelTaskRequest,
    DeleteTaskPushNotificationConfigRequest,
    GetExtendedAgentCardRequest,
    GetTaskPushNotificationConfigRequest,
    GetTaskRequest,
    ListTaskPushNotificationConfigsRequest,
    Message,
    Part,
    SubscribeToTaskRequest,
    TaskPushNotificationConfig,
    TaskState,
)
from a2a.utils import errors
from google.protobuf.json_format import MessageToDict
from google.protobuf.timestamp_pb2 import Timestamp

from tests.a2a import permitted, pushing, resuming, waiting
from tests.a2a.scene import Scene, first_of, listed, refused
from tests.a2a.talk import Talk, asked, state

LEDGER = "urn:redkey:a2a:ledger:1"
NOWHERE = "task_01KQVJDB00H6WRB0S2CTBXP2YD"


async def _everything_about(scene: Scene, talk: Talk, task_id: str) -> None:
    """Every operation that names a task answers TaskNotFound, and nothing is recorded."""
    before, client, context = await scene.head(), talk.client, talk.context()
    config = TaskPushNotificationConfig(task_id=task_id, url="https://example.com/x")
    await refused(errors.TaskNotFoundError, client.get_task(GetTaskRequest(id=task_id), context=context))
    await refused(errors.TaskNotFoundError, client.cancel_task(CancelTaskRequest(id=task_id), context=context))
    subscribed = client.subscribe(SubscribeToTaskRequest(id=task_id), context=context)
    await refused(errors.TaskNotFoundError, first_of(subscribed))
    await refused(errors.TaskNotFoundError, talk.send(message={"task_id": task_id}))
    await refused(errors.TaskNotFoundError, client.create_task_push_notification_config(config, context=context))
    wanted = GetTaskPushNotificationConfigRequest(task_id=task_id, id="x")
    await refused(errors.TaskNotFoundError, client.get_task_push_notification_config(wanted, context=context))
    every = ListTaskPushNotificationConfigsRequest(task_id=task_id)
    await refused(errors.TaskNotFoundError, client.list_task_push_notification_configs(every, context=context))
    gone = DeleteTaskPushNotificationConfigRequest(task_id=task_id, id="x")
    await refused(errors.TaskNotFoundError, client.delete_task_push_notification_config(gone, context=context))
    assert await scene.head() == before


async def an_unknown_task_is_not_found(scene: Scene) -> None:
    for task_id in (NOWHERE, "x", "task_" + "Z" * 26):
        await _everything_about(scene, scene.streaming, task_id)


async def a_task_of_another_workspace_is_not_found(scene: Scene) -> None:
    task = await scene.talk.send()
    await _everything_about(scene, scene.stranger, task.id)
    assert task.id not in [one.id for one in (await listed(scene.stranger)).tasks]


async def a_terminal_task_is_not_cancelable(scene: Scene) -> None:
    task = await scene.completed()
    call = scene.talk.client.cancel_task(CancelTaskRequest(id=task.id), context=scene.talk.context())
    await refused(errors.TaskNotCancelableError, call)


async def cancelling_cancels(scene: Scene) -> None:
    task = await scene.talk.send()
    found = await scene.talk.client.cancel_task(CancelTaskRequest(id=task.id), context=scene.talk.context())
    assert state(found) == "CANCELED"
    assert state(await scene.talk.get(task.id)) == "CANCELED"


async def a_terminal_task_takes_no_message(scene: Scene) -> None:
    task = await scene.completed()
    await refused(errors.UnsupportedOperationError, scene.talk.send(message={"task_id": task.id}))


async def a_context_is_kept_or_made(scene: Scene) -> None:
    context = str(uuid4())
    one, other = await scene.talk.send(message={"context_id": context}), await scene.talk.send()
    assert one.context_id == context
    assert other.context_id not in ("", context)
    assert {one.history[0].context_id, one.history[0].task_id} == {context, one.id}


async def a_context_that_cannot_be_kept_is_refused(scene: Scene) -> None:
    before = await scene.head()
    for context in ("a b", "ü", "x" * 200, "a2a:x", "workflow:wf_none"):
        await refused(errors.InvalidParamsError, scene.talk.send(message={"context_id": context}))
    assert await scene.head() == before


async def the_context_of_a_message_is_that_of_its_task(scene: Scene) -> None:
    task = await scene.talk.send()
    wrong = {"task_id": task.id, "context_id": str(uuid4())}
    await refused(errors.InvalidParamsError, scene.talk.send(message=wrong))
    assert len((await scene.talk.get(task.id)).history) == 1


async def history_is_as_long_as_asked_for(scene: Scene) -> None:
    task = await scene.talk.send("one")
    await scene.talk.send("two", message={"task_id": task.id})
    texts = [one.parts[0].text for one in (await scene.talk.get(task.id)).history]
    assert texts == ["one", "two"]
    assert [one.parts[0].text for one in (await scene.talk.get(task.id, history_length=1)).history] == ["two"]
    assert not (await scene.talk.get(task.id, history_length=0)).history
    assert not (await scene.talk.send(configuration={"history_length": 0})).history
    await refused(errors.InvalidParamsError, scene.talk.get(task.id, history_length=-1))


async def equal_message_ids_are_two_messages(scene: Scene) -> None:
    first = await scene.talk.send(message={"message_id": "same"})
    second = await scene.talk.send(message={"message_id": "same"})
    assert first.id != second.id
    assert first.history[0].message_id == second.history[0].message_id == "same"


async def an_idempotency_key_makes_one_task(scene: Scene) -> None:
    key, message = {"idempotency_key": uuid4().hex}, {"message_id": "m-1"}
    first = await scene.talk.send("once", message=message, parameters=key)
    again = await scene.talk.send("once", message=message, parameters=key)
    assert again == first
    await refused(errors.InvalidParamsError, scene.talk.send("another", message=message, parameters=key))


async def tasks_are_listed_newest_status_first(scene: Scene) -> None:
    context = str(uuid4())
    made = [(await scene.talk.send(message={"context_id": context})).id for _ in range(4)]
    worker = await scene.worker()
    await asyncio.to_thread(worker.take, made[1])
    found = await listed(scene.talk, context_id=context)
    assert [one.id for one in found.tasks] == [made[1], made[3], made[2], made[0]]
    times = [one.status.timestamp.ToNanoseconds() for one in found.tasks]
    assert times == sorted(times, reverse=True)
    assert (found.total_size, found.page_size, found.next_page_token) == (4, 50, "")


async def a_list_comes_in_pages_without_gap_or_copy(scene: Scene) -> None:
    context = str(uuid4())
    made = [(await scene.talk.send(message={"context_id": context})).id for _ in range(5)]
    seen: list[str] = []
    token = ""
    for _ in range(3):
        found = await listed(scene.talk, context_id=context, page_size=2, page_token=token)
        assert (found.total_size, found.page_size) == (5, 2)
        seen += [one.id for one in found.tasks]
        token = found.next_page_token
    assert (seen, token) == (made[::-1], "")
    for wrong in ({"page_size": -1}, {"page_size": 101}, {"page_token": "what"}):
        await refused(errors.InvalidParamsError, listed(scene.talk, **wrong))


async def a_list_is_filtered_by_status_and_time(scene: Scene) -> None:
    context, worker = str(uuid4()), await scene.worker()
    made = [(await scene.talk.send(message={"context_id": context})).id for _ in range(3)]
    await asyncio.to_thread(worker.take, made[0])
    working = await listed(scene.talk, context_id=context, status=TaskState.TASK_STATE_WORKING)
    assert ([one.id for one in working.tasks], working.total_size) == ([made[0]], 1)
    every = await listed(scene.talk, context_id=context)
    since = Timestamp()
    # Tasks of that very time are among them, by the definition of the field.
    for count in (1, 2, 3):
        since.CopyFrom(every.tasks[count - 1].status.timestamp)
        later = await listed(scene.talk, context_id=context, status_timestamp_after=since)
        assert [one.id for one in later.tasks] == [one.id for one in every.tasks[:count]]
        assert later.total_size == count
    since.FromNanoseconds(every.tasks[0].status.timestamp.ToNanoseconds() + 1_000_000)
    assert (await listed(scene.talk, context_id=context, status_timestamp_after=since)).total_size == 0
    assert made[0] in [one.id for one in (await listed(scene.talk, status=TaskState.TASK_STATE_WORKING)).tasks]


async def an_unknown_status_is_refused(scene: Scene) -> None:
    await scene.talk.send()
    number: Any = 99
    await refused(errors.InvalidParamsError, listed(scene.talk, status=number))


async def a_list_has_artifacts_only_when_asked(scene: Scene) -> None:
    context = str(uuid4())
    await scene.completed(message={"context_id": context})
    without = await listed(scene.talk, context_id=context)
    full = await listed(scene.talk, context_id=context, include_artifacts=True)
    assert [len(one.artifacts) for one in (*without.tasks, *full.tasks)] == [0, 1]


async def a_failure_and_a_rejection_are_told_apart(scene: Scene) -> None:
    for kind, expected in (("error", "FAILED"), ("rejected", "REJECTED")):
        task, worker = await scene.talk.send(), await scene.worker()
        await asyncio.to_thread(worker.take, task.id)
        await asyncio.to_thread(worker.fail, "No.", kind)
        found = await scene.talk.get(task.id)
        assert (state(found), found.status.message.parts[0].text) == (expected, "No.")


async def a_message_has_parts_of_a_known_kind(scene: Scene) -> None:
    before = await scene.head()
    await refused(errors.ContentTypeNotSupportedError, scene.talk.send(parts=[Part(media_type="text/plain")]))
    await refused(errors.ContentTypeNotSupportedError, scene.talk.send(parts=[Part(url="file:///etc/passwd")]))
    empty = asked()
    del empty.message.parts[:]
    await refused(
        errors.InvalidParamsError, first_of(scene.talk.client.send_message(empty, context=scene.talk.context()))
    )
    nameless = asked()
    nameless.message.ClearField("message_id")
    call = scene.talk.client.send_message(nameless, context=scene.talk.context())
    await refused(errors.InvalidParamsError, first_of(call))
    assert await scene.head() == before


async def references_are_kept_and_must_exist(scene: Scene) -> None:
    # Four fit on the wire of a task; the others are kept beside it.
    named = [(await scene.talk.send()).id for _ in range(6)]
    for references in (named[:1], named):
        task = await scene.talk.send(message={"reference_task_ids": references})
        for shown in (task, await scene.talk.get(task.id)):
            assert list(shown.history[0].reference_task_ids) == references
        kept = (await asyncio.to_thread(scene.owner.get, f"/tasks/{task.id}")).json
        assert kept["referenceTaskIds"] == references
    before = await scene.head()
    for wrong in ([NOWHERE], ["x"], [*named, NOWHERE], named * 6):
        await refused(errors.InvalidParamsError, scene.talk.send(message={"reference_task_ids": wrong}))
    assert await scene.head() == before


async def an_unknown_tenant_is_refused(scene: Scene) -> None:
    before = await scene.head()
    await refused(errors.InvalidParamsError, scene.talk.send(tenant="nowhere"))
    assert await scene.head() == before


async def the_extended_card_has_the_roles_as_skills(scene: Scene) -> None:
    reply = await asyncio.to_thread(scene.owner.post, "/roles", {"id": f"role_r{uuid4().hex[:8]}", "name": "Reviewer"})
    card = await scene.talk.client.get_extended_agent_card(GetExtendedAgentCardRequest(), context=scene.talk.context())
    assert reply.json["id"].removeprefix("role_") in [skill.id for skill in card.skills]
    task = await scene.talk.send(message={"metadata": {"skill": reply.json["id"]}})
    shown = await asyncio.to_thread(scene.owner.get, f"/tasks/{task.id}")
    assert shown.json["requiredRoles"] == [reply.json["id"]]
    wrong = Message(metadata={"skill": "flying"})
    await refused(errors.InvalidParamsError, scene.talk.send(message={"metadata": wrong.metadata}))


async def a_large_text_comes_back_whole(scene: Scene) -> None:
    text = "ü" * 60_000
    task = await scene.talk.send(text)
    assert task.history[0].parts[0].text == text
    await refused(errors.InvalidParamsError, scene.talk.send("x" * 70_000))


async def the_context_of_a_task_is_that_of_its_messages(scene: Scene) -> None:
    task = await scene.talk.send()
    again = await scene.talk.send("two", message={"task_id": task.id})
    assert again.context_id == task.context_id
    assert {one.context_id for one in again.history} == {task.context_id}


async def a_cancelled_task_is_not_cancelable(scene: Scene) -> None:
    task, talk = await scene.talk.send(), scene.talk
    await talk.client.cancel_task(CancelTaskRequest(id=task.id), context=talk.context())
    before = await scene.head()
    again = talk.client.cancel_task(CancelTaskRequest(id=task.id), context=talk.context())
    await refused(errors.TaskNotCancelableError, again)
    assert await scene.head() == before


async def an_extension_that_is_not_known_is_ignored(scene: Scene) -> None:
    # Neither does another version of a known one fall back to the known version.
    for uri in ("urn:example:unknown:1", "urn:redkey:a2a:ledger:0", "urn:redkey:a2a:ledger:2"):
        task = await scene.talk.send(parameters={"a2a_extensions": uri})
        assert state(task) == "SUBMITTED"
        assert not task.metadata.fields


async def parent_and_correlation_go_both_ways(scene: Scene) -> None:
    parent, context = await scene.talk.send(), f"c-{uuid4().hex[:8]}"
    asks = {"a2a_extensions": LEDGER}

    def said(**lineage: str) -> dict[str, Any]:
        return {"metadata": Message(metadata={LEDGER: lineage}).metadata}

    named = said(parentTaskId=parent.id, correlationId=context)
    child = await scene.talk.send(message=named, parameters=asks)
    assert child.context_id == context
    for shown in (child, await scene.talk.get(child.id, parameters=asks)):
        told = shown.metadata[LEDGER]
        assert (told["parentTaskId"], told["correlationId"]) == (parent.id, context)
    kept = (await asyncio.to_thread(scene.owner.get, f"/tasks/{child.id}")).json
    assert (kept["parentTaskId"], kept["contextId"]) == (parent.id, f"a2a:{context}")
    alone = (await scene.talk.get(parent.id, parameters=asks)).metadata[LEDGER]
    assert ("parentTaskId" in alone, alone["correlationId"]) == (False, parent.context_id)
    before = await scene.head()
    for wrong in (said(parentTaskId=NOWHERE), said(parentTaskId="x"), said(correlationId="a b")):
        await refused(errors.InvalidParamsError, scene.talk.send(message=wrong))
    await refused(errors.InvalidParamsError, scene.talk.send(message={**said(correlationId="a b"), "context_id": "c"}))
    await refused(errors.InvalidParamsError, scene.stranger.send(message=named))
    assert await scene.head() == before
    # Beside another context: the task is grouped by both, and both come back.
    grouped = await scene.talk.send(message={**said(correlationId=context), "context_id": "two"}, parameters=asks)
    assert (grouped.context_id, grouped.metadata[LEDGER]["correlationId"]) == ("two", context)
    kept = (await asyncio.to_thread(scene.owner.get, f"/tasks/{grouped.id}")).json
    assert (kept["contextId"], kept["correlationId"]) == ("a2a:two", f"a2a:{context}")


async def extensions_are_taken_and_given_back(scene: Scene) -> None:
    asks = {"a2a_extensions": LEDGER}

    def said(name: str) -> dict[str, Any]:
        return {LEDGER: {"extensions": {"redkey.test": {"of": name, "at": 3, "deep": [True, "ü"]}}}}

    made = await scene.talk.send(message={"metadata": Message(metadata=said("created")).metadata}, parameters=asks)
    extensions = said("created")[LEDGER]["extensions"]
    for shown in (made, await scene.talk.get(made.id, parameters=asks)):
        assert MessageToDict(shown.metadata)[LEDGER]["extensions"] == extensions
    kept = (await asyncio.to_thread(scene.owner.get, f"/tasks/{made.id}")).json
    assert kept["extensions"] == extensions
    # Those that do not ask for the extension of the ledger get nothing of it.
    assert not (await scene.talk.get(made.id)).metadata.fields
    # What a worker's record carries comes with its event; the answer and the cancellation carry data too.
    worker = await scene.worker()
    await asyncio.to_thread(worker.take, made.id)
    context = scene.streaming.context(a2a_extensions=LEDGER)
    async with aclosing(scene.streaming.client.subscribe(SubscribeToTaskRequest(id=made.id), context=context)) as found:
        events = aiter(found)
        assert (await anext(events)).WhichOneof("payload") == "task"
        asked = said("asked")[LEDGER]["extensions"]
        await asyncio.to_thread(worker.block, extensions=asked)
        update = (await anext(events)).status_update
        assert MessageToDict(update.metadata)[LEDGER]["extensions"] == asked
    await scene.talk.send("Main", message={"task_id": made.id, "metadata": Message(metadata=said("answer")).metadata})
    await scene.talk.client.cancel_task(
        CancelTaskRequest(id=made.id, metadata=Message(metadata=said("cancelled")).metadata),
        context=scene.talk.context(),
    )
    events_of = (await asyncio.to_thread(scene.owner.get, f"/tasks/{made.id}/events")).json["items"]
    of = {one["type"]: one["extensions"]["redkey.test"]["of"] for one in events_of if "extensions" in one}
    assert of == {
        "task.created": "created",
        "task.blocked": "asked",
        "task.unblocked": "answer",
        "task.cancelled": "cancelled",
    }
    before = await scene.head()
    for wrong in ({"plain": 1}, {"redkey.test": "x" * 2000}, {"redkey.test": "AKIA" + "ABCDEFGHIJKLMNOP"}):
        metadata = Message(metadata={LEDGER: {"extensions": wrong}}).metadata
        await refused(errors.InvalidParamsError, scene.talk.send(message={"metadata": metadata}))
    metadata = Message(metadata={LEDGER: {"extensions": "no object"}}).metadata
    await refused(errors.InvalidParamsError, scene.talk.send(message={"metadata": metadata}))
    assert await scene.head() == before


Check = Callable[[Scene], Awaitable[None]]
# By section, in the order of the specification.
REQUIREMENTS: tuple[tuple[str, Check], ...] = (
    ("3.1.1", a_terminal_task_takes_no_message),
    ("3.1.1", a_message_has_parts_of_a_known_kind),
    ("3.1.1", a_large_text_comes_back_whole),
    ("3.1.2", waiting.a_stream_begins_with_its_task_and_tells_everything_once),
    ("3.1.2", waiting.a_stream_of_a_message_ends_when_its_client_is_needed),
    ("3.1.2", waiting.a_streamed_message_is_refused_as_a_sent_one),
    ("3.1.3", an_unknown_task_is_not_found),
    ("3.1.4", tasks_are_listed_newest_status_first),
    ("3.1.4", a_list_comes_in_pages_without_gap_or_copy),
    ("3.1.4", a_list_is_filtered_by_status_and_time),
    ("3.1.4", an_unknown_status_is_refused),
    ("3.1.4", a_list_has_artifacts_only_when_asked),
    ("3.1.5", cancelling_cancels),
    ("3.1.5", a_terminal_task_is_not_cancelable),
    ("3.1.5", a_cancelled_task_is_not_cancelable),
    ("3.1.6", waiting.a_terminal_task_cannot_be_followed),
    ("3.1.6", waiting.a_question_does_not_end_a_subscription),
    ("3.1.7-3.1.10", pushing.a_push_config_is_kept_until_it_is_deleted),
    ("3.1.9", pushing.every_push_config_is_listed),
    ("3.1.11", the_extended_card_has_the_roles_as_skills),
    ("3.2.2", waiting.return_immediately_does_not_wait),
    ("3.2.2", waiting.a_send_waits_until_the_task_needs_its_client),
    ("3.2.2", waiting.a_send_waits_for_every_kind_of_end),
    ("3.2.2", waiting.a_send_that_waits_answers_with_everything),
    ("3.2.4", history_is_as_long_as_asked_for),
    ("3.3.1", equal_message_ids_are_two_messages),
    ("3.3.1", an_idempotency_key_makes_one_task),
    ("3.3.2", a_failure_and_a_rejection_are_told_apart),
    ("3.3.2", an_unknown_tenant_is_refused),
    ("3.3.2, 13.1", permitted.every_operation_needs_its_scope),
    ("3.4.1", a_context_is_kept_or_made),
    ("3.4.1", a_context_that_cannot_be_kept_is_refused),
    ("3.4.3", the_context_of_a_task_is_that_of_its_messages),
    ("3.4.3", the_context_of_a_message_is_that_of_its_task),
    ("3.4.3", references_are_kept_and_must_exist),
    ("3.4.3", parent_and_correlation_go_both_ways),
    ("4.6", extensions_are_taken_and_given_back),
    ("4.6", resuming.a_subscription_resumes_after_each_of_its_events),
    ("4.6", resuming.a_streamed_message_resumes_after_each_of_its_events),
    ("4.6", resuming.an_event_id_that_no_stream_gave_is_refused),
    ("3.5.2", waiting.every_stream_of_a_task_is_the_same),
    ("4.6.3", an_extension_that_is_not_known_is_ignored),
    ("7.4, 13.3", permitted.every_operation_needs_a_valid_key),
    ("13.1", a_task_of_another_workspace_is_not_found),
    ("13.2", pushing.a_push_config_does_not_name_this_machine),
)
