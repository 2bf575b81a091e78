"""What A2A 1.0 requires of who may call: keys, scopes and workspaces; rows of the table in `requirements`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from a2a.client import A2AClientError
from a2a.types import (
    CancelTaskRequest,
    DeleteTaskPushNotificationConfigRequest,
    GetExtendedAgentCardRequest,
    GetTaskPushNotificationConfigRequest,
    GetTaskRequest,
    ListTaskPushNotificationConfigsRequest,
    SubscribeToTaskRequest,
    TaskPushNotificationConfig,
)

from tests.a2a.scene import Scene, first_of, listed
from tests.a2a.talk import Talk, asked, state

_URL = "https://example.com/x"


def _reading(talk: Talk, task_id: str) -> list[Callable[[], Awaitable[Any]]]:
    """Every operation that only reads."""
    client, context = talk.client, talk.context()
    configs = ListTaskPushNotificationConfigsRequest(task_id=task_id)
    config = GetTaskPushNotificationConfigRequest(task_id=task_id, id="mine")
    return [
        lambda: client.get_task(GetTaskRequest(id=task_id), context=context),
        lambda: listed(talk),
        lambda: first_of(client.subscribe(SubscribeToTaskRequest(id=task_id), context=context)),
        lambda: client.list_task_push_notification_configs(configs, context=context),
        lambda: client.get_task_push_notification_config(config, context=context),
        lambda: client.get_extended_agent_card(GetExtendedAgentCardRequest(), context=context),
    ]


def _writing(talk: Talk, task_id: str) -> list[Callable[[], Awaitable[Any]]]:
    """Every operation that changes something; the last one cancels the task."""
    client, context = talk.client, talk.context()
    config = TaskPushNotificationConfig(task_id=task_id, id="mine", url=_URL)
    gone = DeleteTaskPushNotificationConfigRequest(task_id=task_id, id="mine")
    return [
        lambda: first_of(client.send_message(asked(), context=context)),
        lambda: client.create_task_push_notification_config(config, context=context),
        lambda: client.delete_task_push_notification_config(gone, context=context),
        lambda: client.cancel_task(CancelTaskRequest(id=task_id), context=context),
    ]


async def _declined(call: Awaitable[Any], *names: str) -> None:
    """The server declines a call with a status of HTTP or of gRPC, and nothing else comes back."""
    found = ""
    try:
        await call
    except A2AClientError as error:
        found = str(error)
    assert any(name in found for name in names), f"{found or 'answered'}, not one of {names}"


async def _with_config(scene: Scene) -> str:
    """A task with a push notification config."""
    task = await scene.talk.send()
    config = TaskPushNotificationConfig(task_id=task.id, id="mine", url=_URL)
    await scene.talk.client.create_task_push_notification_config(config, context=scene.talk.context())
    return task.id


async def every_operation_needs_a_valid_key(scene: Scene) -> None:
    task_id = await _with_config(scene)
    before = await scene.head()
    for key in ("", "rk_nobody_0", scene.talk.key[:-1]):
        plain, streaming = Talk(scene.talk.client, key), Talk(scene.streaming.client, key)
        for call in (*_reading(streaming, task_id), *_writing(streaming, task_id), *_writing(plain, task_id)):
            await _declined(call(), "401", "UNAUTHENTICATED")
    assert await scene.head() == before


async def every_operation_needs_its_scope(scene: Scene) -> None:
    task_id = await _with_config(scene)
    place = f"/workspaces/{scene.workspace_id}/api-keys"
    made = await asyncio.to_thread(scene.owner.post, place, {"scopes": ["read"]})
    before = await scene.head()
    for transport in (scene.talk, scene.streaming):
        reader = Talk(transport.client, made.json["apiKey"])
        for call in _writing(reader, task_id):
            await _declined(call(), "403", "PERMISSION_DENIED")
    for call in _reading(Talk(scene.streaming.client, made.json["apiKey"]), task_id):
        assert await call() is not None
    assert await scene.head() == before
    assert state(await scene.talk.get(task_id)) == "SUBMITTED"
