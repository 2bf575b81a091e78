"""What records mean for agents and roles."""

from __future__ import annotations

from redkey.reducers.claim import is_limited
from redkey.reducers.entities import Agent, Role
from redkey.reducers.event import Event
from redkey.reducers.workspace import ref_sha256
from redkey.reducers.world import LOST_AFTER_NANOSECONDS, World
from redkey.wire.events import (
    AgentDeactivated,
    AgentHeartbeat,
    AgentLost,
    AgentRegistered,
    AgentUpdated,
    RoleCreated,
    RoleGranted,
    RoleRemoved,
    RoleRevoked,
    RoleUpdated,
)
from redkey.wire.times import parse_time

Void = str | None


def agent_registered(world: World, e: Event, p: AgentRegistered) -> Void:
    """Add an agent; its slug must be free."""
    if e.subject in world.agents:
        return "agent_exists"
    if p.slug in world.slugs:
        return "slug_taken"
    world.agents[e.subject] = Agent(
        agent_id=e.subject,
        slug=p.slug,
        card_sha256=p.card_ref.sha256,
        registered_at=e.timestamp,
        last_act_at=e.timestamp,
        verification=p.verification,
        capabilities=p.capabilities,
    )
    world.slugs[p.slug] = e.subject
    world.at(e.timestamp + LOST_AFTER_NANOSECONDS, "lost", e.subject)
    e.changes.touch("agent", e.subject)
    return None


def touch_agent(world: World, e: Event) -> Agent | None:
    """Return the agent whose stream the event is on, with its stream number updated."""
    agent = world.agents.get(e.subject)
    if agent is not None:
        agent.stream_seq = max(agent.stream_seq, e.stream.stream_seq)
        e.changes.touch("agent", e.subject)
    return agent


def agent_updated(world: World, e: Event, p: AgentUpdated) -> Void:
    """Change what an agent's card and its owner say: slug, card, capabilities, verification, active."""
    agent = touch_agent(world, e)
    if agent is None:
        return "unknown_agent"
    slug = p.slug if p.slug is not None else agent.slug
    if world.slugs.get(slug, e.subject) != e.subject:
        return "slug_taken"
    del world.slugs[agent.slug]
    agent.slug = slug
    world.slugs[slug] = e.subject
    if p.card_ref is not None:
        agent.card_sha256 = p.card_ref.sha256
    if p.capabilities is not None:
        kept = agent.capabilities if p.add else ()
        agent.capabilities = tuple(dict.fromkeys((*kept, *p.capabilities)))
    if p.verification is not None:
        agent.verification = p.verification
    if p.active and not agent.active:
        # Same as for a world loaded from rows: activating an agent does not count as an act of it.
        world.at(agent.last_act_at + LOST_AFTER_NANOSECONDS, "lost", e.subject)
    if p.active is not None:
        agent.active = p.active
    return None


def agent_deactivated(world: World, e: Event, p: AgentDeactivated) -> Void:
    """Deactivate an agent: it may claim nothing."""
    agent = touch_agent(world, e)
    if agent is None:
        return "unknown_agent"
    agent.active = False
    return None


def agent_lost(world: World, e: Event, p: AgentLost) -> Void:
    """Mark an agent as lost: it was not seen for too long."""
    agent = touch_agent(world, e)
    if agent is None:
        return "unknown_agent"
    agent.lost = True
    return None


def agent_heartbeat(world: World, e: Event, p: AgentHeartbeat) -> Void:
    """Store what an agent reports about itself: capacity, pause and account."""
    agent = touch_agent(world, e)
    if agent is None:
        return "unknown_agent"
    if p.capacity is not None:
        agent.capacity = p.capacity
    if p.in_use is not None:
        agent.in_use = p.in_use
    if p.pause is not None:
        agent.pause = "" if p.pause == "none" else p.pause
        agent.paused_until = parse_time(p.paused_until) if agent.pause and p.paused_until else 0
    if p.account is not None:
        agent.account = p.account
    if agent.account:
        _share_limit(world, agent, e)
    agent.heartbeat_at = e.timestamp
    acted(world, agent, e)
    return None


def _share_limit(world: World, agent: Agent, e: Event) -> None:
    """Share usage limits among the agents of one account: this agent takes those of the others, and they take its own.

    An agent with its own key pauses no other agent; a runner reports for the whole account.
    """
    same = [other for other in world.agents.values() if other.account == agent.account and other is not agent]
    limited = [other for other in same if is_limited(other, e.timestamp)]
    longest = max(limited, key=lambda other: other.paused_until, default=None)
    if longest is not None and longest.paused_until > agent.paused_until:
        agent.pause, agent.paused_until = longest.pause, longest.paused_until
    if not is_limited(agent, e.timestamp) or e.sender.startswith("agent:"):
        return
    for other in same:
        if other.paused_until < agent.paused_until:
            other.pause, other.paused_until = agent.pause, agent.paused_until
            e.changes.touch("agent", other.agent_id)


def acted(world: World, agent: Agent, e: Event) -> None:
    """Update when the agent was last seen. A lost agent is back, and a new timer watches for its next silence."""
    if agent.lost:
        agent.lost = False
        world.at(e.timestamp + LOST_AFTER_NANOSECONDS, "lost", agent.agent_id)
    agent.last_act_at = e.timestamp
    e.changes.touch("agent", agent.agent_id)


def role_created(world: World, e: Event, p: RoleCreated) -> Void:
    """Add a role; one that was removed continues its stream."""
    if e.subject in world.roles:
        return "role_exists"
    before = world.removed_roles.pop(e.subject, None)
    world.roles[e.subject] = Role(
        role_id=e.subject,
        created_at=e.timestamp,
        stream_seq=before.stream_seq + 1 if before is not None else 1,
        content_sha256=ref_sha256(p.role_ref),
        capabilities=p.capabilities or (),
    )
    e.changes.touch("role", e.subject)
    return None


def role_updated(world: World, e: Event, p: RoleUpdated) -> Void:
    """Change the capabilities or the description of a role."""
    role = world.roles.get(e.subject)
    if role is None:
        return "unknown_role"
    role.stream_seq = max(role.stream_seq, e.stream.stream_seq)
    if p.capabilities is not None:
        role.capabilities = p.capabilities
    if p.role_ref is not None:
        role.content_sha256 = p.role_ref.sha256
    e.changes.touch("role", e.subject)
    return None


def role_removed(world: World, e: Event, p: RoleRemoved) -> Void:
    """Remove a role that no agent has."""
    role = world.roles.get(e.subject)
    if role is None:
        return "unknown_role"
    role.stream_seq = max(role.stream_seq, e.stream.stream_seq)
    e.changes.touch("role", e.subject)
    if role.agents:
        return "role_held"
    role.removed_at = e.timestamp
    world.removed_roles[e.subject] = world.roles.pop(e.subject)
    e.changes.touch("role", e.subject, role)
    return None


def role_granted(world: World, e: Event, p: RoleGranted) -> Void:
    """Give a role to an agent."""
    return _grant(world, e, p.agent_id, add=True)


def role_revoked(world: World, e: Event, p: RoleRevoked) -> Void:
    """Take a role from an agent."""
    return _grant(world, e, p.agent_id, add=False)


def _grant(world: World, e: Event, agent_id: str, *, add: bool) -> Void:
    role, agent = world.roles.get(e.subject), world.agents.get(agent_id)
    if role is None:
        return "unknown_role"
    if agent is None:
        return "unknown_agent"
    role.stream_seq = max(role.stream_seq, e.stream.stream_seq)
    role.agents = tuple(sorted({*role.agents} | {agent.agent_id} if add else {*role.agents} - {agent.agent_id}))
    agent.roles = tuple(sorted({*agent.roles} | {role.role_id} if add else {*agent.roles} - {role.role_id}))
    e.changes.touch("role", role.role_id)
    e.changes.touch("agent", agent.agent_id)
    return None
