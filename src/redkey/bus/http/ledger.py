"""The bridge by HTTP: bind a session to its workspace's ledger, and record a message as an Inbox Wire."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, Any

import msgspec

from redkey.bus.bridge import Bridge
from redkey.bus.http.call import Answer, Call
from redkey.commands.caller import Caller


class Recording(msgspec.Struct, frozen=True):
    """Who gets the message on the ledger: an agent, a role or human; its receiver when nobody is named."""

    to: str | None = None
    priority: Annotated[int, msgspec.Meta(ge=1, le=3)] = 3


def routes(bridge: Bridge) -> list[tuple[str, str, Callable[..., Awaitable[Answer]], Any]]:
    """The routes that a bus beside a ledger has."""

    async def read(call: Call) -> Answer:
        return Answer(200, {"bound": bridge.is_bound(call.session), "workspace_id": call.session.workspace})

    async def bind(call: Call) -> Answer:
        await bridge.bind(call.open_session)
        return await read(call)

    async def unbind(call: Call) -> Answer:
        await bridge.unbind(call.open_session)
        return await read(call)

    async def record(call: Call, body: Recording) -> Answer:
        who = call.caller
        caller = Caller(who.workspace, who.key_id, who.scopes, who.agent_id)
        mail = await bridge.record(call.session, caller, call.names["message_id"], body.to, body.priority)
        return Answer(201 if mail.event_id else 200, msgspec.to_builtins(mail))

    path = "/sessions/{session_id}"
    return [
        ("GET", f"{path}/ledger", read, None),
        ("PUT", f"{path}/ledger", bind, None),
        ("DELETE", f"{path}/ledger", unbind, None),
        ("POST", f"{path}/messages/{{message_id}}/record", record, Recording),
    ]
