"""What the bus knows of sessions, agents and messages, and what a command decides about them.

Plain data: `state` decides, `log` keeps it, `core` publishes it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import msgspec

from redkey.bus.envelope import Envelope

# In a guarded session the bus enforces the rules of conduct; in an open one it delivers every message.
SessionPolicy = Literal["guarded", "open"]
POLICIES: tuple[SessionPolicy, ...] = ("guarded", "open")
# Separates the workspace from the session id in a key; no id contains it.
KEY_MARK = ":"
MESSAGE = "message.send"
Write = tuple[str, tuple[Any, ...]]
# The rows of a message to this many agents are written by one statement.
MANY = 8


class AgentState(msgspec.Struct):
    """An agent of a session, connected or not."""

    number: int
    id: str
    name: str | None = None
    lead: bool = False
    status: str | None = None
    place: int = 0
    # Whether the last presence event was `agent.online`, and if not, when the agent was last online.
    online: bool = False
    seen_at: str | None = None
    # Unconfirmed messages, counted from the decision on.
    waiting: int = 0

    def as_json(self) -> dict[str, Any]:
        """Show the fields that both faces show."""
        return {"id": self.id, "name": self.name, "lead": self.lead, "status": self.status, "online": self.online}


class SessionState(msgspec.Struct):
    """A session: its agents and the number of its records."""

    number: int
    # Its id, with its workspace in front where that is not the bus's own.
    key: str
    name: str | None
    created_at: str
    updated_at: str
    workspace: str = ""
    policy: SessionPolicy = "open"
    status: Literal["open", "closed"] = "open"
    seq: int = 0
    agents: dict[str, AgentState] = {}
    # The mailbox of the person at the machine, once it has a message.
    user: AgentState | None = None

    @property
    def id(self) -> str:
        """Its id within its workspace."""
        return self.key.rpartition(KEY_MARK)[2]

    def as_json(self) -> dict[str, Any]:
        """Show the fields that both faces show."""
        names = ("id", "name", "status", "policy", "created_at", "updated_at")
        return {name: getattr(self, name) for name in names}


class SessionRecord(msgspec.Struct, frozen=True, gc=False):
    """One envelope at its position in a session."""

    seq: int
    ts: str
    id: str
    type: str
    envelope: bytes

    @property
    def line(self) -> bytes:
        """The record as JSON."""
        return b'{"seq":%d,"ts":"%s","envelope":%s}' % (self.seq, self.ts.encode(), self.envelope)


class Posted(msgspec.Struct, frozen=True, gc=False):
    """A record and its receivers."""

    record: SessionRecord
    envelope: Envelope
    receivers: tuple[AgentState, ...] = ()


class Decided(msgspec.Struct):
    """The result of a command: rows to commit together, and records to publish afterwards."""

    session: SessionState
    posted: list[Posted] = []
    writes: list[Write] = []
    repeated: bool = False


Find = Callable[[SessionState, str], Envelope | None]
Route = Callable[[SessionState, Envelope], Sequence[Envelope]]
# Refuse a message that breaks a rule of its session; return rows to be written with a message that is accepted.
Guard = Callable[[SessionState, Envelope], Sequence[Write]]
