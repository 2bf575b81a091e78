"""Bodies, queries and replies of the HTTP face, used by the handlers and the OpenAPI document."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from redkey.bus.envelope import USER, Ack
from redkey.bus.model import SessionPolicy
from redkey.bus.runtime.events import Message
from redkey.shapes.fields import Extensions

Status = Annotated[str, msgspec.Meta(max_length=100)]
Place = Annotated[int, msgspec.Meta(ge=0, le=1 << 39)]
Count = Annotated[int, msgspec.Meta(ge=0, le=100_000)]
Seconds = Annotated[float, msgspec.Meta(ge=0, le=60)]


class Query(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A query; unknown parameters are refused."""


class SessionsQuery(Query, frozen=True):
    """Which sessions are listed."""

    status: Literal["open", "closed", "all"] = "open"
    after: str = ""
    limit: Count = 1000


class EventsQuery(Query, frozen=True):
    """Which events are listed: the last ones, those before a position, or the next ones after one."""

    limit: Count = 500
    after: Place | None = None
    before: Place | None = None
    # With `after`: wait this many seconds for the first one.
    wait: Seconds = 0


class BusStreamQuery(Query, frozen=True):
    """Where a stream begins, and whether it continues after the present events."""

    after: Place | None = None
    follow: bool = True


class MailQuery(Query, frozen=True):
    """Which waiting messages are listed; with `wait`, as soon as there is one."""

    limit: Count = 100
    after: Place = 0
    wait: Seconds = 0


class NewBusSession(msgspec.Struct, frozen=True):
    """The fields of a new session."""

    id: str | None = None
    name: str | None = None
    policy: SessionPolicy = "open"
    # Return the open session with this name, if there is one.
    reuse: bool = False


class NewBusAgent(msgspec.Struct, frozen=True):
    """The fields of a new agent."""

    id: str | None = None
    name: str | None = None
    lead: bool = False
    status: Status | None = None


class BusAgentChange(msgspec.Struct, frozen=True):
    """The fields of an agent that may be changed; absent fields stay."""

    name: str | None = None
    lead: bool | None = None
    status: Status | None = None


class BusAgentOrder(msgspec.Struct, frozen=True):
    """All agents of a session, each once."""

    agent_ids: list[str]


class NewBusMessage(msgspec.Struct, frozen=True):
    """A message to some agents, or to the leads or all agents of the session."""

    text: str = ""
    agent_ids: list[str] = []
    to: Literal["leads", "agents"] | None = None
    src: str = USER
    # user, reply, control or system; another kind is delivered unchanged, and read as user.
    kind: str = "user"
    conversation_id: str | None = None
    conversation_owner: str | None = None
    parent_message_id: str | None = None
    reply_to: str | None = None
    ack: Ack | None = None


class BusMessageTaken(msgspec.Struct, frozen=True):
    """Which agent confirms a message."""

    agent_id: str


class BusRecording(msgspec.Struct, frozen=True):
    """Whose inbox gets the message: an agent, a role or human. Without `to` it is the receiver on the bus."""

    to: str | None = None
    priority: Annotated[int, msgspec.Meta(ge=1, le=3)] = 3
    extensions: Extensions | None = None


# Replies.


class BusHealth(msgspec.Struct, frozen=True):
    """The bus answers."""

    status: Literal["ok"]


class BusSession(msgspec.Struct, frozen=True):
    """A session."""

    id: str
    name: str | None
    status: Literal["open", "closed"]
    policy: SessionPolicy
    created_at: str
    updated_at: str


class BusAgent(msgspec.Struct, frozen=True):
    """An agent of a session."""

    id: str
    name: str | None
    lead: bool
    status: str | None
    online: bool


class BusDelivery(msgspec.Struct, frozen=True):
    """The state of a message for one agent."""

    agent_id: str
    state: Literal["waiting", "delivered", "acknowledged"]


class BusMessage(Message, frozen=True, kw_only=True):
    """A message. `deliveries` is present when one message is read, `seq` when it waits for an agent."""

    # Always part of a reply.
    dst: str | None
    parent_message_id: str | None
    reply_to: str | None
    sender_name: str | None
    ack: Ack | None
    deliveries: list[BusDelivery] | msgspec.UnsetType = msgspec.UNSET
    seq: int | msgspec.UnsetType = msgspec.UNSET


class BusEvent(msgspec.Struct, frozen=True):
    """A record of a session: `payload` is `{seq, ts, envelope}`."""

    id: str
    session_id: str
    agent_id: str
    type: str
    event_type: str
    created_at: str
    payload: dict[str, Any]


class BusSessionEvent(BusEvent, frozen=True):
    """A session that was created, changed or closed: the record, and the session as it is now."""

    session: BusSession | None


class BusLedger(msgspec.Struct, frozen=True):
    """Whether a session receives the events of its workspace."""

    bound: bool
    workspace_id: str


class BusMail(msgspec.Struct, frozen=True):
    """The inbox message that a recorded message became."""

    message_id: str
    to: str
    event_id: str


class BusError(msgspec.Struct, frozen=True):
    """Why the bus refused a request."""

    error: str
    code: str
