"""Events as the public API shows them: the receipt's fields and the wire's payload, in camelCase."""

from __future__ import annotations

from typing import Any

from redkey.ledger.event import event_at
from redkey.shapes.events import Event
from redkey.shapes.fields import camel
from redkey.wire.ids import SUBJECT_FIELD, parse_stream

# What a payload holds for the server's own use.
_INTERNAL = frozenset({"idem", "body"})


def show(wire: dict[str, Any], sequence: int, timestamp: int) -> Event:
    """The event that a wire is at its place in the order."""
    head = event_at(wire, sequence, timestamp)
    stream = parse_stream(wire["stream"]["stream_id"])
    data: dict[str, Any] = {}
    field = SUBJECT_FIELD.get(stream.kind)
    if field is not None:
        # The stream says it, and who reads events should not have to take stream ids apart.
        data[camel(field)] = stream.subject
    if stream.attempt:
        data["attempt"] = stream.attempt
    data.update((camel(name), _shown(value)) for name, value in wire["payload"].items() if name not in _INTERNAL)
    return Event(
        event_id=head.event_id,
        type=head.type,
        sequence=head.sequence,
        timestamp=head.timestamp,
        actor=head.actor,
        subject=head.subject,
        data=data,
    )


def _shown(value: Any) -> Any:
    if type(value) is dict:
        return {camel(name): _shown(item) for name, item in value.items()}
    if type(value) is list:
        return [_shown(item) for item in value]
    return value
