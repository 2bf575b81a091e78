"""The progress of each webhook: rows outside the ledger that the outbox writes."""

from __future__ import annotations

from typing import Any

import msgspec

from redkey.ledger.ports import Reader, Row
from redkey.readmodel.rows import DELIVERY, entity
from redkey.readmodel.view import moment, read_document
from redkey.reducers.entities import Webhook
from redkey.shapes import webhooks

# The lists of deliveries: those to make, those given up until they are resumed, and those of tasks that have ended.
DUE, PARKED, ENDED = "due", "parked", "ended"


class Delivery(msgspec.Struct, frozen=True, omit_defaults=True):
    """How far a webhook has got: the last record done with, and how many objects of the next one were taken."""

    key: str
    sequence: int
    state: str = DUE
    skipped: int = 0
    delivered: int = 0
    attempts: int = 0
    last_error: str = ""
    delivered_at: int = 0
    next_at: int = 0


_read = msgspec.json.Decoder(Delivery).decode
_encode = msgspec.json.Encoder().encode


def delivery_of(row: Row) -> Delivery:
    """The delivery of a row."""
    return _read(row.body)


def read_delivery(reader: Reader, topic: str, key: str) -> Delivery | None:
    """How far a webhook has got; None when the outbox has not begun with it."""
    row = reader.row(topic, DELIVERY, key)
    return None if row is None else _read(row.body)


def delivery_row(delivery: Delivery) -> Row:
    """The row of a delivery."""
    return Row(DELIVERY, delivery.key, _encode(delivery), delivery.state)


def read_webhook(reader: Reader, topic: str, key: str) -> Webhook | None:
    """A webhook that was not removed."""
    row = reader.row(topic, "webhook", key)
    found: Webhook | None = None if row is None else entity(row)
    return None if found is None or found.removed else found


def webhook_settings(reader: Reader, topic: str, webhook: Webhook) -> dict[str, Any]:
    """What a webhook was set to; empty once it was erased."""
    return dict(read_document(reader, topic, webhook.settings_sha256) or {})


def webhook_view(reader: Reader, topic: str, webhook: Webhook) -> webhooks.Webhook:
    """A webhook as the API shows it; its token and credentials stay inside."""
    settings = webhook_settings(reader, topic, webhook)
    done = read_delivery(reader, topic, webhook.key) or Delivery(webhook.key, webhook.sequence)
    state = {PARKED: "parked", ENDED: "ended"}.get(done.state, "retrying" if done.attempts else "waiting")
    return webhooks.Webhook(
        webhook_id=webhook.webhook_id,
        kind="push" if webhook.task_id else "webhook",
        receiver_url=settings.get("url", ""),
        types=tuple(settings.get("types", ())),
        task_id=webhook.task_id,
        description=settings.get("description", ""),
        state=state,  # type: ignore[arg-type]
        sequence=done.sequence,
        delivered=done.delivered,
        attempts=done.attempts,
        last_error=done.last_error,
        last_delivered_at=moment(done.delivered_at),
        next_attempt_at=moment(done.next_at) if state == "retrying" else None,
    )
