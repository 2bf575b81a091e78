"""The server itself: can it serve. That it is alive is said beside the declaration (`redkey.shapes.server`)."""

from __future__ import annotations

from redkey.commands.decision import Refused, wrong
from redkey.services.caller import Caller
from redkey.services.use_case import use_case
from redkey.shapes import server
from redkey.shapes.server import FoundIds, Readiness

# How ids begin -> the kind of their rows.
_KINDS = {"task_": "task", "wf_": "workflow", "gate_": "gate", "agt_": "agent"}
_MOST_IDS = 10


@use_case(server.READYZ)
async def readyz(caller: Caller) -> Readiness:
    """The server can serve."""
    store = caller.means.store
    if caller.means.coordinator.stopping:
        raise Refused(503, "stopping", "The server is stopping.")
    store.topics()
    await caller.in_thread(store.check_writable)
    return Readiness(store=store.engine, status="ready")


@use_case(server.FIND_IDS)
def find_ids(caller: Caller, prefix: str) -> FoundIds:
    """Ids of tasks, runs, gates and agents that begin with a prefix: people need not type whole ones."""
    kind = next((kind for start, kind in _KINDS.items() if prefix.startswith(start)), None)
    if kind is None:
        raise wrong("prefix_invalid", "/prefix", f"an id begins with {', '.join(_KINDS)}")
    store, topic = caller.means.store, caller.topic
    exact = store.row(topic, kind, prefix)
    if exact is not None:
        return FoundIds(items=(exact.key,), complete=True)
    # Rows are in the order of their keys, and what begins with a prefix comes right after it.
    rows = store.rows(topic, kind, None, (0, prefix), _MOST_IDS + 1)
    found = tuple(row.key for row in rows if row.key.startswith(prefix))
    return FoundIds(items=found[:_MOST_IDS], complete=len(found) <= _MOST_IDS)
