"""The payloads of `party.*` events.

Written by `python -m tools.events` from the schemas of Agent Wire 1.1; `make verify` proves it current.
"""

from __future__ import annotations

from typing import ClassVar, final

from redkey.wire.payload import Payload


@final
class PartyAdded(Payload, frozen=True, kw_only=True):
    """Somebody else may write on this topic: the account that pays for its records. With an agent it writes as that
    agent alone, without one it is another server of the operator.
    """

    TYPE: ClassVar[str] = "party.added"
    KEYED: ClassVar[bool] = True

    agent_id: str | None = None
    body: str | None = None
    idem: str | None = None
    payer: str

    def named(self) -> tuple[str | None, ...]:
        return (self.agent_id,)


@final
class PartyRemoved(Payload, frozen=True, kw_only=True):
    """An account may write on this topic no more; its records from here on are void."""

    TYPE: ClassVar[str] = "party.removed"
    KEYED: ClassVar[bool] = True

    body: str | None = None
    idem: str | None = None
    payer: str
