"""Webhooks: selected events sent to a URL, signed, in order, and retried until they are delivered.

Written by `python -m tools.sdk` from the declared operations; `make verify` proves it current.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from redkey.client.operation import Listing, Mode, Operation, Resource
from redkey.client.request import Request, at, delete, get, post
from redkey.shapes.fields import Page
from redkey.shapes.webhooks import CreatedWebhook, Webhook, WebhookChanged


class Webhooks(Resource[Mode]):
    """Webhooks: selected events sent to a URL, signed, in order, and retried until they are delivered."""

    @Operation
    def create(
        self,
        receiver_url: str,
        *,
        types: Sequence[str] | None = None,
        description: str | None = None,
        extensions: Mapping[str, Any] | None = None,
    ) -> Request[CreatedWebhook]:
        """Send events to a URL: at least once, in order, signed as Standard Webhooks."""
        return post(
            "/webhooks",
            CreatedWebhook,
            receiver_url=receiver_url,
            types=types,
            description=description,
            extensions=extensions,
        )

    @Listing
    def list(
        self,
        *,
        kind: Literal["webhook", "push", "all"] | None = None,
        limit: int | None = None,
        after: str | None = None,
    ) -> Request[Page[Webhook]]:
        """List the webhooks of the workspace and the push notification configs of its tasks."""
        return get("/webhooks", Page[Webhook], kind=kind, limit=limit, after=after)

    @Operation
    def get(self, webhook_id: str) -> Request[Webhook]:
        """Show a webhook and the state of its deliveries."""
        return get(at("webhooks", webhook_id), Webhook)

    @Operation
    def remove(self, webhook_id: str, *, extensions: Mapping[str, Any] | None = None) -> Request[WebhookChanged]:
        """Remove a webhook."""
        return delete(at("webhooks", webhook_id), WebhookChanged, extensions=extensions)

    @Operation
    def resume(self, webhook_id: str) -> Request[WebhookChanged]:
        """Resume a parked webhook, from the event that could not be delivered."""
        return post(at("webhooks", webhook_id, "resume"), WebhookChanged)
