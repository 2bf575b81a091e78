"""The fold of one record into the world. It is deterministic and defined for every prefix of the ledger; it does no
I/O and reads no clock and no randomness."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, assert_never, cast, get_args

import msgspec

from redkey.errors import UpgradeNeeded
from redkey.ledger.record import LOCAL_PAYER
from redkey.reducers import (
    agents,
    claim,
    definition,
    gate,
    progress,
    projects,
    queues,
    spending,
    task,
    task_creation,
    workflow,
    workspace,
)
from redkey.reducers.agents import acted
from redkey.reducers.changes import Changes
from redkey.reducers.event import Event, event
from redkey.reducers.parties import is_log, judge
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
    ArtifactSuperseded,
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
    PhaseCompleted,
    PhaseCreated,
    PhaseUpdated,
    ProjectCompleted,
    ProjectCreated,
    ProjectUpdated,
    PushRemoved,
    PushSet,
    QueueClaimRequested,
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
    TopicAssigned,
    TopicRetired,
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

# An agent's last act is updated at most this often, so that a busy agent does not rewrite its row for every wire.
_ACT_GRAIN_NANOSECONDS = LOST_AFTER_NANOSECONDS // 9


# Event types that were added after the first version, and the rules that introduced them.
_SINCE: dict[type[AnyPayload], int] = {
    WorkspacePolicySet: 2,
    WebhookSet: 2,
    WebhookRemoved: 2,
    PushSet: 2,
    PushRemoved: 2,
    PartyAdded: 2,
    PartyRemoved: 2,
    TopicAssigned: 2,
    TopicRetired: 2,
    QueueClaimRequested: 2,
    TaskStalled: 2,
    TaskUsageReported: 2,
    RoleUpdated: 2,
    RoleRemoved: 2,
    TaskProgress: 2,
    ArtifactSuperseded: 2,
    ProjectCreated: 2,
    ProjectUpdated: 2,
    ProjectCompleted: 2,
    PhaseCreated: 2,
    PhaseUpdated: 2,
    PhaseCompleted: 2,
}

# Events that may make an agent eligible for a task without a task becoming available.
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
    """Fold the record at `sequence` into the world; return the reason if it is void. Row changes go to `changes`.

    The wire is valid by its schema (`readmodel.ingest` checks it where others than the log write). No content of a wire
    raises an error, with one exception: a reader that does not know newer rules stops, and only the log can raise
    rules. A reader of a network that orders messages after submission sets `copied` if a wire with the same
    `parties.copy_key` already counted. Units of a sequenced store write no wire twice.
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
    # The log computes the hashes that are request keys; a key in a record of another payer could displace one.
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
    """Advance the world to the place of the next record; a record that is no wire does only this."""
    if sequence != world.sequence + 1:
        raise ValueError(f"record {sequence} cannot follow {world.sequence}")
    if world.workspace.rules > RULES:
        raise UpgradeNeeded(f"record {sequence} needs rules {world.workspace.rules}")
    if world.tombstones and world.tombstones[0][0] <= timestamp:
        world.drop_ended_tasks(timestamp, changes)
    world.sequence, world.timestamp = sequence, timestamp


def _hold_to_true_place(world: World, e: Event) -> None:
    """Lower a stream number that is too large to be true: a number from another payer is only a hint."""
    number = min(e.stream.stream_seq, world.next_seq(e.stream.stream_id))
    e.stream = msgspec.structs.replace(e.stream, stream_seq=number)


def _charge(world: World, e: Event, payload: AnyPayload) -> None:
    """Charge a request at the price table in force."""
    price = world.workspace.prices.get(payload.TYPE, 1)
    if price:
        world.workspace.credits_used += price
        e.changes.touch("workspace", "")


def _note_act(world: World, e: Event, payload: AnyPayload) -> None:
    """Update when an agent was last seen: it acted by its own key, or another key acted for it."""
    if e.sender.startswith("agent:"):
        agent_id = world.slugs.get(e.sender[6:], "")
    elif type(payload) is TaskClaimAttempted or type(payload) is QueueClaimRequested:
        agent_id = e.subject
    else:
        # Holder events name their claim and agent.
        agent_id = _holder(cast(_Act, payload)) if type(payload) in _ACTS else ""
    agent = world.agents.get(agent_id)
    if agent is not None and (agent.lost or e.timestamp - agent.last_act_at >= _ACT_GRAIN_NANOSECONDS):
        acted(world, agent, e)


class _Act(Protocol):
    """What the event types that name a claim and an agent have in common."""

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
    | TopicAssigned
    | TopicRetired
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


_RunPayload = (
    WorkflowStarted | WorkflowPaused | WorkflowResumed | WorkflowCancelled | WorkflowCompleted | WorkflowFailed
)
_RUN = frozenset(get_args(_RunPayload))


def _is_run(p: AnyPayload) -> TypeIs[_RunPayload]:
    return type(p) in _RUN


_ProjectPayload = ProjectCreated | PhaseCreated | ProjectUpdated | ProjectCompleted | PhaseUpdated | PhaseCompleted
_PROJECT = frozenset(get_args(_ProjectPayload))


def _is_project(p: AnyPayload) -> TypeIs[_ProjectPayload]:
    return type(p) in _PROJECT


def apply(world: World, e: Event, p: AnyPayload) -> Void:
    """Apply an event to the world; return the reason if the event is void.

    There is one case for each type, the most frequent first; mypy reports a missing one. `match` would take ten times
    as long as `is`.
    """
    if type(p) is TaskCreated:
        return task_creation.created(world, e, p)
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
    if type(p) is QueueClaimRequested:
        return claim.requested(world, e, p)
    if type(p) is TaskLeaseExtended:
        return task.moved(world, e, p, task.extended)
    if type(p) is AgentHeartbeat:
        return agents.agent_heartbeat(world, e, p)
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
        return queues.inbox_sent(world, e, p)
    if type(p) is InboxRead:
        return queues.inbox_read(world, e, p)
    if _is_run(p):
        return _apply_to_run(world, e, p)
    if type(p) is GateOpened:
        return gate.opened(world, e, p)
    if type(p) is GateApproved:
        return gate.approved(world, e, p)
    if type(p) is GateRejected:
        return gate.rejected(world, e, p)
    if type(p) is DefinitionPublished:
        return definition.published(world, e, p)
    if type(p) is ArtifactSuperseded:
        return task.superseded(world, e, p)
    if _is_project(p):
        return _apply_to_project(world, e, p)
    if _is_registry(p):
        return _apply_to_registry(world, e, p)
    assert_never(p)


def _apply_to_run(world: World, e: Event, p: _RunPayload) -> Void:
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
    assert_never(p)


def _apply_to_project(world: World, e: Event, p: _ProjectPayload) -> Void:
    if type(p) is ProjectCreated:
        return projects.project_created(world, e, p)
    if type(p) is PhaseCreated:
        return projects.phase_created(world, e, p)
    if type(p) is ProjectUpdated or type(p) is ProjectCompleted or type(p) is PhaseUpdated or type(p) is PhaseCompleted:
        return projects.changed(world, e, p)
    assert_never(p)


def _apply_to_registry(world: World, e: Event, p: _RegistryPayload) -> Void:
    """Apply an event that sets up the workspace; return the reason if the event is void."""
    if type(p) is AgentRegistered:
        return agents.agent_registered(world, e, p)
    if type(p) is AgentUpdated:
        return agents.agent_updated(world, e, p)
    if type(p) is AgentDeactivated:
        return agents.agent_deactivated(world, e, p)
    if type(p) is AgentLost:
        return agents.agent_lost(world, e, p)
    if type(p) is RoleCreated:
        return agents.role_created(world, e, p)
    if type(p) is RoleGranted:
        return agents.role_granted(world, e, p)
    if type(p) is RoleRevoked:
        return agents.role_revoked(world, e, p)
    if type(p) is RoleUpdated:
        return agents.role_updated(world, e, p)
    if type(p) is RoleRemoved:
        return agents.role_removed(world, e, p)
    if type(p) is QueueCreated:
        return queues.queue_created(world, e, p)
    if type(p) is QueueUpdated:
        return queues.queue_updated(world, e, p)
    if type(p) is WorkspaceCreated:
        return workspace.workspace_created(world, e, p)
    if type(p) is WorkspaceRulesRaised:
        return workspace.rules_raised(world, e, p)
    if type(p) is WorkspacePolicySet:
        return workspace.policy_set(world, e, p)
    if type(p) is WebhookSet or type(p) is PushSet:
        return workspace.webhook_set(world, e, p)
    if type(p) is WebhookRemoved or type(p) is PushRemoved:
        return workspace.webhook_removed(world, e, p)
    if type(p) is PartyAdded:
        return workspace.party_added(world, e, p)
    if type(p) is PartyRemoved:
        return workspace.party_removed(world, e, p)
    if type(p) is TopicAssigned:
        return workspace.topic_assigned(world, e, p)
    if type(p) is TopicRetired:
        return workspace.topic_retired(world, e, p)
    if type(p) is KeyCreated or type(p) is KeyRecovered:
        # A recovered key differs from a created one only in its origin.
        return workspace.key_created(world, e, p)
    if type(p) is KeyRevoked:
        return workspace.key_revoked(world, e, p)
    if type(p) is CreditsGranted:
        return workspace.credits_granted(world, e, p)
    if type(p) is CreditsPriced:
        return workspace.credits_priced(world, e, p)
    if type(p) is ContentErased or type(p) is SignerAdded or type(p) is SignerRetired:
        return workspace.noted(world, e, p)
    if type(p) is LedgerRestored or type(p) is CheckpointAnchored:
        return workspace.noted(world, e, p)
    assert_never(p)
