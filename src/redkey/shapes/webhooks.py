"""Webhooks: chosen events sent to a URL, signed, in order, until the receiver has them."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from redkey.shapes.fields import Body, Page, PageQuery, Reply, SecretReply, Sentence
from redkey.shapes.operation import ADMIN, READ, Operation


class NewWebhook(Body, frozen=True, kw_only=True):
    """Where to send events, and which; all of them when no type is named."""

    receiver_url: Annotated[
        str, Meta(min_length=1, max_length=2048, description="An https URL that takes POST requests.")
    ]
    types: Annotated[
        tuple[Annotated[str, Meta(max_length=64)], ...],
        Meta(max_length=64, description="Event types to send, such as task.complete; all of them when none is named."),
    ] = ()
    description: Annotated[Sentence, Meta(description="What it is for, in a sentence.")] | None = None


class CreatedWebhook(SecretReply, frozen=True, kw_only=True):
    """A new webhook. Its secret signs what it gets, and is shown this once."""

    webhook_id: str
    secret: str
    event_id: str


class Webhook(Reply, frozen=True, kw_only=True):
    """A webhook or a push notification config of A2A, and how far it has got."""

    webhook_id: str
    kind: Literal["webhook", "push"]
    receiver_url: str
    types: tuple[str, ...] = ()
    task_id: str = ""
    description: str = ""
    # waiting: all was delivered; retrying: the receiver does not take the next event; parked: it was given up until
    # it is resumed; ended: its task has ended, and everything about it was delivered.
    state: Literal["waiting", "retrying", "parked", "ended"]
    # The last record that was delivered or did not concern it.
    sequence: int
    delivered: int
    attempts: int = 0
    last_error: str = ""
    last_delivered_at: str | None = None
    next_attempt_at: str | None = None


class WebhookChanged(Reply, frozen=True, kw_only=True):
    """What became of the webhook."""

    webhook_id: str
    status: Literal["removed", "resumed"]
    event_id: str = ""


class WebhookQuery(PageQuery, frozen=True, kw_only=True):
    """Which webhooks: those of the workspace, those of tasks, or both."""

    kind: Annotated[Literal["webhook", "push", "all"], Meta(description="Webhooks, push configs of A2A, or both.")] = (
        "all"
    )


_WEBHOOK_ID = "whk_01JTMX9A2B3C4D5E6F7G8H9JKM"
_EVENT_ID = "evt_01JTMX9A2B3C4D5E6F7G8H9JKM"

CREATE_WEBHOOK = Operation(
    "create_webhook",
    "POST",
    "/webhooks",
    ADMIN,
    body=NewWebhook,
    reply=CreatedWebhook,
    status=201,
    summary="Send events to a URL.",
    description="Send events to a URL: at least once, in order, signed as Standard Webhooks.",
    example={"receiverUrl": "https://example.com/redkey", "types": ["task.complete", "task.failed"]},
    reply_example={"webhookId": _WEBHOOK_ID, "secret": "whsec_c2VjcmV0", "eventId": _EVENT_ID},
    method_name="webhooks.create",
    positional=("receiver_url",),
    command="webhook create RECEIVER_URL",
)
LIST_WEBHOOKS = Operation(
    "list_webhooks",
    "GET",
    "/webhooks",
    READ,
    query=WebhookQuery,
    reply=Page[Webhook],
    summary="The webhooks of the workspace, and how far each has got.",
    description="The webhooks of the workspace and the push notification configs of its tasks, with their deliveries.",
    method_name="webhooks.list",
    command="webhook list",
)
GET_WEBHOOK = Operation(
    "get_webhook",
    "GET",
    "/webhooks/{webhook_id}",
    READ,
    reply=Webhook,
    summary="One webhook, and how far it has got.",
    method_name="webhooks.get",
    command="webhook show WEBHOOK",
)
REMOVE_WEBHOOK = Operation(
    "remove_webhook",
    "DELETE",
    "/webhooks/{webhook_id}",
    ADMIN,
    reply=WebhookChanged,
    summary="Send nothing more to a webhook.",
    method_name="webhooks.remove",
    command="webhook remove WEBHOOK",
)
RESUME_WEBHOOK = Operation(
    "resume_webhook",
    "POST",
    "/webhooks/{webhook_id}/resume",
    ADMIN,
    reply=WebhookChanged,
    summary="Try a parked webhook again.",
    description="Try a parked webhook again, from the event that it did not take.",
    replies={409: "The webhook is not parked."},
    repeats="bytes",
    reply_example={"webhookId": _WEBHOOK_ID, "status": "resumed"},
    method_name="webhooks.resume",
    command="webhook resume WEBHOOK",
)

OPERATIONS = (CREATE_WEBHOOK, LIST_WEBHOOKS, GET_WEBHOOK, REMOVE_WEBHOOK, RESUME_WEBHOOK)
