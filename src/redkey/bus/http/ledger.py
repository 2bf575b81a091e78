"""The bridge by HTTP: bind a session to its workspace's ledger, and record a message as an Inbox Wire."""

from __future__ import annotations

import msgspec

from redkey.bus.http import shapes
from redkey.bus.http.call import BusReply, BusRequest
from redkey.bus.http.routes import bus_route
from redkey.bus.recording import record
from redkey.bus.views import find_message
from redkey.errors import BusRefused
from redkey.shapes.operation import PRODUCE, READ


async def bus_ledger(call: BusRequest) -> BusReply:
    """Show whether a session receives the events of its workspace."""
    return BusReply(200, {"bound": call.bridge.is_bound(call.session), "workspace_id": call.session.workspace})


async def bus_bind(call: BusRequest) -> BusReply:
    """Send a session the task events, missed claims and inbox wires of its workspace."""
    call.check_manages()
    await call.bridge.bind(call.open_session)
    return await bus_ledger(call)


async def bus_unbind(call: BusRequest) -> BusReply:
    """Send a session no more events of its workspace."""
    call.check_manages()
    await call.bridge.unbind(call.open_session)
    return await bus_ledger(call)


async def bus_record(call: BusRequest, body: shapes.BusRecording) -> BusReply:
    """Record a message as an Inbox Wire: its text becomes content, the ledger gets the hash."""
    if not call.sees(find_message(call.bus, call.session, call.names["message_id"])):
        raise BusRefused("message not found", code="message_not_found")
    caller = call.ledger_caller
    sent = await record(
        call.bus, call.session, caller, call.names["message_id"], body.to, body.priority, body.extensions
    )
    mail = shapes.BusMail(sent.message_id, sent.to, sent.event_id)
    return BusReply(201 if mail.event_id else 200, msgspec.to_builtins(mail))


_PATH, _REPLY = "/sessions/{session_id}", shapes.BusLedger
LEDGER_ROUTES = [
    bus_route("GET", f"{_PATH}/ledger", bus_ledger, READ, "Show whether a session is bound.", reply=_REPLY),
    bus_route(
        "PUT", f"{_PATH}/ledger", bus_bind, PRODUCE, "Send a session the events recorded from now on.", reply=_REPLY
    ),
    bus_route("DELETE", f"{_PATH}/ledger", bus_unbind, PRODUCE, "Send a session no more events.", reply=_REPLY),
    bus_route(
        "POST",
        f"{_PATH}/messages/{{message_id}}/record",
        bus_record,
        ("produce", "agent", "runner"),
        "Record a message as an Inbox Wire.",
        body=shapes.BusRecording,
        reply=shapes.BusMail,
        status=201,
        replies={200: "It was recorded before."},
        example={"to": "human", "priority": 2},
    ),
]
