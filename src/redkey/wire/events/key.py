"""The payloads of `key.*` events.

Written by `python -m tools.events` from the schemas of Agent Wire 1.1; `make verify` proves it current.
"""

from __future__ import annotations

from typing import ClassVar, final

from redkey.wire.events.shared import Ref
from redkey.wire.payload import Payload


@final
class KeyCreated(Payload, frozen=True, kw_only=True):
    """A key exists; its secret is nowhere, and the hash of it is here."""

    TYPE: ClassVar[str] = "key.created"
    KEYED: ClassVar[bool] = True

    agent_id: str | None = None
    body: str | None = None
    idem: str | None = None
    key_hash: str | None = None
    key_id: str
    name_ref: Ref | None = None
    prefix: str
    scopes: tuple[str, ...]

    def named(self) -> tuple[str | None, ...]:
        return (self.agent_id,)


@final
class KeyRevoked(Payload, frozen=True, kw_only=True):
    """The key opens nothing any more."""

    TYPE: ClassVar[str] = "key.revoked"
    KEYED: ClassVar[bool] = True

    body: str | None = None
    idem: str | None = None
    key_id: str


@final
class KeyRecovered(Payload, frozen=True, kw_only=True):
    """A key was made from the data directory itself, by somebody who was locked out; its secret is nowhere."""

    TYPE: ClassVar[str] = "key.recovered"

    key_hash: str | None = None
    key_id: str
    prefix: str
    scopes: tuple[str, ...]
