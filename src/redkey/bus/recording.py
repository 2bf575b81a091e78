"""Record a message of the bus on the ledger: its text becomes content, the ledger gets the hash.

The message is sent to an inbox by the same use case and the same rules as through the API. No other message of the bus
reaches the ledger.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import orjson
from msgspec.structs import replace

from redkey.bus.bus import Bus
from redkey.bus.model import MESSAGE, SessionState
from redkey.bus.runtime.events import message_of
from redkey.commands.decision import Refused
from redkey.errors import BusRefused
from redkey.services.caller import Caller
from redkey.services.use_cases.inbox import HUMANS, recipient, send_message
from redkey.shapes.inbox import NewInboxMessage, SentMessage
from redkey.wire.ids import derived_ulid

_SUBJECT = 200


async def record(
    bus: Bus,
    session: SessionState,
    caller: Caller,
    bus_message: str,
    to: str | None,
    priority: int,
    extensions: dict[str, Any] | None = None,
) -> SentMessage:
    """Record a message of a session, once for each recipient; `event_id` is empty if it was recorded before.

    Without `to` it goes to the message's receiver, or to the human inbox if the workspace has no such agent or role.
    """
    said = bus.log.find(session.number, bus_message)
    if said is None or said.type != MESSAGE:
        raise BusRefused("message not found in this session", code="message_not_found")
    message = message_of(orjson.loads(said.envelope))
    recipient_id = recipient(caller, to) if to else recipient(caller, message.dst or HUMANS, or_humans=True)
    # The id is derived from message and recipient, so the ledger refuses a second record.
    sent_at = int(datetime.fromisoformat(said.ts).timestamp() * 1000)
    message_id = "msg_" + derived_ulid(sent_at, session.key, said.id, recipient_id)
    subject = message.text.strip().split("\n")[0][:_SUBJECT] or "(no text)"
    new = NewInboxMessage(to=recipient_id, subject=subject, body=message.text, priority=priority)
    sending = replace(send_message(caller, new, message_id=message_id), extensions=caller.extended(extensions))
    try:
        sent = await caller.settled(sending)
    except Refused as refused:
        if refused.code != "message_exists":
            raise
        return SentMessage(message_id=message_id, to=recipient_id, event_id="")
    return SentMessage(message_id=message_id, to=recipient_id, event_id=sent.event_id)
