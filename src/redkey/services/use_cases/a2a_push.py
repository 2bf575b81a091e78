"""Push notification configs of A2A: where updates of a task are sent. Callers that may cancel the task set them."""

from __future__ import annotations

import re
from typing import Any

from redkey.commands.decision import wrong
from redkey.commands.webhooks import RemovePush, SetPush
from redkey.readmodel.deliveries import webhook_settings
from redkey.services.caller import Caller, Pending
from redkey.services.use_case import use_case
from redkey.services.use_cases.tasks import read_task
from redkey.services.use_cases.webhooks import check_receiver, pushes_of
from redkey.shapes import tasks

# Each config is a separate delivery; a client that sets more for one task has probably lost count.
PUSH_LIMIT = 256
# The id of a config on the ledger, beside the id that its client gave it.
PUSH_ID = "pushId"
_PUSH_ID = re.compile(r"psh_[0-9A-HJKMNP-TV-Z]{26}")


def is_push_id(text: str) -> bool:
    """True for an id that a config may have on the ledger."""
    return _PUSH_ID.fullmatch(text) is not None


@use_case(tasks.CANCEL_TASK)
def set_push(caller: Caller, task_id: str, settings: dict[str, Any]) -> Pending[dict[str, Any]]:
    """Send the updates of a task to a URL. A config with the id of another replaces it."""
    read_task(caller, task_id)
    check_receiver(caller, settings["url"], "/url")
    there = {one["id"]: one[PUSH_ID] for one in list_push.run(caller, task_id)}
    if len(there) >= PUSH_LIMIT and settings.get("id") not in there:
        raise wrong("push_too_many", "", f"a task has at most {PUSH_LIMIT} push notification configs")
    push_id = there.get(settings.get("id", "")) or "psh_" + caller.means.ids.ulid()
    kept = {"id": push_id} | settings
    ref, content = caller.document(kept)
    return Pending(SetPush(push_id, task_id, ref), lambda outcome, place: kept, (content,))


@use_case(tasks.GET_TASK)
def list_push(caller: Caller, task_id: str) -> list[dict[str, Any]]:
    """List the push notification configs of a task, as they were set."""
    read_task(caller, task_id)
    store, topic = caller.means.store, caller.topic
    return [webhook_settings(store, topic, one) | {PUSH_ID: one.webhook_id} for one in pushes_of(caller, task_id)]


@use_case(tasks.CANCEL_TASK)
def remove_push(caller: Caller, task_id: str, push_id: str) -> Pending[None]:
    """Send no more updates of a task to this config's URL."""
    return Pending(RemovePush(push_id, task_id), lambda outcome, place: None)
