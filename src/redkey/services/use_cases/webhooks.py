"""Webhooks and A2A push notification configs: set, listed with their deliveries, removed, resumed."""

from __future__ import annotations

import msgspec

from redkey.commands.decision import Refused, not_found, wrong
from redkey.commands.webhooks import RemovePush, RemoveWebhook, SetWebhook
from redkey.errors import FetchRefused
from redkey.ledger.ports import Unit
from redkey.readmodel.deliveries import (
    DUE,
    PARKED,
    delivery_row,
    read_delivery,
    webhook_view,
)
from redkey.readmodel.rows import entity
from redkey.reducers import entities
from redkey.services.caller import Caller, Pending
from redkey.services.outbox import check_url
from redkey.services.outcome import Outcome
from redkey.services.place import Place
from redkey.services.use_case import use_case
from redkey.services.use_cases.events import event_types
from redkey.services.use_cases.pages import place_after
from redkey.shapes import webhooks
from redkey.shapes.fields import Page, set_fields
from redkey.shapes.webhooks import CreatedWebhook, NewWebhook, Webhook, WebhookChanged, WebhookQuery
from redkey.wire import events


@use_case(webhooks.CREATE_WEBHOOK)
def create_webhook(caller: Caller, new: NewWebhook) -> Pending[CreatedWebhook]:
    """Send chosen events of the workspace to a URL from now on."""
    check_receiver(caller, new.receiver_url, "/receiverUrl")
    event_types(",".join(new.types), "types")
    webhook_id = "whk_" + caller.means.ids.ulid()
    # Not searched for secrets: a receiver's URL may well hold one, and the document can be erased.
    ref, content = caller.document({"url": new.receiver_url} | set_fields(new, "types", "description"))

    def reply(outcome: Outcome, place: Place) -> CreatedWebhook:
        set_ = outcome.payload(events.WebhookSet)
        secret = caller.means.keys.webhook_secret(set_.webhook_id)
        return CreatedWebhook(webhook_id=set_.webhook_id, secret=secret, event_id=outcome.event_id)

    return Pending(SetWebhook(webhook_id, ref), reply, (content,))


@use_case(webhooks.LIST_WEBHOOKS)
def list_webhooks(caller: Caller, asked: WebhookQuery) -> Page[Webhook]:
    """List webhooks and push notification configs, oldest first, with their deliveries."""
    store, topic = caller.means.store, caller.topic
    rows = store.rows(topic, "webhook", "present", place_after(asked), asked.limit)
    found = [webhook_view(store, topic, entity(row)) for row in rows]
    following = f"{rows[-1].position}.{rows[-1].key}" if len(rows) == asked.limit else None
    return Page(tuple(one for one in found if asked.kind in (one.kind, "all")), following)


@use_case(webhooks.GET_WEBHOOK)
def get_webhook(caller: Caller, webhook_id: str) -> Webhook:
    """Show one webhook, with its deliveries."""
    return webhook_view(caller.means.store, caller.topic, _read(caller, webhook_id))


@use_case(webhooks.REMOVE_WEBHOOK)
def remove_webhook(caller: Caller, webhook_id: str) -> Pending[WebhookChanged]:
    """Send nothing more to a webhook."""
    # A repeat of the request that removed it is answered from its record.
    webhook = _read(caller, webhook_id, removed=caller.is_repeat)

    def reply(outcome: Outcome, place: Place) -> WebhookChanged:
        return WebhookChanged(webhook_id=webhook_id, status="removed", event_id=outcome.event_id)

    command = RemovePush(webhook_id, webhook.task_id) if webhook.task_id else RemoveWebhook(webhook_id)
    return Pending(command, reply)


@use_case(webhooks.RESUME_WEBHOOK)
async def resume_webhook(caller: Caller, webhook_id: str) -> WebhookChanged:
    """Resume a parked webhook, from the event that it did not accept."""
    key, topic = _read(caller, webhook_id).key, caller.topic

    def resume(unit: Unit) -> None:
        delivery = read_delivery(unit, topic, key)
        if delivery is None or delivery.state != PARKED:
            raise Refused(409, "not_parked", "The webhook is not parked: its events are being delivered.")
        unit.put_rows(topic, [delivery_row(msgspec.structs.replace(delivery, state=DUE, attempts=0, next_at=0))])

    await caller.act(resume)
    return WebhookChanged(webhook_id=webhook_id, status="resumed")


def _read(caller: Caller, webhook_id: str, *, removed: bool = False) -> entities.Webhook:
    """Return a webhook or push notification config by its id; a removed one only if the caller asks for it."""
    row = caller.means.store.row(caller.topic, "webhook", webhook_id)
    found: entities.Webhook | None = entity(row) if row is not None else None
    if found is None and webhook_id.startswith("psh_"):
        every = pushes_of(caller, "", removed=removed)
        found = next((one for one in every if one.webhook_id == webhook_id), None)
    if found is None or (found.removed and not removed):
        raise not_found("webhook")
    return found


def pushes_of(caller: Caller, task_id: str, *, removed: bool = False) -> list[entities.Webhook]:
    """List the configs of a task, or of every task; their keys are next to each other."""
    found: list[entities.Webhook] = []
    prefix = f"{task_id}/" if task_id else "task_"
    after = prefix
    while rows := caller.means.store.rows(caller.topic, "webhook", None, (0, after), 500):
        for row in rows:
            if not row.key.startswith(prefix):
                return found
            webhook = entity(row)
            if removed or not webhook.removed:
                found.append(webhook)
        after = rows[-1].key
    return found


def check_receiver(caller: Caller, url: str, pointer: str) -> None:
    """Refuse a URL that this server may not call."""
    try:
        check_url(url, caller.means.config.outbox)
    except FetchRefused as refused:
        raise wrong(refused.code, pointer, refused.message[:1].lower() + refused.message[1:].rstrip(".")) from None
