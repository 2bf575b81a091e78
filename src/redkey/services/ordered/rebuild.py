"""Rebuild an ordered workspace from the messages of its topic alone, in a store that holds nothing of it yet."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby

import msgspec

from redkey.errors import LedgerError
from redkey.ledger.network import projected_topic
from redkey.ledger.ports import Content, SequencedStore
from redkey.ledger.record import Record
from redkey.reducers.world import World
from redkey.services.log_facts import LOADED
from redkey.services.ordered.messages import left_out
from redkey.services.ordered.projection import NoIds, Projection
from redkey.services.workspaces import setting_of

_PAGE = 1000


class Rebuilt(msgspec.Struct):
    """The rebuilt workspace and its local topic, how much was read, and what left no record and why."""

    workspace_id: str
    topic: str
    messages: int
    records: int
    left_out: dict[str, int]


def rebuild(
    store: SequencedStore,
    network: str,
    topic: str,
    pages: Iterable[Sequence[Record]],
    structures: Mapping[str, Content],
) -> Rebuilt:
    """Project the messages of a topic into a store; StructureMissing if one names structure that is not available.

    Bodies are not on the network. The store records that they may be missing, so that `fsck` does not report them.
    """
    local, world = store.create_topic(projected_topic(network, topic)), World()
    for page in pages:
        with store.write(local) as unit:
            # Pinned when a message names one; others are not kept.
            work = Projection(unit, local, world, NoIds())
            work.at_hand = structures
            work.project(page)
            work.finish()
            workspace_id = world.workspace.workspace_id
            if workspace_id:
                unit.put_fact(local, setting_of(workspace_id), local)
                unit.put_fact(local, LOADED + local, str(world.sequence))
                unit.put_due(local, 1)
            messages = work.cursor.sequence
    if not world.workspace.workspace_id:
        text = f"topic {topic} of {network} holds no workspace; check the network and the topic"
        raise LedgerError(text, code="workspace_missing")
    return Rebuilt(world.workspace.workspace_id, local, messages, world.sequence, _reasons(store, local))


def _reasons(store: SequencedStore, topic: str) -> dict[str, int]:
    """Count the messages that left no record, by reason."""
    found: dict[str, int] = {}
    after = 0
    while rows := left_out(store, topic, after, _PAGE):
        for reason, same in groupby(sorted(row.void for row in rows)):
            found[reason] = found.get(reason, 0) + len([*same])
        after = rows[-1].sequence
    return found
