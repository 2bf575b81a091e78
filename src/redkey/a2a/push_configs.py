"""Push notification configs of A2A: where the updates of a task are sent."""

from __future__ import annotations

from typing import Any

import msgspec

from redkey.a2a import requests
from redkey.a2a.call import Call
from redkey.a2a.errors import invalid, refused
from redkey.services.use_cases import a2a_push

Json = dict[str, Any]


async def create_config(call: Call, request: requests.PushConfig) -> Json:
    """Send the updates of a task to a URL."""
    task_id = request.task_id or ""
    return _shown(await set_config(call, request, task_id), task_id)


async def set_config(call: Call, request: requests.PushConfig, task_id: str, after: int = 0) -> Json:
    """Record a config. It gets every update after the record `after`, by default after its own record."""
    settings = msgspec.to_builtins(request)
    for name in ("tenant", "taskId"):
        settings.pop(name, None)
    for text in (settings.get("token"), *(settings.get("authentication") or {}).values()):
        if text and not (text.isascii() and text.isprintable()):
            raise invalid("A token or credential cannot be sent in a header.", "token", "not printable ASCII")
    if after:
        settings["after"] = after
    return await call.beside.settled(a2a_push.set_push(call.beside, task_id, settings))


async def get_config(call: Call, request: requests.NamedConfig) -> Json:
    """Return one push notification config of a task."""
    for config in a2a_push.list_push(call.caller, request.task_id):
        if config["id"] == request.id:
            return _shown(config, request.task_id)
    raise refused("TaskNotFoundError", "The task has no such push notification config.")


async def list_configs(call: Call, request: requests.ListConfigs) -> Json:
    """List the push notification configs of a task, oldest first, in pages."""
    size = requests.MAX_PAGE if request.page_size is None else request.page_size
    if not 1 <= size <= requests.MAX_PAGE:
        raise invalid(f"A page has 1 to {requests.MAX_PAGE} configs.", "pageSize", f"1 to {requests.MAX_PAGE}")
    after, found = request.page_token or "", a2a_push.list_push(call.caller, request.task_id)
    if after and not a2a_push.is_push_id(after):
        raise invalid("A page token comes from an earlier page.", "pageToken", "not a token")
    # Ids on the ledger rise with time, so a page continues after the last id of the page before.
    rest = [config for config in found if config[a2a_push.PUSH_ID] > after]
    page = [_shown(config, request.task_id) for config in rest[:size]]
    following = rest[size - 1][a2a_push.PUSH_ID] if len(rest) > size else ""
    return {"configs": page} | ({"nextPageToken": following} if following else {})


async def delete_config(call: Call, request: requests.NamedConfig) -> Json:
    """Remove a push notification config; do nothing if it does not exist."""
    for config in a2a_push.list_push(call.caller, request.task_id):
        if config["id"] == request.id:
            await call.caller.settled(a2a_push.remove_push(call.caller, request.task_id, config[a2a_push.PUSH_ID]))
    return {}


def _shown(settings: Json, task_id: str) -> Json:
    """Return a config as its client set it."""
    shown = {name: settings[name] for name in ("id", "url", "token", "authentication") if settings.get(name)}
    return shown | {"taskId": task_id}
