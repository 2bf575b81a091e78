"""Decide: one command against the world of its place in the order."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from redkey.commands import claims, holds, policies, registry, tasks, workflows
from redkey.commands.caller import Caller
from redkey.commands.decision import Decision
from redkey.commands.draft import Ids
from redkey.commands.past import Past
from redkey.reducers.world import World

Decide = Callable[[World, Any, Caller, int, Ids], Decision]
Recalling = Callable[[World, Any, Caller, int, Ids, Past], Decision]

# Decided by the world alone.
DECIDERS: Mapping[type, Decide] = {
    claims.ClaimNext: claims.claim_next,
    workflows.StartWorkflow: workflows.start,
    workflows.PublishDefinition: workflows.publish,
    registry.CreateWorkspace: registry.create_workspace,
    policies.SetPolicy: policies.set_policy,
    policies.RaiseRules: policies.raise_rules,
    policies.AddParty: policies.add_party,
    policies.RemoveParty: policies.remove_party,
    registry.CreateKey: registry.create_key,
    registry.RevokeKey: registry.revoke_key,
    registry.RegisterAgent: registry.register_agent,
    registry.UpdateAgent: registry.update_agent,
    registry.DeactivateAgent: registry.deactivate_agent,
    registry.HeartbeatAgent: registry.heartbeat_agent,
    registry.CreateRole: registry.create_role,
    registry.GrantRole: registry.grant_role,
    registry.RevokeRole: registry.revoke_role,
    registry.CreateQueue: registry.create_queue,
    registry.UpdateQueue: registry.update_queue,
    registry.GrantCredits: registry.grant_credits,
    registry.PriceCredits: registry.price_credits,
    registry.EraseContent: registry.erase_content,
}
# Decided by the world and by what has left it (`wanted` says what that is).
RECALLING: Mapping[type, Recalling] = {
    claims.ClaimTask: claims.claim_task,
    claims.StartClaim: holds.start,
    claims.ReleaseClaim: holds.release,
    claims.HeartbeatClaim: holds.heartbeat,
    claims.BlockClaim: holds.block,
    claims.AddArtifact: holds.add_artifact,
    claims.PlanClaim: holds.plan,
    claims.CompleteClaim: holds.complete,
    claims.FailClaim: holds.fail,
    tasks.CreateTask: tasks.create,
    tasks.CancelTask: tasks.cancel,
    tasks.RetryTask: tasks.retry,
    tasks.UnblockTask: tasks.unblock,
    tasks.AddMessage: tasks.add_message,
    tasks.RaiseConcern: tasks.raise_concern,
    workflows.PauseWorkflow: workflows.pause,
    workflows.ResumeWorkflow: workflows.resume,
    workflows.CancelWorkflow: workflows.cancel,
    workflows.ApproveGate: workflows.approve,
    workflows.RejectGate: workflows.reject,
    registry.SendMessage: registry.send_message,
    registry.ReadMessage: registry.read_message,
}


def decide(world: World, command: Any, caller: Caller, now: int, ids: Ids, past: Past) -> Decision:
    """The wires that a command asks for, an answer that writes nothing, or Refused. Nothing is changed or read."""
    kind = type(command)
    if kind in DECIDERS:
        return DECIDERS[kind](world, command, caller, now, ids)
    return RECALLING[kind](world, command, caller, now, ids, past)
