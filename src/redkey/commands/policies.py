"""What a workspace decides for itself: its policies, who may write on its topic, the rules its records fold under."""

from __future__ import annotations

from collections.abc import Mapping
from typing import final

import msgspec

from redkey.commands.actor import Actor
from redkey.commands.decision import Decision, Refused, not_found
from redkey.commands.draft import Draft, Ids
from redkey.reducers.outputs import REFUSE
from redkey.reducers.spending import nano_usd
from redkey.reducers.task import block_route
from redkey.reducers.world import RULES, World
from redkey.wire.events import (
    AnyPayload,
    PartyAdded,
    PartyRemoved,
    WorkspaceBlockRoute,
    WorkspaceCostCap,
    WorkspacePolicySet,
    WorkspaceRulesRaised,
)

# Policies of the workspace and parties came with these rules.
POLICY_RULES = 2


@final
class SetPolicy(msgspec.Struct, frozen=True):
    """Policies to set; what is not named stays. `block_routes`: blocker type -> roles that are told; `cost_caps`:
    scope -> dollars, or None for no cap; `unverified_outputs`: whether outputs that RedKey did not see may complete."""

    block_routes: Mapping[str, tuple[str, ...]] = {}
    cost_caps: Mapping[str, float | None] = {}
    self_approval: bool | None = None
    receipts_public: bool | None = None
    unverified_outputs: str = ""
    # From the configuration, for a new workspace: its roles are yet to come.
    defaults: bool = False


@final
class RaiseRules(msgspec.Struct, frozen=True):
    """Let later records fold under newer rules; there is no way back."""

    rules: int = RULES


@final
class AddParty(msgspec.Struct, frozen=True):
    """Let an account write on the topic: as an agent, or, without one, as another server of the operator."""

    payer: str
    agent_id: str = ""


@final
class RemoveParty(msgspec.Struct, frozen=True):
    """Take the right to write on the topic from an account."""

    payer: str


def set_policy(world: World, command: SetPolicy, actor: Actor, now: int, ids: Ids) -> Decision:
    """One wire for each policy that changes."""
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
    drafts = [Draft(wire, where, where, sender) for wire in wires]
    return Decision(drafts) if drafts else Decision(answer={"unchanged": True})


def raise_rules(world: World, command: RaiseRules, actor: Actor, now: int, ids: Ids) -> Decision:
    if "operator" not in actor.scopes:
        raise Refused(403, "insufficient_scope", "Only an operator raises the rules of a workspace.")
    if command.rules > RULES:
        raise Refused(422, "rules_unknown", f"This server knows rules up to {RULES}; upgrade it first.", "/rules")
    if command.rules <= world.workspace.rules:
        detail = f"The workspace is under rules {world.workspace.rules} already; rules are never lowered."
        raise Refused(409, "rules_not_raised", detail)
    return on_workspace(world, WorkspaceRulesRaised(rules=command.rules), actor)


def add_party(world: World, command: AddParty, actor: Actor, now: int, ids: Ids) -> Decision:
    _check_operator(world, actor)
    if command.payer == world.workspace.operator or command.payer in world.parties:
        raise Refused(409, "party_exists", f"The account {command.payer} may write on this topic already.")
    if command.agent_id and command.agent_id not in world.agents:
        raise not_found("agent")
    return on_workspace(world, PartyAdded(payer=command.payer, agent_id=command.agent_id or None), actor)


def remove_party(world: World, command: RemoveParty, actor: Actor, now: int, ids: Ids) -> Decision:
    _check_operator(world, actor)
    if command.payer not in world.parties:
        raise not_found("party")
    return on_workspace(world, PartyRemoved(payer=command.payer), actor)


def _check_operator(world: World, actor: Actor) -> None:
    if "operator" not in actor.scopes:
        raise Refused(403, "insufficient_scope", "Only an operator says who may write on the topic of a workspace.")
    check_rules(world, POLICY_RULES)


def on_workspace(world: World, payload: AnyPayload, actor: Actor) -> Decision:
    """Record something on the workspace's own stream."""
    where = f"workspace:{world.workspace.workspace_id}"
    return Decision([Draft(payload, where, where, actor.sender(world))])


def check_rules(world: World, needed: int) -> None:
    """Refuse what the rules of a workspace do not know yet."""
    if world.workspace.rules < needed:
        detail = (
            f"The workspace is under rules {world.workspace.rules}, this needs rules {needed}. "
            "An operator raises them: redkey workspace raise-rules."
        )
        raise Refused(409, "rules_too_old", detail)
