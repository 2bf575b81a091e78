"""A wire as a typed value: the envelope of Agent Wire 1.1 around the payload struct of its type (`events`).

Fields are in canonical order and absent ones are None, so that msgspec's encoder writes RFC 8785 bytes in one pass.
`validate` checks wires; this module reads only valid ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Generic, TypeVar

import msgspec

from redkey.errors import UpgradeNeeded
from redkey.wire.canonical import canonical
from redkey.wire.catalogue import VERSION, catalogue
from redkey.wire.events import PAYLOADS, AnyPayload, WireState, WireStream
from redkey.wire.payload import WirePart

P = TypeVar("P")


class Wire(WirePart, Generic[P], frozen=True, kw_only=True):
    """One Agent Wire 1.1 message."""

    extensions: dict[str, Any] | None = None
    payload: P
    sender: str
    state: WireState | None = None
    stream: WireStream
    ts: str
    type: str
    wire: str
    wire_id: str

    def as_json(self) -> dict[str, Any]:
        """Return the wire as JSON values, without absent fields."""
        value: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(self))
        return value


AnyWire = Wire[AnyPayload]


class _Typed(msgspec.Struct):
    """The part of a wire that has its type."""

    type: str


# Canonical bytes end with the type, the version and the id, whose length is fixed: so the type is found quickly.
_BEFORE_TYPE = b',"type":"'
_AFTER_TYPE = len(f'","wire":"{VERSION}","wire_id":"wire_00000000000000000000000000"}}')
_type_of = msgspec.json.Decoder(_Typed).decode

STATES: Mapping[str, WireState | None] = {
    name: WireState(category=event.category, terminal=event.terminal) if event.has_state else None
    for name, event in catalogue().items()
}


class _Decoders(dict[bytes, Callable[[bytes], AnyWire]]):
    """The decoder of each event type, created for its first wire."""

    def __missing__(self, name: bytes) -> Callable[[bytes], AnyWire]:
        decoder = self[name] = msgspec.json.Decoder(_kind(name.decode("ascii", "replace"))).decode
        return decoder


@cache
def _kind(name: str) -> type[AnyWire]:
    if name not in PAYLOADS:
        raise UpgradeNeeded(f"{name[:40]!r} is not an event type that this version knows")
    return Wire[PAYLOADS[name]]  # type: ignore[valid-type]


_decoders = _Decoders()


def wire_of(data: bytes) -> AnyWire:
    """Decode a wire from valid bytes; raise UpgradeNeeded if its type is unknown."""
    end = len(data) - _AFTER_TYPE
    start = data.rfind(_BEFORE_TYPE, 0, max(0, end)) + len(_BEFORE_TYPE)
    decoder = _decoders.get(data[start:end])
    if decoder is None:
        # Keys in another order, or the first wire of its type.
        decoder = _decoders[_type_of(data).type.encode()]
    return decoder(data)


def wire_from(value: Mapping[str, Any]) -> AnyWire:
    """Convert valid JSON values to a wire; raise UpgradeNeeded if its type is unknown."""
    try:
        return msgspec.convert(value, _kind(value["type"]))
    except msgspec.ValidationError:
        # A schema accepts 1.0 as a whole number, and canonical bytes write it as one.
        return wire_of(canonical(value))
