"""Rows: the entities of a world as the store keeps them; `world_loading` loads a world from them.

A unit writes the rows of everything that its fold changed, so rows always match the ledger. Tasks are listed by queue
and state, so reading a list costs only what it shows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, TypeVar

import msgspec

from redkey.ledger.ports import Reader, Row
from redkey.readmodel.entity_bytes import encode_entity
from redkey.reducers.changes import Changes
from redkey.reducers.entities import (
    AWAITING_APPROVAL,
    Agent,
    Definition,
    Gate,
    Key,
    Message,
    Miss,
    Party,
    Phase,
    Project,
    Queue,
    Role,
    Step,
    StoredArtifact,
    Superseded,
    Task,
    Version,
    Webhook,
    Workflow,
    Workspace,
)
from redkey.reducers.world import World

# Rows of these kinds do not come from the ledger: drafts of definitions (`services.definitions`), stored replies for
# repeated requests (`services.answers`), how far each webhook has got what it wants (`services.outbox`), and the
# one-time code and the sessions of a person (`services.people`).
DRAFT, ANSWER, DELIVERY, LOGIN = "draft", "answer", "delivery", "login"
# Nor do these: tasks in the order of their A2A status (`readmodel.a2a_list`), read from the ledger when asked for.
A2A_TASK, A2A_CONTEXT = "a2a", "a2a_context"
# Nor do these: what became of the messages of a network (`services.ordered.messages`), transactions whose fees are not
# booked yet (`services.ordered.fees`), and bodies that other servers have (`services.ordered.bodies`).
NETWORK, SENT, WANTED = "network", "sent", "wanted"
BESIDE = frozenset({DRAFT, ANSWER, A2A_TASK, A2A_CONTEXT, DELIVERY, LOGIN, NETWORK, SENT, WANTED})
LIVE_STATES = ("created", "available", "claimed", "working", "blocked")
ENDED_STATES = (AWAITING_APPROVAL, "completed", "failed", "cancelled")
_PAGE = 1000

E = TypeVar("E")


class VoidRecord(msgspec.Struct, frozen=True):
    """A record without effect, and the reason; the key of its row is its sequence."""

    reason: str


KINDS: dict[str, type[Any]] = {
    "task": Task,
    "agent": Agent,
    "role": Role,
    "queue": Queue,
    "message": Message,
    "key": Key,
    "party": Party,
    "miss": Miss,
    "workspace": Workspace,
    "workflow": Workflow,
    "step": Step,
    "gate": Gate,
    "definition": Definition,
    "version": Version,
    "webhook": Webhook,
    "project": Project,
    "phase": Phase,
    "artifact": StoredArtifact,
    "superseded": Superseded,
    "void": VoidRecord,
}
_DECODERS = {kind: msgspec.json.Decoder(entity) for kind, entity in KINDS.items()}


def task_list(queue_id: str, state: str) -> str:
    """Return the name of the list of a queue's tasks in one state."""
    return f"{queue_id}/{state}"


def place(priority: int, sequence: int) -> int:
    """Return the place in a list that is sorted by priority, then by age."""
    return priority << 48 | sequence


def take_rows(world: World, changes: Changes) -> list[Row]:
    """Return the rows of everything that changed since the last call."""
    rows = [_row(world, kind, key, entity) for (kind, key), entity in changes.rows.items()]
    changes.rows.clear()
    return rows


def miss_key(task_id: str, agent_id: str) -> str:
    """Return the key of the row with an agent's last miss or rejection for a task."""
    return f"{task_id}/{agent_id}"


def message_list(to: str, *, read: bool) -> str:
    """Return the name of the list of read or unread messages to an agent (`agent:<id>`) or to the humans."""
    box = to if to.startswith("agent:") else "human"
    return f"{box}/{'read' if read else 'unread'}"


def _row(world: World, kind: str, key: str, gone: Any) -> Row:
    if kind == "task":
        task = gone or world.tasks[key]
        position = place(task.priority, task.sequence)
        # The first rules list it as completed while its gate is open; raising the rules writes these rows again.
        state = task.shown_state if world.workspace.rules > 1 else task.state
        return Row(kind, key, encode_entity(task), task_list(task.queue_id, state), position)
    if kind == "agent":
        return Row(kind, key, encode_entity(world.agents[key]))
    if kind == "miss":
        return Row(kind, key, encode_entity(gone))
    if kind == "message":
        message = gone or world.messages[key]
        position = place(message.priority, message.sequence)
        return Row(kind, key, encode_entity(message), message_list(message.to, read=message.read_at > 0), position)
    if kind == "workspace":
        return Row(kind, key, encode_entity(world.workspace))
    if kind == "workflow":
        return Row(kind, key, encode_entity(gone), "ended" if gone.ended_at else "live", gone.sequence)
    if kind == "step":
        return Row(kind, key, encode_entity(gone), key.rpartition("/")[0], gone.index)
    if kind == "definition":
        return Row(kind, key, encode_entity(gone), "published", gone.sequence)
    if kind == "version":
        return Row(kind, key, encode_entity(gone), gone.definition_id, gone.version)
    if kind == "party":
        return Row(kind, key, encode_entity(gone), "removed" if gone.removed_at else "present", gone.sequence)
    if kind == "webhook":
        return Row(kind, key, encode_entity(gone), "removed" if gone.removed else "present", gone.sequence)
    if kind == "gate":
        return Row(kind, key, encode_entity(gone), "open" if gone.state == "open" else "closed", gone.sequence)
    if kind == "project":
        return Row(kind, key, encode_entity(world.projects[key]), "projects", world.projects[key].sequence)
    if kind == "phase":
        return Row(
            kind, key, encode_entity(world.phases[key]), world.phases[key].project_id, world.phases[key].sequence
        )
    if kind in ("artifact", "superseded"):
        return Row(kind, key, encode_entity(gone))
    if kind == "role":
        return Row(kind, key, encode_entity(world.roles.get(key) or gone))
    if kind == "key":
        found = world.keys[key]
        return Row(kind, key, encode_entity(found), *(("person", found.created_at) if found.person else ()))
    return Row(kind, key, encode_entity(world.queues[key]))


def void_row(sequence: int, reason: str) -> Row:
    """Build the row of a void record."""
    return Row("void", void_key(sequence), encode_entity(VoidRecord(reason)))


def void_key(sequence: int) -> str:
    """Return the key of a void record's row: its sequence, so that rows are in the order of the ledger."""
    return f"{sequence:016d}"


def entity(row: Row) -> Any:
    """Decode the entity of a row."""
    return _DECODERS[row.kind].decode(row.body)


def pages(reader: Reader, topic: str, kind: str, listed: str | None = None) -> Iterator[Any]:
    """Yield every entity of a kind, or of one list, a page at a time."""
    return map(entity, pages_of(reader, topic, kind, listed))


def pages_of(reader: Reader, topic: str, kind: str, listed: str | None = None) -> Iterator[Row]:
    """Yield every row of a kind, or of one list, a page at a time."""
    return chain.from_iterable(row_pages(reader, topic, kind, listed))


def row_pages(reader: Reader, topic: str, kind: str, listed: str | None = None) -> Iterator[Sequence[Row]]:
    """Yield the pages of the rows of a kind, or of one list."""
    after = (0, "")
    while rows := reader.rows(topic, kind, listed, after, _PAGE):
        yield rows
        if len(rows) < _PAGE:
            return
        after = (rows[-1].position, rows[-1].key)
