"""The base of every event type: what the generated structs of `events` have in common."""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec


class WirePart(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """An object on a wire. Its fields are in canonical order and absent ones are None: encoded, it is canonical."""


class Payload(WirePart, frozen=True):
    """The payload of one event type. `TYPE` names the type on the wire; `KEYED` types carry `idem` and `body`."""

    TYPE: ClassVar[str]
    KEYED: ClassVar[bool] = False

    def named(self) -> tuple[str | None, ...]:
        """The ids in the payload under which the event index finds the wire."""
        return ()

    def as_json(self) -> dict[str, Any]:
        """The payload as JSON values, without absent fields."""
        value: dict[str, Any] = msgspec.to_builtins(self)
        return value
