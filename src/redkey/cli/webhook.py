"""`redkey webhook`: events sent to a URL, and how far each receiver has got."""

from __future__ import annotations

from redkey.cli.declared import declared_group
from redkey.cli.look import Look

command = declared_group(
    "webhook",
    "Send events to URLs, and see what each has got.",
    {
        "create": Look(
            told="{webhook_id}\nsecret {secret} (shown once; it signs what the webhook gets)",
            next_step="redkey webhook show {webhook_id}",
        ),
        "list": Look(
            parts={
                "WEBHOOK": "webhook_id",
                "STATE": "state",
                "DELIVERED": "delivered",
                "FAILURES": "attempts",
                "URL": "receiver_url",
                "LAST ERROR": "last_error",
            },
            empty="no webhooks yet: redkey webhook create RECEIVER_URL",
        ),
        "show": Look(
            parts={
                "webhook": "webhook_id",
                "kind": "kind",
                "state": "state",
                "url": "receiver_url",
                "types": "types",
                "task": "task_id",
                "delivered": "delivered",
                "at sequence": "sequence",
                "last delivered": "last_delivered_at",
                "failures": "attempts",
                "last error": "last_error",
                "next attempt": "next_attempt_at",
            }
        ),
        "remove": Look(told="{webhook_id} gets nothing more"),
        "resume": Look(told="{webhook_id} is tried again"),
    },
)
