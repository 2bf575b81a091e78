"""Webhooks: chosen events sent to a URL, signed, in order, until the receiver has them.

Written by `python -m tools.sdk` from the declared operations; `make verify` proves it current.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from redkey.client.operation import Listing, Mode, Operation, Resource
from redkey.client.request import Request, at, delete, get, post
from redkey.shapes.fields import Page
from redkey.shapes.webhooks import CreatedWebhook, Webhook, WebhookChanged


class Webhooks(Resource[Mode]):
    """Webhooks: chosen events sent to a URL, signed, in order, until the receiver has them."""

    @Operation
    def create(
        self, receiver_url: str, *, types: Sequence[str] | None = None, description: str | None = None
    ) -> Request[CreatedWebhook]:
        """Send events to a URL: at least once, in order, signed as Standard Webhooks."""
        return post("/webhooks", CreatedWebhook, receiver_url=receiver_url, types=types, description=description)

    @Listing
    def list(
        self,
        *,
        kind: Literal["webhook", "push", "all"] | None = None,
        limit: int | None = None,
        after: str | None = None,
    ) -> Request[Page[Webhook]]:
        """The webhooks of the workspace and the push notification configs of its tasks, with their deliveries."""
        return get("/webhooks", Page[Webhook], kind=kind, limit=limit, after=after)

    @Operation
    def get(self, webhook_id: str) -> Request[Webhook]:
        """One webhook, and how far it has got."""
        return get(at("webhooks", webhook_id), Webhook)

    @Operation
    def remove(self, webhook_id: str) -> Request[WebhookChanged]:
        """Send nothing more to a webhook."""
        return delete(at("webhooks", webhook_id), WebhookChanged)

    @Operation
    def resume(self, webhook_id: str) -> Request[WebhookChanged]:
        """Try a parked webhook again, from the event that it did not take."""
        return post(at("webhooks", webhook_id, "resume"), WebhookChanged)
