"""The payloads of `agent.*` events.

Written by `python -m tools.events` from the schemas of Agent Wire 1.1; `make verify` proves it current.
"""

from __future__ import annotations

from typing import ClassVar, final

from redkey.wire.events.shared import Ref
from redkey.wire.payload import Payload


@final
class AgentRegistered(Payload, frozen=True, kw_only=True):
    """An agent is known."""

    TYPE: ClassVar[str] = "agent.registered"
    KEYED: ClassVar[bool] = True

    agent_id: str | None = None
    body: str | None = None
    capabilities: tuple[str, ...]
    card_ref: Ref
    idem: str | None = None
    slug: str
    verification: str

    def named(self) -> tuple[str | None, ...]:
        return (self.agent_id,)


@final
class AgentUpdated(Payload, frozen=True, kw_only=True):
    """What is known of an agent changed; `add` keeps the capabilities it had."""

    TYPE: ClassVar[str] = "agent.updated"
    KEYED: ClassVar[bool] = True

    active: bool | None = None
    add: bool | None = None
    agent_id: str | None = None
    body: str | None = None
    capabilities: tuple[str, ...] | None = None
    card_ref: Ref | None = None
    idem: str | None = None
    slug: str | None = None
    verification: str | None = None

    def named(self) -> tuple[str | None, ...]:
        return (self.agent_id,)


@final
class AgentDeactivated(Payload, frozen=True, kw_only=True):
    """The agent may not claim any more."""

    TYPE: ClassVar[str] = "agent.deactivated"
    KEYED: ClassVar[bool] = True

    agent_id: str | None = None
    body: str | None = None
    idem: str | None = None

    def named(self) -> tuple[str | None, ...]:
        return (self.agent_id,)


@final
class AgentLost(Payload, frozen=True, kw_only=True):
    """Nothing was heard of the agent for some time."""

    TYPE: ClassVar[str] = "agent.lost"

    agent_id: str | None = None

    def named(self) -> tuple[str | None, ...]:
        return (self.agent_id,)


@final
class AgentHeartbeat(Payload, frozen=True, kw_only=True):
    """The agent is there, and has this much room."""

    TYPE: ClassVar[str] = "agent.heartbeat"
    KEYED: ClassVar[bool] = True

    agent_id: str | None = None
    body: str | None = None
    capacity: int | None = None
    idem: str | None = None
    in_use: int | None = None

    def named(self) -> tuple[str | None, ...]:
        return (self.agent_id,)
