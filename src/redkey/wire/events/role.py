"""The payloads of `role.*` events.

Written by `python -m tools.events` from the schemas of Agent Wire 1.1; `make verify` proves it current.
"""

from __future__ import annotations

from typing import ClassVar, final

from redkey.wire.events.shared import Ref
from redkey.wire.payload import Payload


@final
class RoleCreated(Payload, frozen=True, kw_only=True):
    """A role exists."""

    TYPE: ClassVar[str] = "role.created"
    KEYED: ClassVar[bool] = True

    body: str | None = None
    capabilities: tuple[str, ...] | None = None
    idem: str | None = None
    role_id: str | None = None
    role_ref: Ref | None = None


@final
class RoleGranted(Payload, frozen=True, kw_only=True):
    """The agent holds the role."""

    TYPE: ClassVar[str] = "role.granted"
    KEYED: ClassVar[bool] = True

    agent_id: str
    body: str | None = None
    idem: str | None = None
    role_id: str | None = None

    def named(self) -> tuple[str | None, ...]:
        return (self.agent_id,)


@final
class RoleRevoked(Payload, frozen=True, kw_only=True):
    """The agent does not hold the role any more."""

    TYPE: ClassVar[str] = "role.revoked"
    KEYED: ClassVar[bool] = True

    agent_id: str
    body: str | None = None
    idem: str | None = None
    role_id: str | None = None

    def named(self) -> tuple[str | None, ...]:
        return (self.agent_id,)
