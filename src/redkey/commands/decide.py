"""Decide: one command against the world of its place in the order."""

from __future__ import annotations

from typing import assert_never

from redkey.commands import claims, holds, policies, registry, tasks, webhooks, workflows
from redkey.commands.actor import Actor
from redkey.commands.command import Command, RegistryCommand
from redkey.commands.decision import Decision
from redkey.commands.draft import Ids
from redkey.commands.past import Past
from redkey.reducers.world import World


def decide(world: World, command: Command, actor: Actor, now: int, ids: Ids, past: Past) -> Decision:
    """Decide a command: return the wires it writes, or an answer that writes nothing; raise Refused. Changes nothing.

    There is one case for each command, the most frequent first, and mypy reports a missing one. `past` holds what the
    decision needs of tasks and claims that have left the world (`wanted` says what that is).
    """
    c = command
    if type(c) is claims.ClaimNext:
        return claims.claim_next(world, c, actor, now, ids)
    if type(c) is tasks.CreateTask:
        return tasks.create(world, c, actor, now, ids, past)
    if type(c) is claims.CompleteClaim:
        return holds.complete(world, c, actor, now, ids, past)
    if type(c) is claims.ClaimTask:
        return claims.claim_task(world, c, actor, now, ids, past)
    if type(c) is claims.StartClaim:
        return holds.start(world, c, actor, now, ids, past)
    if type(c) is claims.HeartbeatClaim:
        return holds.heartbeat(world, c, actor, now, ids, past)
    if type(c) is claims.AddArtifact:
        return holds.add_artifact(world, c, actor, now, ids, past)
    if type(c) is workflows.StartWorkflow:
        return workflows.start(world, c, actor, now, ids)
    if type(c) is workflows.PublishDefinition:
        return workflows.publish(world, c, actor, now, ids)
    if type(c) is claims.ReleaseClaim:
        return holds.release(world, c, actor, now, ids, past)
    if type(c) is claims.BlockClaim:
        return holds.block(world, c, actor, now, ids, past)
    if type(c) is claims.PlanClaim:
        return holds.plan(world, c, actor, now, ids, past)
    if type(c) is claims.ReportUsage:
        return holds.report_usage(world, c, actor, now, ids, past)
    if type(c) is claims.ReportProgress:
        return holds.report_progress(world, c, actor, now, ids, past)
    if type(c) is claims.FailClaim:
        return holds.fail(world, c, actor, now, ids, past)
    if type(c) is tasks.CancelTask:
        return tasks.cancel(world, c, actor, now, ids, past)
    if type(c) is tasks.RetryTask:
        return tasks.retry(world, c, actor, now, ids, past)
    if type(c) is tasks.UnblockTask:
        return tasks.unblock(world, c, actor, now, ids, past)
    if type(c) is tasks.AddMessage:
        return tasks.add_message(world, c, actor, now, ids, past)
    if type(c) is tasks.RaiseConcern:
        return tasks.raise_concern(world, c, actor, now, ids, past)
    if type(c) is workflows.PauseWorkflow:
        return workflows.pause(world, c, actor, now, ids, past)
    if type(c) is workflows.ResumeWorkflow:
        return workflows.resume(world, c, actor, now, ids, past)
    if type(c) is workflows.CancelWorkflow:
        return workflows.cancel(world, c, actor, now, ids, past)
    if type(c) is workflows.ApproveGate:
        return workflows.approve(world, c, actor, now, ids, past)
    if type(c) is workflows.RejectGate:
        return workflows.reject(world, c, actor, now, ids, past)
    return _decide_registry(world, c, actor, now, ids, past)


def _decide_registry(world: World, c: RegistryCommand, actor: Actor, now: int, ids: Ids, past: Past) -> Decision:
    """Decide a command that sets up the workspace: agents, roles, queues, keys, policies, credits, messages."""
    if type(c) is registry.CreateWorkspace:
        return registry.create_workspace(world, c, actor, now, ids)
    if type(c) is policies.SetPolicy:
        return policies.set_policy(world, c, actor, now, ids)
    if type(c) is policies.RaiseRules:
        return policies.raise_rules(world, c, actor, now, ids)
    if type(c) is policies.AddParty:
        return policies.add_party(world, c, actor, now, ids)
    if type(c) is policies.RemoveParty:
        return policies.remove_party(world, c, actor, now, ids)
    if (
        type(c) is webhooks.SetWebhook
        or type(c) is webhooks.RemoveWebhook
        or type(c) is webhooks.SetPush
        or type(c) is webhooks.RemovePush
    ):
        return webhooks.decide_webhook(world, c, actor)
    if type(c) is registry.CreateKey:
        return registry.create_key(world, c, actor, now, ids)
    if type(c) is registry.RevokeKey:
        return registry.revoke_key(world, c, actor, now, ids)
    if type(c) is registry.RegisterAgent:
        return registry.register_agent(world, c, actor, now, ids)
    if type(c) is registry.UpdateAgent:
        return registry.update_agent(world, c, actor, now, ids)
    if type(c) is registry.DeactivateAgent:
        return registry.deactivate_agent(world, c, actor, now, ids)
    if type(c) is registry.HeartbeatAgent:
        return registry.heartbeat_agent(world, c, actor, now, ids)
    if type(c) is registry.CreateRole:
        return registry.create_role(world, c, actor, now, ids)
    if type(c) is registry.UpdateRole:
        return registry.update_role(world, c, actor, now, ids)
    if type(c) is registry.RemoveRole:
        return registry.remove_role(world, c, actor, now, ids)
    if type(c) is registry.GrantRole:
        return registry.grant_role(world, c, actor, now, ids)
    if type(c) is registry.RevokeRole:
        return registry.revoke_role(world, c, actor, now, ids)
    if type(c) is registry.CreateQueue:
        return registry.create_queue(world, c, actor, now, ids)
    if type(c) is registry.UpdateQueue:
        return registry.update_queue(world, c, actor, now, ids)
    if type(c) is registry.GrantCredits:
        return registry.grant_credits(world, c, actor, now, ids)
    if type(c) is registry.PriceCredits:
        return registry.price_credits(world, c, actor, now, ids)
    if type(c) is registry.EraseContent:
        return registry.erase_content(world, c, actor, now, ids)
    if type(c) is registry.SendMessage:
        return registry.send_message(world, c, actor, now, ids, past)
    if type(c) is registry.ReadMessage:
        return registry.read_message(world, c, actor, now, ids, past)
    assert_never(c)
