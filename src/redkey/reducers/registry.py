"""What records mean for agents, roles, queues, keys, inboxes and the workspace itself."""

from __future__ import annotations

from typing import Any

import msgspec

from redkey.reducers import gate
from redkey.reducers.entities import Agent, Key, Message, Party, Queue, Role, Settings
from redkey.reducers.event import Event
from redkey.reducers.world import LOST_AFTER_NANOSECONDS, World

Void = str | None


def agent_registered(world: World, e: Event) -> Void:
    if e.subject in world.agents:
        return "agent_exists"
    payload = e.payload
    if payload["slug"] in world.slugs:
        return "slug_taken"
    world.agents[e.subject] = Agent(
        agent_id=e.subject,
        slug=payload["slug"],
        card_sha256=payload["card_ref"]["sha256"],
        registered_at=e.timestamp,
        last_act_at=e.timestamp,
        verification=payload["verification"],
        capabilities=tuple(payload["capabilities"]),
    )
    world.slugs[payload["slug"]] = e.subject
    world.at(e.timestamp + LOST_AFTER_NANOSECONDS, "lost", e.subject)
    e.changes.touch("agent", e.subject)
    return None


def _agent(world: World, e: Event) -> Agent | None:
    agent = world.agents.get(e.subject)
    if agent is not None:
        agent.stream_seq = max(agent.stream_seq, e.wire["stream"]["stream_seq"])
        e.changes.touch("agent", e.subject)
    return agent


def agent_updated(world: World, e: Event) -> Void:
    agent = _agent(world, e)
    if agent is None:
        return "unknown_agent"
    payload = e.payload
    slug = payload.get("slug", agent.slug)
    if world.slugs.get(slug, e.subject) != e.subject:
        return "slug_taken"
    del world.slugs[agent.slug]
    agent.slug = slug
    world.slugs[slug] = e.subject
    if "card_ref" in payload:
        agent.card_sha256 = payload["card_ref"]["sha256"]
    if "capabilities" in payload:
        kept = agent.capabilities if payload.get("add") else ()
        agent.capabilities = tuple(dict.fromkeys((*kept, *payload["capabilities"])))
    agent.verification = payload.get("verification", agent.verification)
    if payload.get("active") and not agent.active:
        world.at(e.timestamp + LOST_AFTER_NANOSECONDS, "lost", e.subject)
    agent.active = payload.get("active", agent.active)
    return None


def agent_deactivated(world: World, e: Event) -> Void:
    agent = _agent(world, e)
    if agent is None:
        return "unknown_agent"
    agent.active = False
    return None


def agent_lost(world: World, e: Event) -> Void:
    agent = _agent(world, e)
    if agent is None:
        return "unknown_agent"
    agent.lost = True
    return None


def agent_heartbeat(world: World, e: Event) -> Void:
    agent = _agent(world, e)
    if agent is None:
        return "unknown_agent"
    agent.capacity = e.payload.get("capacity", agent.capacity)
    agent.in_use = e.payload.get("in_use", agent.in_use)
    agent.heartbeat_at = e.timestamp
    acted(world, agent, e)
    return None


def acted(world: World, agent: Agent, e: Event) -> None:
    """The agent was heard of: a lost one is back, and it is lost again only after a while of silence."""
    if agent.lost:
        agent.lost = False
        world.at(e.timestamp + LOST_AFTER_NANOSECONDS, "lost", agent.agent_id)
    agent.last_act_at = e.timestamp
    e.changes.touch("agent", agent.agent_id)


def role_created(world: World, e: Event) -> Void:
    if e.subject in world.roles:
        return "role_exists"
    ref = e.payload.get("role_ref")
    world.roles[e.subject] = Role(
        role_id=e.subject,
        created_at=e.timestamp,
        content_sha256=ref["sha256"] if ref else "",
        capabilities=tuple(e.payload.get("capabilities", ())),
    )
    e.changes.touch("role", e.subject)
    return None


def role_granted(world: World, e: Event) -> Void:
    return _grant(world, e, add=True)


def role_revoked(world: World, e: Event) -> Void:
    return _grant(world, e, add=False)


def _grant(world: World, e: Event, *, add: bool) -> Void:
    role, agent = world.roles.get(e.subject), world.agents.get(e.payload["agent_id"])
    if role is None:
        return "unknown_role"
    if agent is None:
        return "unknown_agent"
    role.stream_seq = max(role.stream_seq, e.wire["stream"]["stream_seq"])
    role.agents = tuple(sorted({*role.agents} | {agent.agent_id} if add else {*role.agents} - {agent.agent_id}))
    agent.roles = tuple(sorted({*agent.roles} | {role.role_id} if add else {*agent.roles} - {role.role_id}))
    e.changes.touch("role", role.role_id)
    e.changes.touch("agent", agent.agent_id)
    return None


def queue_created(world: World, e: Event) -> Void:
    if e.subject in world.queues:
        return "queue_exists"
    ref = e.payload.get("name_ref")
    world.queues[e.subject] = Queue(
        queue_id=e.subject,
        created_at=e.timestamp,
        content_sha256=ref["sha256"] if ref else "",
        settings=msgspec.convert(e.payload["settings"], Settings),
    )
    e.changes.touch("queue", e.subject)
    return None


def queue_updated(world: World, e: Event) -> Void:
    queue = world.queues.get(e.subject)
    if queue is None:
        return "unknown_queue"
    queue.stream_seq = max(queue.stream_seq, e.wire["stream"]["stream_seq"])
    queue.settings = msgspec.structs.replace(queue.settings, **e.payload["settings"])
    if "name_ref" in e.payload:
        queue.content_sha256 = e.payload["name_ref"]["sha256"]
    e.changes.touch("queue", e.subject)
    return None


def inbox_sent(world: World, e: Event) -> Void:
    payload = e.payload
    if payload["message_id"] in world.messages:
        return "message_exists"
    world.messages[payload["message_id"]] = Message(
        message_id=payload["message_id"],
        to=payload["to"],
        priority=payload["priority"],
        message_type=payload["message_type"],
        body_sha256=payload["body_ref"]["sha256"],
        sender=e.wire["sender"],
        sent_at=e.timestamp,
        sequence=e.sequence,
        ref_task_id=payload.get("ref_task_id", ""),
        action_required=payload["action_required"],
    )
    _mail_stream(world, e)
    for kind in ("mail", "gate-mail"):
        world.agenda.pop((f"{kind}:{payload['to']}", payload.get("ref_task_id", "")), None)
    e.changes.touch("message", payload["message_id"])
    if payload["message_type"] == "exec.gate":
        gate.told(world, e)
    return None


def inbox_read(world: World, e: Event) -> Void:
    message = world.messages.get(e.payload["message_id"])
    if message is None:
        return "unknown_message"
    message.read_at = e.timestamp
    _mail_stream(world, e)
    # What has been read lives in rows only.
    del world.messages[message.message_id]
    e.changes.touch("message", message.message_id, message)
    return None


def _mail_stream(world: World, e: Event) -> None:
    if e.wire["stream"]["stream_id"].startswith("agent:"):
        _agent(world, e)
    else:
        _advance(world, e)


def _advance(world: World, e: Event) -> None:
    world.workspace.stream_seq = max(world.workspace.stream_seq, e.wire["stream"]["stream_seq"])
    e.changes.touch("workspace", "")


def workspace_created(world: World, e: Event) -> Void:
    if world.workspace.workspace_id:
        return "workspace_exists"
    _advance(world, e)
    ref = e.payload.get("name_ref")
    world.workspace.workspace_id = e.subject
    world.workspace.rules = e.payload["rules"]
    world.workspace.created_at = e.timestamp
    if world.workspace.rules > 1:
        world.workspace.operator = e.payer
    world.workspace.name_sha256 = ref["sha256"] if ref else ""
    return None


def rules_raised(world: World, e: Event) -> Void:
    _advance(world, e)
    if e.payload["rules"] <= world.workspace.rules:
        return "rules_not_raised"
    world.workspace.rules = e.payload["rules"]
    return None


def policy_set(world: World, e: Event) -> Void:
    _advance(world, e)
    route = e.payload["block_route"]
    world.workspace.block_routes = {**world.workspace.block_routes, route["blocker_type"]: tuple(route["roles"])}
    return None


def party_added(world: World, e: Event) -> Void:
    _advance(world, e)
    payer, agent_id = e.payload["payer"], e.payload.get("agent_id", "")
    if payer == world.workspace.operator or payer in world.parties:
        return "party_exists"
    if agent_id and agent_id not in world.agents:
        return "unknown_agent"
    world.parties[payer] = Party(payer, e.timestamp, e.sequence, agent_id)
    e.changes.touch("party", payer, world.parties[payer])
    return None


def party_removed(world: World, e: Event) -> Void:
    _advance(world, e)
    party = world.parties.pop(e.payload["payer"], None)
    if party is None:
        return "unknown_party"
    e.changes.touch("party", party.payer, msgspec.structs.replace(party, removed_at=e.timestamp))
    return None


def key_created(world: World, e: Event) -> Void:
    _advance(world, e)
    payload: dict[str, Any] = e.payload
    if payload["key_id"] in world.keys:
        return "key_exists"
    world.keys[payload["key_id"]] = Key(
        key_id=payload["key_id"],
        prefix=payload["prefix"],
        scopes=tuple(payload["scopes"]),
        created_at=e.timestamp,
        agent_id=payload.get("agent_id", ""),
        name_sha256=payload["name_ref"]["sha256"] if "name_ref" in payload else "",
    )
    e.changes.touch("key", payload["key_id"])
    return None


def key_revoked(world: World, e: Event) -> Void:
    _advance(world, e)
    key = world.keys.get(e.payload["key_id"])
    if key is None:
        return "unknown_key"
    key.revoked_at = key.revoked_at or e.timestamp
    e.changes.touch("key", key.key_id)
    return None


def credits_granted(world: World, e: Event) -> Void:
    _advance(world, e)
    world.workspace.credits_granted += e.payload["amount"]
    world.workspace.credits_unit = e.payload["unit"]
    return None


def credits_priced(world: World, e: Event) -> Void:
    _advance(world, e)
    world.workspace.price_version = e.payload["version"]
    world.workspace.price_sha256 = e.payload["prices_ref"]["sha256"]
    world.workspace.prices = {**(e.structure or {})}
    return None


def noted(world: World, e: Event) -> Void:
    """Facts of the log itself and of content: on the record, and nothing in the world changes."""
    _advance(world, e)
    return None
