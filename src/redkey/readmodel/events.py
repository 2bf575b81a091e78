"""Events as the public API shows them: the receipt's fields and the wire's payload, in camelCase.

`ledger.event` defines how an event looks, for wires of unknown origin. Here wires are typed values of this server, and
what is the same for all events of a type is computed once.
"""

from __future__ import annotations

from typing import Any, NamedTuple, get_args, get_type_hints

import msgspec

from redkey.ledger.event import subject_kind
from redkey.ledger.record import iso_time
from redkey.shapes.events import Event, Party
from redkey.shapes.fields import camel
from redkey.wire.envelope import AnyWire
from redkey.wire.events import AnyPayload
from redkey.wire.ids import SUBJECT_FIELD, event_id, parse_stream

# Payload fields for the server's own use; they are not shown.
_INTERNAL = frozenset({"idem", "body"})
_STREAM_FIELDS = {kind: (kind, camel(field)) for kind, field in SUBJECT_FIELD.items()}
_NO_FIELD = ("", "")


class _Shape(NamedTuple):
    """How the events of one type are shown."""

    # Name, name as shown, and whether the value is an object with fields to be renamed too.
    fields: tuple[tuple[str, str, bool], ...]
    subject: str
    # The payload field with the subject or the agent, if the payload has one.
    subject_field: str
    agent_field: str
    # Who the actor is: the claiming agent, even if another party wrote the wire; or the agent that the stream is about.
    is_claim: bool
    is_of_agent: bool


class _Shapes(dict[type[AnyPayload], _Shape]):
    """How the events of each type are shown, computed when the first one comes."""

    def __missing__(self, kind: type[AnyPayload]) -> _Shape:
        types, event = get_type_hints(kind), kind.TYPE
        names = [name for name in kind.__struct_fields__ if name not in _INTERNAL]
        subject = subject_kind(event)
        shape = self[kind] = _Shape(
            tuple((name, camel(name), any(map(_is_renamed, get_args(types[name]) or [types[name]]))) for name in names),
            subject,
            f"{subject}_id" if f"{subject}_id" in names else "",
            "agent_id" if "agent_id" in names else "",
            event.startswith("task.claim"),
            event.startswith("agent."),
        )
        return shape


def _is_renamed(kind: object) -> bool:
    """True for an object some of whose fields have names of several words."""
    if not (isinstance(kind, type) and issubclass(kind, msgspec.Struct)):
        return False
    return any("_" in name for name in kind.__struct_fields__)


_shapes = _Shapes()


def show(wire: AnyWire, sequence: int, timestamp: int) -> Event:
    """Show a wire as the event at its place in the ledger."""
    payload = wire.payload
    shape, stream = _shapes[type(payload)], parse_stream(wire.stream.stream_id)
    kind, shown_as = _STREAM_FIELDS.get(stream.kind, _NO_FIELD)
    data: dict[str, Any] = {}
    if kind:
        # Only the stream names it, and readers of events should not have to parse stream ids.
        data[shown_as] = stream.subject
    if stream.attempt:
        data["attempt"] = stream.attempt
    for name, shown_as, is_object in shape.fields:
        value = getattr(payload, name)
        if value is not None:
            data[shown_as] = _renamed(msgspec.to_builtins(value)) if is_object else value
    named = getattr(payload, shape.subject_field) if shape.subject_field else None
    if named is None and shape.subject == kind:
        named = stream.subject
    subject = Party(type=shape.subject, id=named) if named is not None else Party(type=stream.kind, id=stream.subject)
    return Event(
        event_id=event_id(wire.wire_id),
        type=wire.type,
        sequence=sequence,
        timestamp=iso_time(timestamp),
        actor=_actor(wire, shape, stream.subject if kind == "agent" else None),
        subject=subject,
        data=data,
        causation_id=event_id(wire.stream.causation_id) if wire.stream.causation_id is not None else "",
        correlation_id=wire.stream.correlation_id or "",
        extensions=wire.extensions,
    )


def _actor(wire: AnyWire, shape: _Shape, about: str | None) -> Party:
    """Return the actor, as `ledger.event` does; `about` is the agent of the wire's stream."""
    kind, _, name = wire.sender.partition(":")
    if not shape.is_claim and kind not in ("agent", "runner"):
        return Party(type=kind, id=name or kind)
    named = getattr(wire.payload, shape.agent_field) if shape.agent_field else None
    if named is None and (shape.is_claim or shape.is_of_agent):
        named = about
    acted = "agent" if named or shape.is_claim else kind
    return Party(type=acted, id=named or name or kind)


def _renamed(value: Any) -> Any:
    if type(value) is dict:
        return {camel(name): _renamed(item) for name, item in value.items()}
    return value
