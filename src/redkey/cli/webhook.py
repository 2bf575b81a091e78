"""`redkey webhook`: events sent to a URL, and how far each receiver has got."""

from __future__ import annotations

from redkey.cli.declared import declared_group
from redkey.cli.look import Look

_COLUMNS = ("webhook_id", "state", "delivered", "attempts", "receiver_url", "last_error")
_CREATED = "{webhook_id}\nsecret {secret} (shown once; it signs what the webhook gets)"

command = declared_group(
    "webhook",
    "Send events to URLs, and show the deliveries.",
    {
        "create": Look(told=_CREATED, next_step="redkey webhook show {webhook_id}"),
        "list": Look(
            parts={name.replace("_", " ").upper(): name for name in _COLUMNS},
            empty="no webhooks yet: redkey webhook create RECEIVER_URL",
        ),
        "remove": Look(told="{webhook_id} is removed and gets no more events"),
        "resume": Look(told="{webhook_id} is retried"),
    },
)
