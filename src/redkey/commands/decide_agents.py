"""Decisions on agents and roles: register, update, deactivate, heartbeat; create, change, remove, grant, revoke."""

from __future__ import annotations

from redkey.commands.actor import Actor
from redkey.commands.claims import acting_agent
from redkey.commands.decision import Decision, Refused, not_found
from redkey.commands.draft import Draft, Ids
from redkey.commands.policies import check_rules
from redkey.commands.registry import (
    CreateRole,
    DeactivateAgent,
    GrantRole,
    HeartbeatAgent,
    RegisterAgent,
    RemoveRole,
    RevokeRole,
    UpdateAgent,
    UpdateRole,
)
from redkey.reducers.world import LOST_AFTER_NANOSECONDS, SECOND, World
from redkey.wire.events import (
    AgentDeactivated,
    AgentHeartbeat,
    AgentRegistered,
    AgentUpdated,
    AnyPayload,
    RoleCreated,
    RoleGranted,
    RoleRemoved,
    RoleRevoked,
    RoleUpdated,
)
from redkey.wire.times import write_time

CAPABILITIES_A_WIRE = 8
# The first version of the workspace rules that records pauses of agents.
PAUSE_RULES = 2
# The first version of the workspace rules under which roles can be changed and removed.
ROLE_RULES = 2


def register_agent(world: World, command: RegisterAgent, actor: Actor, now: int, ids: Ids) -> Decision:
    """Register an agent; the same card again records nothing."""
    if command.agent_id in world.agents:
        # The card was registered before: nothing new is recorded.
        return Decision(answer={"agent_id": command.agent_id})
    slug = command.slug if command.slug_given else _free_slug(world, command.slug)
    if slug in world.slugs:
        raise Refused(409, "slug_taken", f"An agent with the slug {command.slug!r} is already registered.")
    where, context, sender = _agent_place(world, command.agent_id, actor)
    first, more = command.capabilities[:CAPABILITIES_A_WIRE], command.capabilities[CAPABILITIES_A_WIRE:]
    payload = AgentRegistered(
        slug=slug, card_ref=command.card_ref, capabilities=first, verification=command.verification
    )
    drafts = [Draft(payload, where, context, sender)]
    drafts.extend(_more_capabilities(where, context, sender, more))
    return Decision(drafts)


def _free_slug(world: World, slug: str) -> str:
    """The slug itself or, if it is taken, with the first free number."""
    number, candidate = 1, slug
    while candidate in world.slugs:
        number += 1
        candidate = f"{slug[: 31 - len(str(number))]}-{number}"
    return candidate


def _agent_place(world: World, agent_id: str, actor: Actor) -> tuple[str, str, str]:
    return f"agent:{agent_id}", f"workspace:{world.workspace.workspace_id}", actor.sender(world)


def _more_capabilities(where: str, context: str, sender: str, more: tuple[str, ...]) -> list[Draft]:
    return [
        Draft(AgentUpdated(capabilities=more[i : i + CAPABILITIES_A_WIRE], add=True), where, context, sender)
        for i in range(0, len(more), CAPABILITIES_A_WIRE)
    ]


def update_agent(world: World, command: UpdateAgent, actor: Actor, now: int, ids: Ids) -> Decision:
    """Change an agent."""
    agent = world.agents.get(command.agent_id)
    if agent is None:
        raise not_found("agent")
    if command.slug and world.slugs.get(command.slug, agent.agent_id) != agent.agent_id:
        raise Refused(409, "slug_taken", f"An agent with the slug {command.slug!r} is already registered.", "/slug")
    able = command.capabilities
    payload = AgentUpdated(
        slug=command.slug or None,
        card_ref=command.card_ref,
        capabilities=able[:CAPABILITIES_A_WIRE] if able is not None else None,
        verification=command.verification or None,
        active=command.active,
    )
    where, context, sender = _agent_place(world, command.agent_id, actor)
    more = _more_capabilities(where, context, sender, able[CAPABILITIES_A_WIRE:] if able is not None else ())
    return Decision([Draft(payload, where, context, sender), *more])


def deactivate_agent(world: World, command: DeactivateAgent, actor: Actor, now: int, ids: Ids) -> Decision:
    """Deactivate an agent, if it is active."""
    agent = acting_agent(world, actor, command.agent_id)
    if not agent.active:
        return Decision()
    where, context, sender = _agent_place(world, command.agent_id, actor)
    return Decision([Draft(AgentDeactivated(), where, context, sender)])


def heartbeat_agent(world: World, command: HeartbeatAgent, actor: Actor, now: int, ids: Ids) -> Decision:
    """Record a heartbeat if something changed, or if a third of the time until the agent counts as lost has passed."""
    agent = acting_agent(world, actor, command.agent_id)
    if not agent.active:
        raise Refused(409, "inactive_agent", "The agent is not active; ask an admin to activate it.")
    changed = command.capacity not in (None, agent.capacity) or command.in_use not in (None, agent.in_use)
    pause = command.pause if world.workspace.rules >= PAUSE_RULES else None
    until = now + command.pause_seconds * SECOND if pause not in (None, "none") else 0
    changed = changed or (pause is not None and (pause.replace("none", ""), until) != (agent.pause, agent.paused_until))
    account = command.account if world.workspace.rules >= PAUSE_RULES else ""
    changed = changed or account not in ("", agent.account)
    quiet = now - max(agent.heartbeat_at, agent.last_act_at) < LOST_AFTER_NANOSECONDS // 3
    if quiet and not changed and not agent.lost:
        return Decision(answer={"active": agent.active})
    where, context, sender = _agent_place(world, command.agent_id, actor)
    payload = AgentHeartbeat(
        capacity=command.capacity,
        in_use=command.in_use,
        pause=pause,
        paused_until=write_time(until) if until else None,
        account=account or None,
    )
    return Decision([Draft(payload, where, context, sender)])


def create_role(world: World, command: CreateRole, actor: Actor, now: int, ids: Ids) -> Decision:
    """Create a role."""
    if command.role_id in world.roles:
        raise Refused(409, "role_exists", f"The role {command.role_id!r} already exists.")
    payload = RoleCreated(capabilities=command.capabilities or None, role_ref=command.role_ref)
    return Decision([_role_draft(world, command.role_id, payload, actor)])


def update_role(world: World, command: UpdateRole, actor: Actor, now: int, ids: Ids) -> Decision:
    """Change a role."""
    check_rules(world, ROLE_RULES)
    if command.role_id not in world.roles:
        raise not_found("role")
    payload = RoleUpdated(capabilities=command.capabilities, role_ref=command.role_ref)
    return Decision([_role_draft(world, command.role_id, payload, actor)])


def remove_role(world: World, command: RemoveRole, actor: Actor, now: int, ids: Ids) -> Decision:
    """Revoke the role from each holder, on the record, then remove it; refused while work needs it."""
    check_rules(world, ROLE_RULES)
    role_id, role = command.role_id, world.roles.get(command.role_id)
    if role is None:
        raise not_found("role")
    task = next((task for task in world.tasks.values() if role_id in task.roles and not task.ended_at), None)
    if task is not None:
        raise Refused(409, "role_in_use", f"{task.task_id} needs this role and has not ended; end or cancel it first.")
    runs = world.runs.values()
    run = next((run for run in runs if any(planned.role == role_id for planned in run.plan.tasks)), None)
    if run is not None:
        name = run.workflow.workflow_id
        raise Refused(409, "role_in_use", f"The plan of {name} needs this role; wait for its end, or cancel it.")
    revoked = [_role_draft(world, role_id, RoleRevoked(agent_id=agent_id), actor) for agent_id in role.agents]
    for draft in revoked:
        draft.leads = True
    return Decision([*revoked, _role_draft(world, role_id, RoleRemoved(), actor)])


def _role_draft(world: World, role_id: str, payload: AnyPayload, actor: Actor) -> Draft:
    context = f"workspace:{world.workspace.workspace_id}"
    return Draft(payload, f"role:{role_id}", context, actor.sender(world))


def grant_role(world: World, command: GrantRole, actor: Actor, now: int, ids: Ids) -> Decision:
    """Give a role to an agent."""
    return _grant(world, command.role_id, RoleGranted(agent_id=command.agent_id), actor)


def revoke_role(world: World, command: RevokeRole, actor: Actor, now: int, ids: Ids) -> Decision:
    """Take a role from an agent."""
    return _grant(world, command.role_id, RoleRevoked(agent_id=command.agent_id), actor)


def _grant(world: World, role_id: str, payload: RoleGranted | RoleRevoked, actor: Actor) -> Decision:
    role, agent_id = world.roles.get(role_id), payload.agent_id
    if role is None:
        raise not_found("role")
    if agent_id not in world.agents:
        raise not_found("agent")
    if (agent_id in role.agents) == isinstance(payload, RoleGranted):
        # The agent already has the role, or already lacks it: nothing is recorded.
        return Decision(answer={"unchanged": True})
    return Decision([_role_draft(world, role_id, payload, actor)])
