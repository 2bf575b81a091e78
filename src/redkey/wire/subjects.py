"""Under which ids the event index finds a wire."""

from __future__ import annotations

from redkey.wire.envelope import AnyWire
from redkey.wire.events import SignerAdded, SignerRetired, TaskCreated
from redkey.wire.ids import parse_stream
from redkey.wire.payload import request_key

# Requests that came with an idempotency key are found under this subject, and each by its key.
KEYED = "keyed"
# Under this subject the event index finds what a ledger tells of its signers.
SIGNERS = "signers"


def subjects(wire: AnyWire) -> tuple[str, ...]:
    """The subjects of a wire's index entry: its stream's, those that its payload names, and its run's."""
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
    # The tasks of a queue are listed by their rows; those of a context that somebody named are found by it.
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
