"""Decide one command against the world at its place in the order."""

from __future__ import annotations

from typing import assert_never

from redkey.commands import (
    artifacts,
    claims,
    completion,
    decide_agents,
    decide_workspace,
    holds,
    policies,
    projects,
    registry,
    tasks,
    webhooks,
    workflows,
)
from redkey.commands.actor import Actor
from redkey.commands.command import Command, RegistryCommand
from redkey.commands.decision import Decision
from redkey.commands.draft import Ids
from redkey.commands.past import Past
from redkey.reducers.world import World


def decide(world: World, command: Command, actor: Actor, now: int, ids: Ids, past: Past) -> Decision:
    """Decide a command: return the wires it writes, or an answer that writes nothing; raise Refused. Changes nothing.

    There is one case for each command, the most frequent first, and mypy reports a missing one. `past` holds what the
    decision needs to know of tasks and claims that have left the world (see `wanted`).
    """
    c = command
    if type(c) is claims.ClaimNext:
        return claims.claim_next(world, c, actor, now, ids)
    if type(c) is tasks.CreateTask:
        return tasks.create(world, c, actor, now, ids, past)
    if type(c) is claims.CompleteClaim:
        return completion.complete(world, c, actor, now, ids, past)
    if type(c) is claims.ClaimTask:
        return claims.claim_task(world, c, actor, now, ids, past)
    if type(c) is claims.StartClaim:
        return holds.start(world, c, actor, now, ids, past)
    if type(c) is claims.HeartbeatClaim:
        return holds.heartbeat(world, c, actor, now, ids, past)
    if type(c) is claims.AddArtifact:
        return artifacts.add_artifact(world, c, actor, now, ids, past)
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
        return completion.fail(world, c, actor, now, ids, past)
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
        return decide_workspace.create_workspace(world, c, actor, now, ids)
    if type(c) is policies.SetPolicy:
        return policies.set_policy(world, c, actor, now, ids)
    if type(c) is policies.RaiseRules:
        return policies.raise_rules(world, c, actor, now, ids)
    if type(c) is policies.AddParty:
        return policies.add_party(world, c, actor, now, ids)
    if type(c) is policies.RemoveParty:
        return policies.remove_party(world, c, actor, now, ids)
    if type(c) is policies.AssignTopic:
        return policies.assign_topic(world, c, actor, now, ids)
    if type(c) is policies.RetireTopic:
        return policies.retire_topic(world, c, actor, now, ids)
    if (
        type(c) is webhooks.SetWebhook
        or type(c) is webhooks.RemoveWebhook
        or type(c) is webhooks.SetPush
        or type(c) is webhooks.RemovePush
    ):
        return webhooks.decide_webhook(world, c, actor)
    if type(c) is projects.CreateProject or type(c) is projects.ChangeProject:
        return projects.decide_project(world, c, actor)
    if type(c) is registry.CreateKey:
        return decide_workspace.create_key(world, c, actor, now, ids)
    if type(c) is registry.RevokeKey:
        return decide_workspace.revoke_key(world, c, actor, now, ids)
    if type(c) is registry.RegisterAgent:
        return decide_agents.register_agent(world, c, actor, now, ids)
    if type(c) is registry.UpdateAgent:
        return decide_agents.update_agent(world, c, actor, now, ids)
    if type(c) is registry.DeactivateAgent:
        return decide_agents.deactivate_agent(world, c, actor, now, ids)
    if type(c) is registry.HeartbeatAgent:
        return decide_agents.heartbeat_agent(world, c, actor, now, ids)
    if type(c) is registry.CreateRole:
        return decide_agents.create_role(world, c, actor, now, ids)
    if type(c) is registry.UpdateRole:
        return decide_agents.update_role(world, c, actor, now, ids)
    if type(c) is registry.RemoveRole:
        return decide_agents.remove_role(world, c, actor, now, ids)
    if type(c) is registry.GrantRole:
        return decide_agents.grant_role(world, c, actor, now, ids)
    if type(c) is registry.RevokeRole:
        return decide_agents.revoke_role(world, c, actor, now, ids)
    if type(c) is registry.CreateQueue:
        return decide_workspace.create_queue(world, c, actor, now, ids)
    if type(c) is registry.UpdateQueue:
        return decide_workspace.update_queue(world, c, actor, now, ids)
    if type(c) is registry.GrantCredits:
        return decide_workspace.grant_credits(world, c, actor, now, ids)
    if type(c) is registry.PriceCredits:
        return decide_workspace.price_credits(world, c, actor, now, ids)
    if type(c) is registry.EraseContent:
        return decide_workspace.erase_content(world, c, actor, now, ids)
    if type(c) is registry.SendMessage:
        return decide_workspace.send_message(world, c, actor, now, ids, past)
    if type(c) is registry.ReadMessage:
        return decide_workspace.read_message(world, c, actor, now, ids, past)
    assert_never(c)
