"""What A2A 1.0 requires of push notification configs; rows of the table in `requirements`."""

from __future__ import annotations

from typing import Any

from a2a.types import (
    AuthenticationInfo,
    DeleteTaskPushNotificationConfigRequest,
    GetTaskPushNotificationConfigRequest,
    ListTaskPushNotificationConfigsRequest,
    TaskPushNotificationConfig,
)
from a2a.utils import errors

from tests.a2a.scene import Scene, refused

URL = "https://hooks.example.com/x"


async def _create(scene: Scene, task_id: str, **more: Any) -> TaskPushNotificationConfig:
    config = TaskPushNotificationConfig(**{"task_id": task_id, "url": URL, **more})
    return await scene.talk.client.create_task_push_notification_config(config, context=scene.talk.context())


async def _list(scene: Scene, task_id: str, **more: Any) -> Any:
    wanted = ListTaskPushNotificationConfigsRequest(task_id=task_id, **more)
    return await scene.talk.client.list_task_push_notification_configs(wanted, context=scene.talk.context())


async def a_push_config_is_kept_until_it_is_deleted(scene: Scene) -> None:
    task, client, context = await scene.talk.send(), scene.talk.client, scene.talk.context()
    authentication = AuthenticationInfo(scheme="Bearer", credentials="opensesame")
    made = await _create(scene, task.id, token="tok", authentication=authentication)
    assert made.id
    assert (made.task_id, made.url, made.token, made.authentication) == (task.id, URL, "tok", authentication)
    wanted = GetTaskPushNotificationConfigRequest(task_id=task.id, id=made.id)
    assert await client.get_task_push_notification_config(wanted, context=context) == made
    named = await _create(scene, task.id, id="mine")
    assert list((await _list(scene, task.id)).configs) == [made, named]
    gone = DeleteTaskPushNotificationConfigRequest(task_id=task.id, id=made.id)
    await client.delete_task_push_notification_config(gone, context=context)
    before = await scene.head()
    # Deleted again it has the same effect: none.
    await client.delete_task_push_notification_config(gone, context=context)
    assert await scene.head() == before
    await refused(errors.TaskNotFoundError, client.get_task_push_notification_config(wanted, context=context))
    assert [one.id for one in (await _list(scene, task.id)).configs] == ["mine"]


async def every_push_config_is_listed(scene: Scene) -> None:
    task = await scene.talk.send()
    made = [(await _create(scene, task.id, id=f"c-{number}")).id for number in range(103)]
    seen: list[str] = []
    token = ""
    while True:
        found = await _list(scene, task.id, page_token=token)
        seen += [one.id for one in found.configs]
        token = found.next_page_token
        if not token:
            break
    assert seen == made
    few = await _list(scene, task.id, page_size=2)
    assert ([one.id for one in few.configs], bool(few.next_page_token)) == (made[:2], True)
    for wrong in ({"page_size": -1}, {"page_size": 101}, {"page_token": "what"}):
        await refused(errors.InvalidParamsError, _list(scene, task.id, **wrong))


async def a_push_config_does_not_name_this_machine(scene: Scene) -> None:
    task = await scene.talk.send()
    before = await scene.head()
    inside = (
        "https://localhost/x",
        "https://a.localhost/x",
        "https://127.0.0.1/x",
        "https://[::1]/",
        "https://10.1.1.1/x",
    )
    for url in (*inside, "http://example.com/x", "ftp://example.com/x", ""):
        await refused(errors.InvalidParamsError, _create(scene, task.id, url=url))
    assert await scene.head() == before
