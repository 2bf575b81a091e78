"""Who may write on a topic: the account that pays for a record is checked against the sender that its wire names.

On a shared topic anyone with the submit key can write any bytes. Only the paying account counts, because the network
vouches for that and for nothing else. The account that paid for `workspace.created` is the log's own: its servers
authenticate their callers and may name any sender. `party.added` admits another account: as another server of the
operator, or as one agent, which may then act on its own claims and do nothing else. All other records are void with a
reason: they block no one, and change nothing but the place. The local payer is an account of no public network; a
record that it pays for was written by the server that holds the ledger's lock, so it counts as the log's own too.

Workspaces under rules 1 have no parties: every record counts there, except one that raises the rules.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from redkey.ledger.record import LOCAL_PAYER
from redkey.reducers.claim import lease_end
from redkey.reducers.entities import Agent, Party, Task
from redkey.reducers.event import Event
from redkey.reducers.task import recipients, retries
from redkey.reducers.world import World
from redkey.wire.envelope import AnyWire
from redkey.wire.events import (
    AgentDeactivated,
    AgentHeartbeat,
    AnyPayload,
    ArtifactReady,
    GateApproved,
    GateRejected,
    InboxRead,
    InboxSent,
    MessageAdded,
    QueueClaimRequested,
    ReviewConcern,
    TaskBlocked,
    TaskClaimAttempted,
    TaskComplete,
    TaskFailed,
    TaskLeaseExtended,
    TaskPlanCreated,
    TaskProgress,
    TaskReleased,
    TaskStalled,
    TaskStarted,
    TaskUnblocked,
    TaskUsageReported,
    WorkspaceCreated,
    WorkspaceRulesRaised,
)
from redkey.wire.payload import Payload
from redkey.wire.rules import SYSTEM_FAILURES
from redkey.wire.times import parse_time

Void = str | None
P = TypeVar("P", bound=Payload)
# Why a record does not count, whatever the state of the world. Its wire id remains free.
NO_WORKSPACE, UNKNOWN_PAYER, SENDER_NOT_PAYER = "no_workspace", "unknown_payer", "sender_not_payer"
NOT_ALLOWED, NOT_ITS_OWN, WIRE_INVALID = "not_allowed", "not_its_own", "wire_invalid"
JUDGED = frozenset({NO_WORKSPACE, UNKNOWN_PAYER, SENDER_NOT_PAYER, NOT_ALLOWED, NOT_ITS_OWN, WIRE_INVALID})


def is_log(world: World, payer: str) -> bool:
    """True when the payer is the log itself or another server of its operator: such records may name any sender."""
    if payer in (LOCAL_PAYER, world.workspace.operator) or world.workspace.rules == 1:
        return True
    party = world.parties.get(payer)
    return party is not None and not party.agent_id


def judge(world: World, e: Event, p: AnyPayload) -> Void:
    """Why the record does not count, by its payer; None when it counts."""
    workspace, payer = world.workspace, e.payer
    if not workspace.workspace_id:
        return None if type(p) is WorkspaceCreated else NO_WORKSPACE
    if payer in (LOCAL_PAYER, workspace.operator):
        return None
    if workspace.rules == 1:
        return UNKNOWN_PAYER if type(p) is WorkspaceRulesRaised else None
    party = world.parties.get(payer)
    if party is None:
        return UNKNOWN_PAYER
    return _judge_agent(world, e, p, party) if party.agent_id else None


def copy_key(world: World, wire: AnyWire, payer: str) -> tuple[str, str]:
    """The key by which a reader of a shared topic recognises a copy of a wire that already counted.

    The wires of the log and of each party have separate ids, so that no party can use up an id of another.
    """
    return wire.wire_id, "" if is_log(world, payer) else payer


def _judge_agent(world: World, e: Event, p: AnyPayload, party: Party) -> Void:
    agent = world.agents[party.agent_id]
    if e.sender != f"agent:{agent.slug}":
        return SENDER_NOT_PAYER
    owns = _ACTS.get(p.TYPE)
    if owns is None:
        return NOT_ALLOWED
    return None if owns(world, agent, e, p) else NOT_ITS_OWN


def _itself(
    world: World,
    agent: Agent,
    e: Event,
    p: TaskClaimAttempted | QueueClaimRequested | AgentHeartbeat | AgentDeactivated,
) -> bool:
    return e.subject == agent.agent_id


def _held_task(world: World, agent: Agent, e: Event, claim_id: str | None) -> Task | None:
    """The task that the agent holds by the claim on the wire, or held until its lease expired."""
    task = world.tasks.get(e.subject)
    if task is None or not claim_id:
        return None
    holds = task.claim_id == claim_id and task.agent_id == agent.agent_id
    held = task.expired_claim_id == claim_id and task.expired_agent_id == agent.agent_id
    return task if holds or held else None


def _holds(
    world: World,
    agent: Agent,
    e: Event,
    p: TaskStarted
    | TaskReleased
    | TaskStalled
    | TaskPlanCreated
    | TaskUsageReported
    | TaskProgress
    | TaskBlocked
    | TaskComplete
    | ArtifactReady,
) -> bool:
    return _held_task(world, agent, e, p.claim_id) is not None


def _extends(world: World, agent: Agent, e: Event, p: TaskLeaseExtended) -> bool:
    """The new lease may not be longer than the one the claim asked for."""
    task = _held_task(world, agent, e, p.claim_id)
    return task is not None and parse_time(p.lease_expires_at) <= lease_end(task, e.timestamp)


def _fails(world: World, agent: Agent, e: Event, p: TaskFailed) -> bool:
    """A holder reports only its own failures, and a retry must follow the policy of the task."""
    task = _held_task(world, agent, e, p.claim_id)
    return task is not None and p.kind not in SYSTEM_FAILURES and p.retry == retries(task, p.kind)


def _adds(world: World, agent: Agent, e: Event, p: MessageAdded) -> bool:
    return True


def _says(world: World, agent: Agent, e: Event, p: ReviewConcern) -> bool:
    return p.by == e.sender


def _sends(world: World, agent: Agent, e: Event, p: InboxSent) -> bool:
    """An agent may send mail to anyone, but only the holder of a task may request a gate for it."""
    if p.message_type != "exec.gate":
        return True
    task = world.tasks.get(p.ref_task_id or "")
    return task is not None and task.agent_id == agent.agent_id


def _reads(world: World, agent: Agent, e: Event, p: InboxRead) -> bool:
    message = world.messages.get(p.message_id)
    return message is not None and message.to == f"agent:{agent.agent_id}"


def _lifts(world: World, agent: Agent, e: Event, p: TaskUnblocked) -> bool:
    task = world.tasks.get(e.subject)
    return task is not None and f"agent:{agent.agent_id}" in recipients(world, task.blocker_type)


def _approves(world: World, agent: Agent, e: Event, p: GateApproved | GateRejected) -> bool:
    gate = world.gates.get(p.gate_id)
    if gate is None or p.by != e.sender or not agent.active or gate.agent_id == agent.agent_id:
        return False
    return not {agent.agent_id, *agent.roles}.isdisjoint(gate.approvers)


_Own = Callable[[World, Agent, Event, Any], bool]


def _of(kind: type[P], own: Callable[[World, Agent, Event, P], bool]) -> tuple[str, _Own]:
    """Pair a check with its event type; the type checker checks that it accepts payloads of that type."""
    return kind.TYPE, own


# What an agent may write for itself, and the check that the act is its own.
_ACTS: Mapping[str, _Own] = dict(
    [
        _of(TaskClaimAttempted, _itself),
        _of(QueueClaimRequested, _itself),
        _of(TaskStarted, _holds),
        _of(TaskReleased, _holds),
        _of(TaskStalled, _holds),
        _of(TaskPlanCreated, _holds),
        _of(TaskUsageReported, _holds),
        _of(TaskProgress, _holds),
        _of(TaskLeaseExtended, _extends),
        _of(TaskBlocked, _holds),
        _of(TaskComplete, _holds),
        _of(TaskFailed, _fails),
        _of(TaskUnblocked, _lifts),
        _of(ArtifactReady, _holds),
        _of(MessageAdded, _adds),
        _of(ReviewConcern, _says),
        _of(InboxSent, _sends),
        _of(InboxRead, _reads),
        _of(AgentHeartbeat, _itself),
        _of(AgentDeactivated, _itself),
        _of(GateApproved, _approves),
        _of(GateRejected, _approves),
    ]
)
