"""Who may write on a topic: the account that pays for a record is held against the sender that its wire names.

On a shared topic anybody with the submit key can write any bytes. What counts is who paid, because the network vouches
for that and for nothing else. The account that paid for `workspace.created` is the log's own: its servers authenticate
their callers and may name any sender. `party.added` lets another account in: as one more server of the operator, or as
one agent, which then may do what an agent does with its own claims, and nothing else. All other records are void with a
reason: they stop nobody, and change nothing but the place. The local payer is an account of no public network; what it
pays for was written by the server that holds the ledger's own lock, so it is the log's as well.

Workspaces under rules 1 know no parties: there every record counts, apart from one that raises the rules.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from redkey.ledger.record import LOCAL_PAYER
from redkey.reducers.claim import lease_end
from redkey.reducers.entities import Agent, Party, Task
from redkey.reducers.event import Event
from redkey.reducers.task import recipients, retries
from redkey.reducers.world import World
from redkey.wire.rules import SYSTEM_FAILURES
from redkey.wire.times import parse_time

Void = str | None
RULES_RAISED = "workspace.rules_raised"
# Why a record does not count, whatever the world is like. Its wire id is not taken by it either.
NO_WORKSPACE, UNKNOWN_PAYER, SENDER_NOT_PAYER = "no_workspace", "unknown_payer", "sender_not_payer"
NOT_ALLOWED, NOT_ITS_OWN, WIRE_INVALID = "not_allowed", "not_its_own", "wire_invalid"
JUDGED = frozenset({NO_WORKSPACE, UNKNOWN_PAYER, SENDER_NOT_PAYER, NOT_ALLOWED, NOT_ITS_OWN, WIRE_INVALID})


def is_log(world: World, payer: str) -> bool:
    """True when the payer is the log itself, or another server of its operator: such records name any sender."""
    if payer in (LOCAL_PAYER, world.workspace.operator) or world.workspace.rules == 1:
        return True
    party = world.parties.get(payer)
    return party is not None and not party.agent_id


def judge(world: World, e: Event, payer: str) -> Void:
    """Why the record does not count, by who paid for it; None when it does."""
    workspace = world.workspace
    if not workspace.workspace_id:
        return None if e.type == "workspace.created" else NO_WORKSPACE
    if payer in (LOCAL_PAYER, workspace.operator):
        return None
    if workspace.rules == 1:
        return UNKNOWN_PAYER if e.type == RULES_RAISED else None
    party = world.parties.get(payer)
    if party is None:
        return UNKNOWN_PAYER
    return _judge_agent(world, e, party) if party.agent_id else None


def copy_key(world: World, wire: Mapping[str, Any], payer: str) -> tuple[str, str]:
    """Under what a reader of a shared topic remembers a wire that counted, to know a copy of it.

    The log's wires and those of each party have ids of their own, so that nobody can use up an id of another.
    """
    return wire["wire_id"], "" if is_log(world, payer) else payer


def _judge_agent(world: World, e: Event, party: Party) -> Void:
    agent = world.agents[party.agent_id]
    if e.wire["sender"] != f"agent:{agent.slug}":
        return SENDER_NOT_PAYER
    owns = _ACTS.get(e.type)
    if owns is None:
        return NOT_ALLOWED
    return None if owns(world, agent, e) else NOT_ITS_OWN


def _itself(world: World, agent: Agent, e: Event) -> bool:
    return e.subject == agent.agent_id


def _held_task(world: World, agent: Agent, e: Event) -> Task | None:
    """The task that the agent holds by the claim of the wire, or held until its lease expired."""
    task = world.tasks.get(e.subject)
    if task is None or not e.payload.get("claim_id"):
        return None
    holds = task.claim_id == e.payload["claim_id"] and task.agent_id == agent.agent_id
    held = task.expired_claim_id == e.payload["claim_id"] and task.expired_agent_id == agent.agent_id
    return task if holds or held else None


def _holds(world: World, agent: Agent, e: Event) -> bool:
    return _held_task(world, agent, e) is not None


def _extends(world: World, agent: Agent, e: Event) -> bool:
    """No lease is longer than the one that was asked for with the claim."""
    task = _held_task(world, agent, e)
    return task is not None and parse_time(e.payload["lease_expires_at"]) <= lease_end(task, e.timestamp)


def _fails(world: World, agent: Agent, e: Event) -> bool:
    """A holder reports its own failures, and another attempt follows only as the policy of the task has it."""
    task, kind = _held_task(world, agent, e), e.payload["kind"]
    return task is not None and kind not in SYSTEM_FAILURES and e.payload["retry"] == retries(task, kind)


def _says(world: World, agent: Agent, e: Event) -> bool:
    return bool(e.payload.get("by", e.wire["sender"]) == e.wire["sender"])


def _sends(world: World, agent: Agent, e: Event) -> bool:
    """Mail goes to anybody; to ask for a gate is for the one who works on the task."""
    if e.payload["message_type"] != "exec.gate":
        return True
    task = world.tasks.get(e.payload.get("ref_task_id", ""))
    return task is not None and task.agent_id == agent.agent_id


def _reads(world: World, agent: Agent, e: Event) -> bool:
    message = world.messages.get(e.payload["message_id"])
    return message is not None and message.to == f"agent:{agent.agent_id}"


def _lifts(world: World, agent: Agent, e: Event) -> bool:
    task = world.tasks.get(e.subject)
    return task is not None and f"agent:{agent.agent_id}" in recipients(world, task.blocker_type)


def _approves(world: World, agent: Agent, e: Event) -> bool:
    gate = world.gates.get(e.payload["gate_id"])
    if gate is None or not _says(world, agent, e) or not agent.active or gate.agent_id == agent.agent_id:
        return False
    return not {agent.agent_id, *agent.roles}.isdisjoint(gate.approvers)


# What an agent may write for itself, and when it is its own business.
_ACTS: Mapping[str, Callable[[World, Agent, Event], bool]] = {
    "task.claim_attempted": _itself,
    "task.started": _holds,
    "task.released": _holds,
    "task.plan.created": _holds,
    "task.lease_extended": _extends,
    "task.blocked": _holds,
    "task.complete": _holds,
    "task.failed": _fails,
    "task.unblocked": _lifts,
    "artifact.ready": _holds,
    "message.added": _says,
    "review.concern": _says,
    "inbox.sent": _sends,
    "inbox.read": _reads,
    "agent.heartbeat": _itself,
    "agent.deactivated": _itself,
    "gate.approved": _approves,
    "gate.rejected": _approves,
}
