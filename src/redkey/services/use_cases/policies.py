"""Policies of a workspace, and the rules its records fold under. They are on the ledger: all servers decide alike."""

from __future__ import annotations

from redkey.commands.decision import Refused, wrong
from redkey.commands.policies import RaiseRules, SetPolicy
from redkey.reducers.outputs import REFUSE
from redkey.reducers.retrying import RetryPolicy
from redkey.reducers.spending import NANO
from redkey.reducers.task import block_route
from redkey.reducers.world import BLOCK_ROUTES, RULES
from redkey.services.caller import Caller, Pending
from redkey.services.outcome import Outcome
from redkey.services.place import Place
from redkey.services.use_case import use_case
from redkey.services.use_cases.new_task import delay_of
from redkey.services.use_cases.workspaces import workspace_topic
from redkey.shapes import policies
from redkey.shapes.policies import (
    NewRules,
    Policy,
    PolicyChange,
    PolicyPatch,
    RaisedRules,
    ReceiptPolicy,
    RetryPolicyReply,
)
from redkey.wire.events import WorkspacePolicySet, WorkspaceRulesRaised


@use_case(policies.GET_POLICY)
def get_policy(caller: Caller, workspace_id: str) -> Policy:
    """Show the policies of a workspace, defaults included."""
    world = caller.means.coordinator.peek(workspace_topic(caller, workspace_id))
    routes = {kind: tuple(block_route(world, kind)) for kind in BLOCK_ROUTES}
    caps = {scope: nano / NANO for scope, nano in world.workspace.cost_caps.items()}
    workspace = world.workspace
    return Policy(
        workspace_id=workspace.workspace_id,
        rules=workspace.rules,
        block_routes=routes,
        cost_caps=caps,
        self_approval=workspace.self_approval,
        receipts=ReceiptPolicy(public=workspace.receipts_public),
        unverified_outputs=workspace.unverified_outputs or REFUSE,
        retry=_retry_reply(workspace.retry or RetryPolicy()),
    )


def _retry_reply(policy: RetryPolicy) -> RetryPolicyReply:
    delay = policy.delay
    return RetryPolicyReply(
        max_attempts=policy.max_attempts,
        delay_seconds=delay.delay_ms / 1000,
        backoff=delay.backoff_percent / 100,
        jitter=delay.jitter_percent / 100,
        longest_delay_seconds=delay.longest_ms / 1000,
    )


@use_case(policies.SET_POLICY)
def set_policy(caller: Caller, workspace_id: str, patch: PolicyPatch) -> Pending[PolicyChange]:
    """Set policies of a workspace, on the record."""
    routes = {str(kind): roles for kind, roles in patch.block_routes.items()}
    public = patch.receipts.public if patch.receipts is not None else None
    others = (patch.self_approval, public, patch.unverified_outputs, patch.retry)
    if not routes and not patch.cost_caps and others == (None, None, None, None):
        raise wrong("nothing_to_change", "", "name at least one policy to set")
    for kind, roles in routes.items():
        if len(set(roles)) != len(roles):
            raise wrong("role_repeated", f"/blockRoutes/{kind}", "a role is named twice")

    retry = RetryPolicy(patch.retry.max_attempts, delay_of(patch.retry)) if patch.retry is not None else None

    def reply(outcome: Outcome, place: Place) -> PolicyChange:
        payloads = (one.event.payload for one in outcome.records)
        changed = [one for one in payloads if isinstance(one, WorkspacePolicySet)]
        routed = [one.block_route for one in changed if one.block_route is not None]
        capped = [one.cost_cap for one in changed if one.cost_cap is not None]
        opened = [one.receipts_public for one in changed if one.receipts_public is not None]
        return PolicyChange(
            workspace_id=workspace_id,
            self_approval=next((one.self_approval for one in changed if one.self_approval is not None), None),
            receipts=ReceiptPolicy(public=opened[0]) if opened else None,
            block_routes={route.blocker_type: route.roles for route in routed},
            cost_caps={cap.scope: cap.cost_usd for cap in capped},
            event_id=outcome.event_id if changed else None,
            unverified_outputs=next((one.unverified_outputs for one in changed if one.unverified_outputs), None),
            retry=_retry_reply(retry) if retry is not None and any(one.retry for one in changed) else None,
        )

    caps = {str(scope): usd for scope, usd in patch.cost_caps.items()}
    return Pending(
        SetPolicy(routes, caps, patch.self_approval, public, patch.unverified_outputs or "", retry),
        reply,
        topic=workspace_topic(caller, workspace_id),
    )


@use_case(policies.RAISE_RULES)
def raise_rules(caller: Caller, workspace_id: str, new: NewRules) -> Pending[RaisedRules]:
    """Fold later records under newer rules; older servers stop serving the workspace, so none may be left."""
    behind = caller.means.servers_behind(new.rules) if new.rules <= RULES else ()
    if behind:
        detail = f"Servers that do not know rules {new.rules} are registered: {', '.join(behind)}. Upgrade them first."
        raise Refused(409, "servers_behind", detail)

    def reply(outcome: Outcome, place: Place) -> RaisedRules:
        rules = outcome.payload(WorkspaceRulesRaised).rules
        return RaisedRules(workspace_id=workspace_id, rules=rules, event_id=outcome.event_id)

    return Pending(RaiseRules(new.rules), reply, topic=workspace_topic(caller, workspace_id))
