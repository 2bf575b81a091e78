"""What a workspace decides for itself: its policies, and the rules that its records fold under."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from redkey.commands.caller import Caller
from redkey.commands.decision import Decision, Refused
from redkey.commands.draft import Draft, Ids
from redkey.reducers.task import block_route
from redkey.reducers.world import RULES, World

# Policies of the workspace came with these rules.
POLICY_RULES = 2


class SetPolicy(msgspec.Struct, frozen=True):
    """Policies to set; what is not named stays. `block_routes`: blocker type -> roles that are told."""

    block_routes: Mapping[str, tuple[str, ...]]
    # From the configuration, for a new workspace: its roles are yet to come.
    defaults: bool = False


class RaiseRules(msgspec.Struct, frozen=True):
    """Let later records fold under newer rules; there is no way back."""

    rules: int = RULES


def set_policy(world: World, command: SetPolicy, caller: Caller, now: int, ids: Ids) -> Decision:
    """One wire for each route that changes."""
    check_rules(world, POLICY_RULES)
    for kind, roles in command.block_routes.items():
        for role in roles:
            if role not in world.roles and not command.defaults:
                detail = f"There is no role {role!r}; create it first."
                raise Refused(422, "unknown_role", detail, f"/blockRoutes/{kind}")
    where, sender = f"workspace:{world.workspace.workspace_id}", caller.sender(world)
    drafts = [
        Draft("workspace.policy_set", where, {"block_route": {"blocker_type": kind, "roles": [*roles]}}, where, sender)
        for kind, roles in command.block_routes.items()
        if block_route(world, kind) != roles
    ]
    return Decision(drafts) if drafts else Decision(answer={"unchanged": True})


def raise_rules(world: World, command: RaiseRules, caller: Caller, now: int, ids: Ids) -> Decision:
    if "operator" not in caller.scopes:
        raise Refused(403, "insufficient_scope", "Only an operator raises the rules of a workspace.")
    if command.rules > RULES:
        raise Refused(422, "rules_unknown", f"This server knows rules up to {RULES}; upgrade it first.", "/rules")
    if command.rules <= world.workspace.rules:
        detail = f"The workspace is under rules {world.workspace.rules} already; rules are never lowered."
        raise Refused(409, "rules_not_raised", detail)
    where = f"workspace:{world.workspace.workspace_id}"
    return Decision([Draft("workspace.rules_raised", where, {"rules": command.rules}, where, caller.sender(world))])


def check_rules(world: World, needed: int) -> None:
    """Refuse what the rules of a workspace do not know yet."""
    if world.workspace.rules < needed:
        detail = (
            f"The workspace is under rules {world.workspace.rules}, this needs rules {needed}. "
            "An operator raises them: redkey workspace raise-rules."
        )
        raise Refused(409, "rules_too_old", detail)
