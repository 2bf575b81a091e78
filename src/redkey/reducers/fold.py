"""The fold: one record into the world. Total, deterministic, right for every prefix; no I/O, no clock, no chance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, assert_never, cast, get_args

import msgspec

from redkey.errors import UpgradeNeeded
from redkey.ledger.record import LOCAL_PAYER
from redkey.reducers import claim, definition, gate, progress, registry, spending, task, workflow
from redkey.reducers.changes import Changes
from redkey.reducers.event import Event, event
from redkey.reducers.parties import is_log, judge
from redkey.reducers.registry import acted
from redkey.reducers.replay import DUPLICATE_WIRE
from redkey.reducers.world import LOST_AFTER_NANOSECONDS, RULES, World
from redkey.wire.envelope import AnyWire
from redkey.wire.events import (
    PAYLOADS,
    AgentDeactivated,
    AgentHeartbeat,
    AgentLost,
    AgentRegistered,
    AgentUpdated,
    AnyPayload,
    ArtifactReady,
    CheckpointAnchored,
    ContentErased,
    CreditsGranted,
    CreditsPriced,
    DefinitionPublished,
    GateApproved,
    GateOpened,
    GateRejected,
    InboxRead,
    InboxSent,
    KeyCreated,
    KeyRecovered,
    KeyRevoked,
    LedgerRestored,
    MessageAdded,
    PartyAdded,
    PartyRemoved,
    PushRemoved,
    PushSet,
    QueueCreated,
    QueueUpdated,
    ReviewConcern,
    RoleCreated,
    RoleGranted,
    RoleRemoved,
    RoleRevoked,
    RoleUpdated,
    SignerAdded,
    SignerRetired,
    TaskAvailable,
    TaskBlocked,
    TaskCancelled,
    TaskClaimAttempted,
    TaskClaimed,
    TaskClaimMissed,
    TaskClaimRejected,
    TaskComplete,
    TaskCreated,
    TaskFailed,
    TaskLeaseExpired,
    TaskLeaseExtended,
    TaskPlanCreated,
    TaskProgress,
    TaskReleased,
    TaskStalled,
    TaskStarted,
    TaskUnblocked,
    TaskUsageReported,
    WebhookRemoved,
    WebhookSet,
    WorkflowCancelled,
    WorkflowCompleted,
    WorkflowFailed,
    WorkflowPaused,
    WorkflowResumed,
    WorkflowStarted,
    WorkspaceCreated,
    WorkspacePolicySet,
    WorkspaceRulesRaised,
)
from redkey.wire.payload import request_key

if TYPE_CHECKING:
    from typing_extensions import TypeIs

Void = str | None

# An agent's acts are noted this often at most, so that a busy one does not rewrite its row for every wire.
_ACT_GRAIN_NANOSECONDS = LOST_AFTER_NANOSECONDS // 9


# Types that came after the first version, and the rules that they came with.
_SINCE: dict[type[AnyPayload], int] = {
    WorkspacePolicySet: 2,
    WebhookSet: 2,
    WebhookRemoved: 2,
    PushSet: 2,
    PushRemoved: 2,
    PartyAdded: 2,
    PartyRemoved: 2,
    TaskStalled: 2,
    TaskUsageReported: 2,
    RoleUpdated: 2,
    RoleRemoved: 2,
    TaskProgress: 2,
}

# What may let an agent claim that could not before, without a task becoming available.
_REOPENING: frozenset[type[AnyPayload]] = frozenset(
    {RoleGranted, RoleUpdated, AgentUpdated, QueueUpdated, WorkflowResumed}
)


def fold(
    world: World,
    changes: Changes,
    wire: AnyWire,
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
    e, payload = event(wire, sequence, timestamp, changes, payer, structure), wire.payload
    own = payer == LOCAL_PAYER
    if not own or not world.workspace.workspace_id:
        refused = judge(world, e, payload)
        if refused is not None:
            return refused
        own = is_log(world, payer)
        if not own:
            _hold_to_true_place(world, e)
    if copied:
        void: Void = DUPLICATE_WIRE
    elif world.workspace.rules < RULES and world.workspace.rules < _SINCE.get(type(payload), 0):
        void = "rules_too_old"
    else:
        void = apply(world, e, payload)
    # Keys of requests are hashes that the log makes; one that somebody else names could take another's place.
    if own and void is None and (key := request_key(payload)) is not None:
        world.remember(*key, sequence, timestamp)
    if type(payload) in _REOPENING:
        changes.reopened = True
    if e.sender != "system":
        if void is None:
            _charge(world, e, payload)
        _note_act(world, e, payload)
    return void


def pass_over(world: World, changes: Changes, sequence: int, timestamp: int) -> None:
    """Go on to the place of the next record; all that a record does that is no wire."""
    if sequence != world.sequence + 1:
        raise ValueError(f"record {sequence} cannot follow {world.sequence}")
    if world.workspace.rules > RULES:
        raise UpgradeNeeded(f"record {sequence} stands under rules {world.workspace.rules}")
    if world.tombstones and world.tombstones[0][0] <= timestamp:
        world.bury(timestamp, changes)
    world.sequence, world.timestamp = sequence, timestamp


def _hold_to_true_place(world: World, e: Event) -> None:
    """Give the event no larger number in its stream than it can have: what others count is a hint."""
    number = min(e.stream.stream_seq, world.next_seq(e.stream.stream_id))
    e.stream = msgspec.structs.replace(e.stream, stream_seq=number)


def _charge(world: World, e: Event, payload: AnyPayload) -> None:
    """What somebody asked for costs what the price table in force says."""
    price = world.workspace.prices.get(payload.TYPE, 1)
    if price:
        world.workspace.credits_used += price
        e.changes.touch("workspace", "")


def _note_act(world: World, e: Event, payload: AnyPayload) -> None:
    """An agent was heard of: by its own key, or by another that acts for it."""
    if e.sender.startswith("agent:"):
        agent_id = world.slugs.get(e.sender[6:], "")
    elif type(payload) is TaskClaimAttempted:
        agent_id = e.subject
    else:
        # Holders name their claim and themselves.
        agent_id = _holder(cast(_Act, payload)) if type(payload) in _ACTS else ""
    agent = world.agents.get(agent_id)
    if agent is not None and (agent.lost or e.timestamp - agent.last_act_at >= _ACT_GRAIN_NANOSECONDS):
        acted(world, agent, e)


class _Act(Protocol):
    """What those types have in common that name a claim and an agent."""

    @property
    def claim_id(self) -> str | None: ...

    @property
    def agent_id(self) -> str | None: ...


_ACTS = frozenset(kind for kind in PAYLOADS.values() if {"claim_id", "agent_id"} <= {*kind.__struct_fields__})


def _holder(act: _Act) -> str:
    return act.agent_id or "" if act.claim_id is not None else ""


# The events that set up a workspace: its agents, roles, queues, keys, credits and rules.
_RegistryPayload = (
    AgentRegistered
    | AgentUpdated
    | AgentDeactivated
    | AgentLost
    | RoleCreated
    | RoleGranted
    | RoleRevoked
    | RoleUpdated
    | RoleRemoved
    | QueueCreated
    | QueueUpdated
    | WorkspaceCreated
    | WorkspaceRulesRaised
    | WorkspacePolicySet
    | PartyAdded
    | PartyRemoved
    | WebhookSet
    | WebhookRemoved
    | PushSet
    | PushRemoved
    | KeyCreated
    | KeyRecovered
    | KeyRevoked
    | CreditsGranted
    | CreditsPriced
    | ContentErased
    | SignerAdded
    | SignerRetired
    | LedgerRestored
    | CheckpointAnchored
)
_REGISTRY = frozenset(get_args(_RegistryPayload))


def _is_registry(p: AnyPayload) -> TypeIs[_RegistryPayload]:
    return type(p) in _REGISTRY


def apply(world: World, e: Event, p: AnyPayload) -> Void:
    """Apply an event to the world; return the reason if the event is void.

    There is one case for each event type, the most frequent first, and mypy reports a missing one. Types are compared
    with `is`: `match` and `isinstance` take ten times as long for structs.
    """
    if type(p) is TaskCreated:
        return task.created(world, e, p)
    if type(p) is TaskAvailable:
        return task.moved(world, e, p, task.available)
    if type(p) is TaskClaimAttempted:
        return claim.attempted(world, e, p)
    if type(p) is TaskClaimed:
        return task.moved(world, e, p, task.claimed)
    if type(p) is TaskComplete:
        return task.moved(world, e, p, task.completed)
    if type(p) is TaskStarted:
        return task.moved(world, e, p, task.started)
    if type(p) is ArtifactReady:
        return task.moved(world, e, p, task.artifact_ready)
    if type(p) is TaskClaimMissed or type(p) is TaskClaimRejected:
        return claim.lost(world, e, p)
    if type(p) is TaskLeaseExtended:
        return task.moved(world, e, p, task.extended)
    if type(p) is AgentHeartbeat:
        return registry.agent_heartbeat(world, e, p)
    if type(p) is TaskLeaseExpired or type(p) is TaskStalled:
        return task.moved(world, e, p, task.expired)
    if type(p) is TaskReleased:
        return task.moved(world, e, p, task.released)
    if type(p) is TaskBlocked:
        return task.moved(world, e, p, task.blocked)
    if type(p) is TaskUnblocked:
        return task.moved(world, e, p, task.unblocked)
    if type(p) is TaskFailed:
        return task.moved(world, e, p, task.failed)
    if type(p) is TaskCancelled:
        return task.moved(world, e, p, task.cancelled)
    if type(p) is TaskUsageReported:
        return task.moved(world, e, p, spending.reported)
    if type(p) is TaskProgress:
        return task.moved(world, e, p, progress.reported)
    if type(p) is TaskPlanCreated or type(p) is MessageAdded or type(p) is ReviewConcern:
        return task.moved(world, e, p)
    if type(p) is InboxSent:
        return registry.inbox_sent(world, e, p)
    if type(p) is InboxRead:
        return registry.inbox_read(world, e, p)
    if type(p) is WorkflowStarted:
        return workflow.started(world, e, p)
    if type(p) is WorkflowPaused:
        return workflow.paused(world, e, p)
    if type(p) is WorkflowResumed:
        return workflow.resumed(world, e, p)
    if type(p) is WorkflowCancelled:
        return workflow.cancelled(world, e, p)
    if type(p) is WorkflowCompleted or type(p) is WorkflowFailed:
        return workflow.ended(world, e, p)
    if type(p) is GateOpened:
        return gate.opened(world, e, p)
    if type(p) is GateApproved:
        return gate.approved(world, e, p)
    if type(p) is GateRejected:
        return gate.rejected(world, e, p)
    if type(p) is DefinitionPublished:
        return definition.published(world, e, p)
    if _is_registry(p):
        return _apply_to_registry(world, e, p)
    assert_never(p)


def _apply_to_registry(world: World, e: Event, p: _RegistryPayload) -> Void:
    """Apply an event that sets up the workspace; return the reason if the event is void."""
    if type(p) is AgentRegistered:
        return registry.agent_registered(world, e, p)
    if type(p) is AgentUpdated:
        return registry.agent_updated(world, e, p)
    if type(p) is AgentDeactivated:
        return registry.agent_deactivated(world, e, p)
    if type(p) is AgentLost:
        return registry.agent_lost(world, e, p)
    if type(p) is RoleCreated:
        return registry.role_created(world, e, p)
    if type(p) is RoleGranted:
        return registry.role_granted(world, e, p)
    if type(p) is RoleRevoked:
        return registry.role_revoked(world, e, p)
    if type(p) is RoleUpdated:
        return registry.role_updated(world, e, p)
    if type(p) is RoleRemoved:
        return registry.role_removed(world, e, p)
    if type(p) is QueueCreated:
        return registry.queue_created(world, e, p)
    if type(p) is QueueUpdated:
        return registry.queue_updated(world, e, p)
    if type(p) is WorkspaceCreated:
        return registry.workspace_created(world, e, p)
    if type(p) is WorkspaceRulesRaised:
        return registry.rules_raised(world, e, p)
    if type(p) is WorkspacePolicySet:
        return registry.policy_set(world, e, p)
    if type(p) is WebhookSet or type(p) is PushSet:
        return registry.webhook_set(world, e, p)
    if type(p) is WebhookRemoved or type(p) is PushRemoved:
        return registry.webhook_removed(world, e, p)
    if type(p) is PartyAdded:
        return registry.party_added(world, e, p)
    if type(p) is PartyRemoved:
        return registry.party_removed(world, e, p)
    if type(p) is KeyCreated or type(p) is KeyRecovered:
        # A recovered key differs from a created one only in its origin.
        return registry.key_created(world, e, p)
    if type(p) is KeyRevoked:
        return registry.key_revoked(world, e, p)
    if type(p) is CreditsGranted:
        return registry.credits_granted(world, e, p)
    if type(p) is CreditsPriced:
        return registry.credits_priced(world, e, p)
    if type(p) is ContentErased or type(p) is SignerAdded or type(p) is SignerRetired:
        return registry.noted(world, e, p)
    if type(p) is LedgerRestored or type(p) is CheckpointAnchored:
        return registry.noted(world, e, p)
    assert_never(p)
