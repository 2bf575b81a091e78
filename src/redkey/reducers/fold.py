"""The fold: one record into the world. Total, deterministic, right for every prefix; no I/O, no clock, no chance."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from redkey.errors import UpgradeNeeded
from redkey.ledger.record import LOCAL_PAYER
from redkey.reducers import claim, definition, gate, registry, task, workflow
from redkey.reducers.changes import Changes
from redkey.reducers.event import Event, event
from redkey.reducers.parties import is_log, judge
from redkey.reducers.registry import acted
from redkey.reducers.replay import DUPLICATE_WIRE
from redkey.reducers.world import LOST_AFTER_NANOSECONDS, RULES, World

Void = str | None

# An agent's acts are noted this often at most, so that a busy one does not rewrite its row for every wire.
_ACT_GRAIN_NANOSECONDS = LOST_AFTER_NANOSECONDS // 9


# Types that came after the first version, and the rules that they came with.
_SINCE = {"workspace.policy_set": 2, "party.added": 2, "party.removed": 2}

# What may let an agent claim that could not before, without a task becoming available.
_REOPENING = frozenset({"role.granted", "agent.updated", "queue.updated", "workflow.resumed"})


def fold(
    world: World,
    changes: Changes,
    wire: dict[str, Any],
    sequence: int,
    timestamp: int,
    payer: str,
    structure: dict[str, Any] | None = None,
    *,
    copied: bool = False,
) -> Void:
    """Fold the record at `sequence` into the world; the reason when it is void. `changes` takes what comes with it.

    The wire is valid by schema (`readmodel.ingest` sees to it where others than the log write). Nothing that it says
    raises an error; only newer rules, which the log alone can raise, stop a reader that does not know them.

    `copied` is told by whoever reads from a network that orders after submission: a wire that counted stands before it
    on the ledger under the same `parties.copy_key`. Units of a sequenced store write no wire twice.
    """
    pass_over(world, changes, sequence, timestamp)
    e = event(wire, sequence, timestamp, changes, payer, structure)
    own = payer == LOCAL_PAYER
    if not own or not world.workspace.workspace_id:
        refused = judge(world, e, payer)
        if refused is not None:
            return refused
        own = is_log(world, payer)
        if not own:
            e.wire = _with_true_place(world, wire)
    reducer = REDUCERS.get(e.type)
    if copied:
        void: Void = DUPLICATE_WIRE
    elif reducer is None:
        void = "unknown_type"
    elif world.workspace.rules < RULES and world.workspace.rules < _SINCE.get(e.type, 0):
        void = "rules_too_old"
    else:
        void = reducer(world, e)
    # Keys of requests are hashes that the log makes; one that somebody else names could take another's place.
    if own and void is None and "idem" in e.payload:
        world.remember(e.payload["idem"], e.payload.get("body", ""), sequence, timestamp)
    if e.type in _REOPENING:
        changes.reopened = True
    if wire["sender"] != "system":
        if void is None:
            _charge(world, e)
        _note_act(world, e)
    return void


def pass_over(world: World, changes: Changes, sequence: int, timestamp: int) -> None:
    """Go on to the place of the next record; all that a record does that is no wire."""
    if sequence != world.sequence + 1:
        raise ValueError(f"record {sequence} cannot follow {world.sequence}")
    if world.workspace.rules > RULES:
        raise UpgradeNeeded(f"record {sequence} stands under rules {world.workspace.rules}")
    if world.tombstones:
        world.bury(timestamp, changes)
    world.sequence, world.timestamp = sequence, timestamp


def _with_true_place(world: World, wire: dict[str, Any]) -> dict[str, Any]:
    """The wire with no larger number in its stream than it can have: what others count is a hint."""
    stream = wire["stream"]
    number = min(stream["stream_seq"], world.next_seq(stream["stream_id"]))
    return {**wire, "stream": {**stream, "stream_seq": number}}


def _charge(world: World, e: Event) -> None:
    """What somebody asked for costs what the price table in force says."""
    price = world.workspace.prices.get(e.type, 1)
    if price:
        world.workspace.credits_used += price
        e.changes.touch("workspace", "")


def _note_act(world: World, e: Event) -> None:
    """An agent was heard of: by its own key, or by another that acts for it."""
    sender: str = e.wire["sender"]
    if sender.startswith("agent:"):
        agent_id = world.slugs.get(sender[6:], "")
    elif e.type == "task.claim_attempted":
        agent_id = e.subject
    else:
        # Holders name their claim and themselves.
        agent_id = e.payload.get("agent_id", "") if "claim_id" in e.payload else ""
    agent = world.agents.get(agent_id)
    if agent is not None and (agent.lost or e.timestamp - agent.last_act_at >= _ACT_GRAIN_NANOSECONDS):
        acted(world, agent, e)


REDUCERS: Mapping[str, Callable[[World, Event], Void]] = {
    "task.created": task.created,
    **dict.fromkeys(
        (
            "task.available",
            "task.claimed",
            "task.started",
            "task.released",
            "task.plan.created",
            "task.lease_extended",
            "task.lease_expired",
            "task.blocked",
            "task.unblocked",
            "task.complete",
            "task.failed",
            "task.cancelled",
            "artifact.ready",
            "message.added",
            "review.concern",
        ),
        task.moved,
    ),
    "task.claim_attempted": claim.attempted,
    "task.claim_missed": claim.lost,
    "task.claim_rejected": claim.lost,
    "workflow.started": workflow.started,
    **dict.fromkeys(
        ("workflow.paused", "workflow.resumed", "workflow.cancelled", "workflow.completed", "workflow.failed"),
        workflow.changed,
    ),
    "definition.published": definition.published,
    "gate.opened": gate.opened,
    "gate.approved": gate.approved,
    "gate.rejected": gate.rejected,
    "inbox.sent": registry.inbox_sent,
    "inbox.read": registry.inbox_read,
    "agent.registered": registry.agent_registered,
    "agent.updated": registry.agent_updated,
    "agent.deactivated": registry.agent_deactivated,
    "agent.lost": registry.agent_lost,
    "agent.heartbeat": registry.agent_heartbeat,
    "role.created": registry.role_created,
    "role.granted": registry.role_granted,
    "role.revoked": registry.role_revoked,
    "queue.created": registry.queue_created,
    "queue.updated": registry.queue_updated,
    "workspace.created": registry.workspace_created,
    "workspace.rules_raised": registry.rules_raised,
    "workspace.policy_set": registry.policy_set,
    "party.added": registry.party_added,
    "party.removed": registry.party_removed,
    "key.created": registry.key_created,
    "key.revoked": registry.key_revoked,
    # A recovered key is a key like any other; only how it came to be differs.
    "key.recovered": registry.key_created,
    "credits.granted": registry.credits_granted,
    "credits.priced": registry.credits_priced,
    **dict.fromkeys(
        (
            "content.erased",
            "signer.added",
            "signer.retired",
            "ledger.restored",
            "checkpoint.anchored",
        ),
        registry.noted,
    ),
}
