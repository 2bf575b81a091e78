"""The subjects of a wire: the ids under which the event index lists it."""

from __future__ import annotations

from redkey.wire.envelope import AnyWire
from redkey.wire.events import PhaseCreated, SignerAdded, SignerRetired, TaskCreated, WorkflowStarted
from redkey.wire.ids import parse_stream
from redkey.wire.payload import request_key

# The subject of all requests with an idempotency key; each also has the subject of its key.
KEYED = "keyed"
# The subject of the events about a ledger's signers.
SIGNERS = "signers"


def subjects(wire: AnyWire) -> tuple[str, ...]:
    """Return the subjects of a wire: its stream's, those in its payload, and its run's."""
    stream, payload = wire.stream, wire.payload
    place = parse_stream(stream.stream_id)
    # People choose the names of projects and phases, so the stream id is used: a name could equal another subject.
    listed = [stream.stream_id if place.kind in ("project", "phase") else place.subject]
    for name in payload.named():
        if name is not None and name not in listed:
            listed.append(name)
    if type(payload) in _OF_SIGNERS:
        listed.append(SIGNERS)
    key = request_key(payload)
    if key is not None:
        listed.append(KEYED)
    kind, _, context = stream.context_id.partition(":")
    # Tasks of a queue are listed from their rows; tasks in another context are found by the context.
    if kind != "queue" and type(payload) is TaskCreated:
        listed.append(stream.context_id)
    if type(payload) is WorkflowStarted and payload.phase_id is not None:
        listed.append(f"phase:{payload.phase_id}")
    elif type(payload) is PhaseCreated:
        listed.append(f"project:{payload.project_id}")
    # Every wire of a run is found by the run's id.
    if kind == "workflow" and context not in listed:
        listed.append(context)
    if key is not None:
        listed.append(key_subject(key[0]))
    return tuple(listed)


def key_subject(idem: str) -> str:
    """Return the subject of the requests with one idempotency key.

    It has half of the hash, which keeps the index small; a lookup compares the whole hash.
    """
    return f"idem:{idem[:16]}"


_OF_SIGNERS = frozenset({SignerAdded, SignerRetired})
