"""Recording a message of the bus on the ledger: its words become content, the ledger gets their hash.

It is sent as an inbox message, by the same use case and the same rules as one that comes through the API. Nothing
else said on the bus reaches the ledger.
"""

from __future__ import annotations

from datetime import datetime

import orjson

from redkey.bus.bus import Bus
from redkey.bus.runtime.events import message_of
from redkey.bus.state import MESSAGE, Session
from redkey.commands.decision import Refused
from redkey.errors import BusRefused
from redkey.services.caller import Caller
from redkey.services.use_cases.inbox import HUMANS, recipient, send_message
from redkey.shapes.inbox import NewInboxMessage, SentMessage
from redkey.wire.ids import derived_ulid

_SUBJECT = 200


async def record(
    bus: Bus, session: Session, caller: Caller, bus_message: str, to: str | None, priority: int
) -> SentMessage:
    """Record a message of a session, once for each recipient; `event_id` is empty when it was recorded before.

    Without `to` it goes to whom it was said, or to the humans if the workspace does not know that name.
    """
    found = bus.log.find(session.number, bus_message)
    if found is None or found.type != MESSAGE:
        raise BusRefused("there is no such message in this session", code="message_not_found")
    message = message_of(orjson.loads(found.envelope))
    whom = recipient(caller, to) if to else recipient(caller, message.dst or HUMANS, or_humans=True)
    # The id follows from the message and the recipient, so that the ledger refuses it a second time.
    said_at = int(datetime.fromisoformat(found.ts).timestamp() * 1000)
    message_id = "msg_" + derived_ulid(said_at, session.key, found.id, whom)
    subject = message.text.strip().split("\n")[0][:_SUBJECT] or "(no words)"
    new = NewInboxMessage(to=whom, subject=subject, body=message.text, priority=priority)
    try:
        sent = await caller.settled(send_message(caller, new, message_id=message_id))
    except Refused as refused:
        if refused.code != "message_exists":
            raise
        return SentMessage(message_id=message_id, to=whom, event_id="")
    return SentMessage(message_id=message_id, to=whom, event_id=sent.event_id)
