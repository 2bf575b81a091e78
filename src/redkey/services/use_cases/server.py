"""The server itself: whether it can serve. Its liveness is answered beside the declaration (`redkey.shapes.server`)."""

from __future__ import annotations

import re

from redkey import __version__
from redkey.commands.decision import Refused, wrong
from redkey.ledger.record import iso_time
from redkey.services.caller import Caller
from redkey.services.use_case import use_case
from redkey.shapes import server
from redkey.shapes.server import FoundIds, Readiness
from redkey.wire.ids import event_id, wire_id_of

# The prefixes of ids -> the kind of their rows.
_KINDS = {"task_": "task", "wf_": "workflow", "gate_": "gate", "agt_": "agent", "msg_": "message", "whk_": "webhook"}
_CLAIM = "clm_"
# Eight characters of an id are a second: then no more is looked through than what was written in one.
_EVENT = re.compile(r"evt_[0-9A-Z]{8,26}", re.ASCII)
_MOST_IDS = 10


@use_case(server.READYZ)
async def readyz(caller: Caller) -> Readiness:
    """Answer that the server can serve."""
    store = caller.means.store
    if caller.means.coordinator.stopping:
        raise Refused(503, "stopping", "The server is stopping.")
    store.topics()
    await caller.in_thread(store.check_writable)
    now = iso_time(caller.means.clock.wall())
    return Readiness(store=store.engine, status="ready", version=__version__, time=now)


@use_case(server.FIND_IDS)
def find_ids(caller: Caller, prefix: str) -> FoundIds:
    """List ids that begin with a prefix, so that people need not type whole ones; of claims, those that hold a task."""
    store, topic = caller.means.store, caller.topic
    if prefix.startswith(_CLAIM):
        held = caller.means.coordinator.peek(topic).claims
        return _first(sorted(claim for claim in held if claim.startswith(prefix)))
    if _EVENT.fullmatch(prefix):
        wires = store.wire_ids(topic, wire_id_of(prefix), _MOST_IDS + 1)
        return _first([event_id(wire_id) for wire_id in wires])
    if prefix.startswith("evt_"):
        raise wrong("prefix_short", "/prefix", "the beginning of an event's id has eight characters or more after evt_")
    kind = next((kind for start, kind in _KINDS.items() if prefix.startswith(start)), None)
    if kind is None:
        raise wrong("prefix_invalid", "/prefix", f"an id begins with {', '.join([*_KINDS, _CLAIM, 'evt_'])}")
    exact = store.row(topic, kind, prefix)
    if exact is not None:
        return FoundIds(items=(exact.key,), complete=True)
    # Rows are in the order of their keys, so those with the prefix come right after it.
    rows = store.rows(topic, kind, None, (0, prefix), _MOST_IDS + 1)
    return _first([row.key for row in rows if row.key.startswith(prefix)])


def _first(found: list[str]) -> FoundIds:
    return FoundIds(items=tuple(found[:_MOST_IDS]), complete=len(found) <= _MOST_IDS)
