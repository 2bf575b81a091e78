"""The subjects of a wire: the ids by which the event index finds it."""

from __future__ import annotations

from redkey.wire.envelope import AnyWire
from redkey.wire.events import SignerAdded, SignerRetired, TaskCreated
from redkey.wire.ids import parse_stream
from redkey.wire.payload import request_key

# The subject of all requests with an idempotency key; each also has the subject of its key.
KEYED = "keyed"
# The subject of the events about a ledger's signers.
SIGNERS = "signers"


def subjects(wire: AnyWire) -> tuple[str, ...]:
    """Return the subjects of a wire: its stream's, those in its payload, and its run's."""
    stream, payload = wire.stream, wire.payload
    found = [parse_stream(stream.stream_id).subject]
    for name in payload.named():
        if name is not None and name not in found:
            found.append(name)
    if type(payload) in _OF_SIGNERS:
        found.append(SIGNERS)
    key = request_key(payload)
    if key is not None:
        found.append(KEYED)
    kind, _, context = stream.context_id.partition(":")
    # The tasks of a queue are listed by their rows; those of a context that a caller named are found by it.
    if kind != "queue" and type(payload) is TaskCreated:
        found.append(stream.context_id)
    # Everything that happens in a run is found by the run.
    if kind == "workflow" and context not in found:
        found.append(context)
    if key is not None:
        found.append(key_subject(key[0]))
    return tuple(found)


def key_subject(idem: str) -> str:
    """The subject of the requests under one idempotency key. Half of the hash keeps the index small: whoever looks a
    request up compares the whole."""
    return f"idem:{idem[:16]}"


_OF_SIGNERS = frozenset({SignerAdded, SignerRetired})
