"""Settings of the workspace itself: its policies, who may write on its topic, the rules its records fold under."""

from __future__ import annotations

from collections.abc import Mapping
from typing import final

import msgspec

from redkey.commands.actor import Actor
from redkey.commands.decision import Decision, Refused, not_found
from redkey.commands.draft import Draft, Ids
from redkey.reducers.outputs import REFUSE
from redkey.reducers.retrying import RetryPolicy
from redkey.reducers.spending import nano_usd
from redkey.reducers.task import block_route
from redkey.reducers.world import RULES, World
from redkey.wire.events import (
    AnyPayload,
    PartyAdded,
    PartyRemoved,
    TopicAssigned,
    TopicRetired,
    WorkspaceBlockRoute,
    WorkspaceCostCap,
    WorkspacePolicySet,
    WorkspaceRetry,
    WorkspaceRulesRaised,
)

# The first version of the workspace rules with policies and parties.
POLICY_RULES = 2


@final
class SetPolicy(msgspec.Struct, frozen=True):
    """Set policies; those that are not named stay. `block_routes`: blocker type -> roles that are notified;
    `cost_caps`: scope -> dollars, or None for no cap; `unverified_outputs`: whether a task may complete with outputs
    that RedKey has not seen."""

    block_routes: Mapping[str, tuple[str, ...]] = {}
    cost_caps: Mapping[str, float | None] = {}
    self_approval: bool | None = None
    receipts_public: bool | None = None
    unverified_outputs: str = ""
    retry: RetryPolicy | None = None
    # True for the configured policies of a new workspace, whose roles do not exist yet.
    defaults: bool = False


@final
class RaiseRules(msgspec.Struct, frozen=True):
    """Fold later records under newer rules; this cannot be undone."""

    rules: int = RULES


@final
class AddParty(msgspec.Struct, frozen=True):
    """Let an account write on the topic: as an agent or, without an agent, as another server of the operator."""

    payer: str
    agent_id: str = ""


@final
class RemoveParty(msgspec.Struct, frozen=True):
    """Take the right to write on the topic from an account."""

    payer: str


@final
class AssignTopic(msgspec.Struct, frozen=True):
    """Assign a topic of a public network to the workspace, or transfer it to another owner."""

    topic: str
    network: str
    use: str
    owner: str
    account: str = ""


@final
class RetireTopic(msgspec.Struct, frozen=True):
    """Stop using a topic of a public network; this cannot be undone."""

    topic: str
    network: str


def set_policy(world: World, command: SetPolicy, actor: Actor, now: int, ids: Ids) -> Decision:
    """Set policies, one wire for each that changes."""
    check_rules(world, POLICY_RULES)
    for kind, roles in command.block_routes.items():
        for role in roles:
            if role not in world.roles and not command.defaults:
                detail = f"There is no role {role!r}; create it first."
                raise Refused(422, "unknown_role", detail, f"/blockRoutes/{kind}")
    where, sender = f"workspace:{world.workspace.workspace_id}", actor.sender(world)
    wires = [
        WorkspacePolicySet(block_route=WorkspaceBlockRoute(blocker_type=kind, roles=tuple(roles)))
        for kind, roles in command.block_routes.items()
        if block_route(world, kind) != roles
    ]
    caps = world.workspace.cost_caps
    wires += [
        WorkspacePolicySet(cost_cap=WorkspaceCostCap(scope=scope, cost_usd=usd))
        for scope, usd in command.cost_caps.items()
        if caps.get(scope) != (None if usd is None else nano_usd(usd))
    ]
    if command.self_approval not in (None, world.workspace.self_approval):
        wires.append(WorkspacePolicySet(self_approval=command.self_approval))
    if command.receipts_public not in (None, world.workspace.receipts_public):
        wires.append(WorkspacePolicySet(receipts_public=command.receipts_public))
    if command.unverified_outputs not in ("", world.workspace.unverified_outputs or REFUSE):
        wires.append(WorkspacePolicySet(unverified_outputs=command.unverified_outputs))
    if command.retry is not None and command.retry != world.workspace.retry:
        delay = msgspec.structs.asdict(command.retry.delay)
        wires.append(WorkspacePolicySet(retry=WorkspaceRetry(attempts=command.retry.max_attempts, **delay)))
    drafts = [Draft(wire, where, where, sender) for wire in wires]
    return Decision(drafts) if drafts else Decision(answer={"unchanged": True})


def raise_rules(world: World, command: RaiseRules, actor: Actor, now: int, ids: Ids) -> Decision:
    """Raise the rules of the workspace, up to those that this server supports."""
    if "operator" not in actor.scopes:
        raise Refused(403, "insufficient_scope", "Only an operator may raise the rules of a workspace.")
    if command.rules > RULES:
        raise Refused(422, "rules_unknown", f"This server supports rules up to {RULES}; upgrade it first.", "/rules")
    if command.rules <= world.workspace.rules:
        detail = f"The workspace already has rules {world.workspace.rules}; rules are never lowered."
        raise Refused(409, "rules_not_raised", detail)
    return on_workspace(world, WorkspaceRulesRaised(rules=command.rules), actor)


def add_party(world: World, command: AddParty, actor: Actor, now: int, ids: Ids) -> Decision:
    """Let an account write on the topic."""
    _check_operator(world, actor)
    if command.payer == world.workspace.operator or command.payer in world.parties:
        raise Refused(409, "party_exists", f"The account {command.payer} may already write on this topic.")
    if command.agent_id and command.agent_id not in world.agents:
        raise not_found("agent")
    return on_workspace(world, PartyAdded(payer=command.payer, agent_id=command.agent_id or None), actor)


def remove_party(world: World, command: RemoveParty, actor: Actor, now: int, ids: Ids) -> Decision:
    """Stop an account from writing on the topic."""
    _check_operator(world, actor)
    if command.payer not in world.parties:
        raise not_found("party")
    return on_workspace(world, PartyRemoved(payer=command.payer), actor)


def assign_topic(world: World, command: AssignTopic, actor: Actor, now: int, ids: Ids) -> Decision:
    """Assign a topic of a public network to the workspace."""
    _check_operator(world, actor)
    before = world.workspace.topics.get(f"{command.network}/{command.topic}")
    if before is not None and (before.retired_at or before.use != command.use):
        raise Refused(409, "topic_exists", f"The topic {command.topic} is retired, or has another use.")
    if before is None and command.use == "order" and world.workspace.is_ordered:
        raise Refused(409, "order_exists", "Another topic provides the order of this workspace; that cannot change.")
    payload = TopicAssigned(
        topic=command.topic,
        network=command.network,
        use=command.use,
        owner=command.owner,
        account=command.account or None,
    )
    return on_workspace(world, payload, actor)


def retire_topic(world: World, command: RetireTopic, actor: Actor, now: int, ids: Ids) -> Decision:
    """Stop using a topic of a public network."""
    _check_operator(world, actor)
    topic = world.workspace.topics.get(f"{command.network}/{command.topic}")
    if topic is None or topic.retired_at:
        raise not_found("topic")
    return on_workspace(world, TopicRetired(topic=command.topic, network=command.network), actor)


def _check_operator(world: World, actor: Actor) -> None:
    if "operator" not in actor.scopes:
        raise Refused(403, "insufficient_scope", "Only an operator may decide who writes on a workspace's topic.")
    check_rules(world, POLICY_RULES)


def on_workspace(world: World, payload: AnyPayload, actor: Actor) -> Decision:
    """Record a payload on the workspace's own stream."""
    where = f"workspace:{world.workspace.workspace_id}"
    return Decision([Draft(payload, where, where, actor.sender(world))])


def check_rules(world: World, needed: int) -> None:
    """Refuse a command that needs newer rules than the workspace has."""
    if world.workspace.rules < needed:
        detail = (
            f"The workspace has rules {world.workspace.rules}, this needs rules {needed}. "
            "An operator can raise them: redkey workspace raise-rules."
        )
        raise Refused(409, "rules_too_old", detail)
