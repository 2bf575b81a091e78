"""Webhooks: selected events sent to a URL, signed, in order, and retried until they are delivered."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from redkey.shapes.fields import Extended, Identified, Page, PageQuery, Reply, SecretReply, Sentence
from redkey.shapes.operation import ADMIN, READ, Operation


class NewWebhook(Extended, frozen=True, kw_only=True):
    """Where to send events, and which types; without types, all events."""

    receiver_url: Annotated[
        str, Meta(min_length=1, max_length=2048, description="An https URL that takes POST requests.")
    ]
    types: Annotated[
        tuple[Annotated[str, Meta(max_length=64)], ...],
        Meta(max_length=64, description="Event types to send, such as task.complete; all if none is named."),
    ] = ()
    description: Annotated[Sentence, Meta(description="What it is for, in one sentence.")] | None = None


class CreatedWebhook(SecretReply, Identified, frozen=True, kw_only=True):
    """A new webhook. Its secret signs what it receives, and is shown only here."""

    SPECIFIC: ClassVar[str] = "webhook_id"
    webhook_id: str
    secret: str
    event_id: str


class Webhook(Identified, frozen=True, kw_only=True):
    """A webhook or A2A push notification config, and the state of its deliveries."""

    SPECIFIC: ClassVar[str] = "webhook_id"
    webhook_id: str
    kind: Literal["webhook", "push"]
    receiver_url: str
    types: tuple[str, ...] = ()
    task_id: str = ""
    description: str = ""
    # waiting: everything was delivered; retrying: the receiver refused the next event; parked: deliveries stopped until
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
    """The webhook's state after the change."""

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
    summary="List webhooks and the state of their deliveries.",
    description="List the webhooks of the workspace and the push notification configs of its tasks.",
    method_name="webhooks.list",
    command="webhook list",
)
GET_WEBHOOK = Operation(
    "get_webhook",
    "GET",
    "/webhooks/{webhook_id}",
    READ,
    reply=Webhook,
    summary="Show a webhook and the state of its deliveries.",
    method_name="webhooks.get",
    command="webhook show WEBHOOK",
)
REMOVE_WEBHOOK = Operation(
    "remove_webhook",
    "DELETE",
    "/webhooks/{webhook_id}",
    ADMIN,
    body=Extended,
    reply=WebhookChanged,
    summary="Remove a webhook.",
    method_name="webhooks.remove",
    command="webhook remove WEBHOOK",
)
RESUME_WEBHOOK = Operation(
    "resume_webhook",
    "POST",
    "/webhooks/{webhook_id}/resume",
    ADMIN,
    reply=WebhookChanged,
    summary="Resume a parked webhook.",
    description="Resume a parked webhook, from the event that could not be delivered.",
    replies={409: "The webhook is not parked."},
    repeats="bytes",
    reply_example={"webhookId": _WEBHOOK_ID, "status": "resumed"},
    method_name="webhooks.resume",
    command="webhook resume WEBHOOK",
)

OPERATIONS = (CREATE_WEBHOOK, LIST_WEBHOOKS, GET_WEBHOOK, REMOVE_WEBHOOK, RESUME_WEBHOOK)
