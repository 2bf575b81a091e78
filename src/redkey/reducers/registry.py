"""What records mean for agents, roles, queues, keys, inboxes and the workspace itself."""

from __future__ import annotations

import msgspec

from redkey.reducers import gate
from redkey.reducers.claim import is_limited
from redkey.reducers.entities import Agent, Key, Message, Party, Queue, Role, Settings, Webhook
from redkey.reducers.event import Event
from redkey.reducers.spending import nano_usd
from redkey.reducers.world import LOST_AFTER_NANOSECONDS, World
from redkey.wire.events import (
    AgentDeactivated,
    AgentHeartbeat,
    AgentLost,
    AgentRegistered,
    AgentUpdated,
    CheckpointAnchored,
    ContentErased,
    CreditsGranted,
    CreditsPriced,
    InboxRead,
    InboxSent,
    KeyCreated,
    KeyRecovered,
    KeyRevoked,
    LedgerRestored,
    PartyAdded,
    PartyRemoved,
    PushRemoved,
    PushSet,
    QueueCreated,
    QueueUpdated,
    Ref,
    RoleCreated,
    RoleGranted,
    RoleRemoved,
    RoleRevoked,
    RoleUpdated,
    SignerAdded,
    SignerRetired,
    WebhookRemoved,
    WebhookSet,
    WorkspaceCreated,
    WorkspacePolicySet,
    WorkspaceRulesRaised,
)
from redkey.wire.times import parse_time

Void = str | None


def _sha256(ref: Ref | None) -> str:
    return ref.sha256 if ref is not None else ""


def agent_registered(world: World, e: Event, p: AgentRegistered) -> Void:
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


def _agent(world: World, e: Event) -> Agent | None:
    agent = world.agents.get(e.subject)
    if agent is not None:
        agent.stream_seq = max(agent.stream_seq, e.stream.stream_seq)
        e.changes.touch("agent", e.subject)
    return agent


def agent_updated(world: World, e: Event, p: AgentUpdated) -> Void:
    agent = _agent(world, e)
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
        # As a world that is loaded has it: being switched on is no sign of life.
        world.at(agent.last_act_at + LOST_AFTER_NANOSECONDS, "lost", e.subject)
    if p.active is not None:
        agent.active = p.active
    return None


def agent_deactivated(world: World, e: Event, p: AgentDeactivated) -> Void:
    agent = _agent(world, e)
    if agent is None:
        return "unknown_agent"
    agent.active = False
    return None


def agent_lost(world: World, e: Event, p: AgentLost) -> Void:
    agent = _agent(world, e)
    if agent is None:
        return "unknown_agent"
    agent.lost = True
    return None


def agent_heartbeat(world: World, e: Event, p: AgentHeartbeat) -> Void:
    agent = _agent(world, e)
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
    """Let the agents of an account share its usage limit: this one takes that of the others, and they take its own.

    An agent that speaks for itself pauses nobody else; a runner speaks for the account.
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
    """The agent was heard of: a lost one is back, and it is lost again only after a while of silence."""
    if agent.lost:
        agent.lost = False
        world.at(e.timestamp + LOST_AFTER_NANOSECONDS, "lost", agent.agent_id)
    agent.last_act_at = e.timestamp
    e.changes.touch("agent", agent.agent_id)


def role_created(world: World, e: Event, p: RoleCreated) -> Void:
    if e.subject in world.roles:
        return "role_exists"
    before = world.removed_roles.pop(e.subject, None)
    world.roles[e.subject] = Role(
        role_id=e.subject,
        created_at=e.timestamp,
        stream_seq=before.stream_seq + 1 if before is not None else 1,
        content_sha256=_sha256(p.role_ref),
        capabilities=p.capabilities or (),
    )
    e.changes.touch("role", e.subject)
    return None


def role_updated(world: World, e: Event, p: RoleUpdated) -> Void:
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
    return _grant(world, e, p.agent_id, add=True)


def role_revoked(world: World, e: Event, p: RoleRevoked) -> Void:
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


def queue_created(world: World, e: Event, p: QueueCreated) -> Void:
    if e.subject in world.queues:
        return "queue_exists"
    world.queues[e.subject] = Queue(
        queue_id=e.subject,
        created_at=e.timestamp,
        content_sha256=_sha256(p.name_ref),
        settings=msgspec.convert(msgspec.to_builtins(p.settings), Settings),
    )
    e.changes.touch("queue", e.subject)
    return None


def queue_updated(world: World, e: Event, p: QueueUpdated) -> Void:
    queue = world.queues.get(e.subject)
    if queue is None:
        return "unknown_queue"
    queue.stream_seq = max(queue.stream_seq, e.stream.stream_seq)
    queue.settings = msgspec.structs.replace(queue.settings, **msgspec.to_builtins(p.settings))
    if p.name_ref is not None:
        queue.content_sha256 = p.name_ref.sha256
    e.changes.touch("queue", e.subject)
    return None


def inbox_sent(world: World, e: Event, p: InboxSent) -> Void:
    if p.message_id in world.messages:
        return "message_exists"
    world.messages[p.message_id] = Message(
        message_id=p.message_id,
        to=p.to,
        priority=p.priority,
        message_type=p.message_type,
        body_sha256=p.body_ref.sha256,
        sender=e.sender,
        sent_at=e.timestamp,
        sequence=e.sequence,
        ref_task_id=p.ref_task_id or "",
        action_required=p.action_required,
    )
    _mail_stream(world, e)
    for kind in ("mail", "gate-mail"):
        world.agenda.pop((f"{kind}:{p.to}", p.ref_task_id or ""), None)
    e.changes.touch("message", p.message_id)
    if p.message_type == "exec.gate":
        gate.told(world, e, p)
    return None


def inbox_read(world: World, e: Event, p: InboxRead) -> Void:
    message = world.messages.get(p.message_id)
    if message is None:
        return "unknown_message"
    message.read_at = e.timestamp
    _mail_stream(world, e)
    # What has been read lives in rows only.
    del world.messages[message.message_id]
    e.changes.touch("message", message.message_id, message)
    return None


def _mail_stream(world: World, e: Event) -> None:
    if e.stream.stream_id.startswith("agent:"):
        _agent(world, e)
    else:
        _advance(world, e)


def _advance(world: World, e: Event) -> None:
    world.workspace.stream_seq = max(world.workspace.stream_seq, e.stream.stream_seq)
    e.changes.touch("workspace", "")


def workspace_created(world: World, e: Event, p: WorkspaceCreated) -> Void:
    if world.workspace.workspace_id:
        return "workspace_exists"
    _advance(world, e)
    world.workspace.workspace_id = e.subject
    world.workspace.rules = p.rules
    world.workspace.created_at = e.timestamp
    if world.workspace.rules > 1:
        world.workspace.operator = e.payer
    world.workspace.name_sha256 = _sha256(p.name_ref)
    world.workspace.self_approval = bool(p.self_approval)
    return None


def rules_raised(world: World, e: Event, p: WorkspaceRulesRaised) -> Void:
    _advance(world, e)
    if p.rules <= world.workspace.rules:
        return "rules_not_raised"
    world.workspace.rules = p.rules
    return None


def policy_set(world: World, e: Event, p: WorkspacePolicySet) -> Void:
    _advance(world, e)
    workspace, route, cap = world.workspace, p.block_route, p.cost_cap
    if route is not None:
        workspace.block_routes = {**workspace.block_routes, route.blocker_type: route.roles}
    if cap is not None:
        others = {scope: nano for scope, nano in workspace.cost_caps.items() if scope != cap.scope}
        workspace.cost_caps = others if cap.cost_usd is None else {**others, cap.scope: nano_usd(cap.cost_usd)}
    if p.self_approval is not None:
        workspace.self_approval = p.self_approval
    if p.receipts_public is not None:
        workspace.receipts_public = p.receipts_public
    if p.unverified_outputs is not None:
        workspace.unverified_outputs = p.unverified_outputs
    return None


def webhook_set(world: World, e: Event, p: WebhookSet | PushSet) -> Void:
    _advance(world, e)
    task_id = p.task_id if isinstance(p, PushSet) else ""
    key = p.push_id if isinstance(p, PushSet) else p.webhook_id
    webhook = Webhook(key, task_id, e.timestamp, e.sequence, _sha256(p.settings_ref))
    e.changes.touch("webhook", webhook.key, webhook)
    return None


def webhook_removed(world: World, e: Event, p: WebhookRemoved | PushRemoved) -> Void:
    _advance(world, e)
    task_id = p.task_id if isinstance(p, PushRemoved) else ""
    key = p.push_id if isinstance(p, PushRemoved) else p.webhook_id
    webhook = Webhook(key, task_id, e.timestamp, e.sequence, removed=True)
    e.changes.touch("webhook", webhook.key, webhook)
    return None


def party_added(world: World, e: Event, p: PartyAdded) -> Void:
    _advance(world, e)
    if p.payer == world.workspace.operator or p.payer in world.parties:
        return "party_exists"
    if p.agent_id is not None and p.agent_id not in world.agents:
        return "unknown_agent"
    world.parties[p.payer] = Party(p.payer, e.timestamp, e.sequence, p.agent_id or "")
    e.changes.touch("party", p.payer, world.parties[p.payer])
    return None


def party_removed(world: World, e: Event, p: PartyRemoved) -> Void:
    _advance(world, e)
    party = world.parties.pop(p.payer, None)
    if party is None:
        return "unknown_party"
    e.changes.touch("party", party.payer, msgspec.structs.replace(party, removed_at=e.timestamp))
    return None


def key_created(world: World, e: Event, p: KeyCreated | KeyRecovered) -> Void:
    _advance(world, e)
    if p.key_id in world.keys:
        return "key_exists"
    world.keys[p.key_id] = Key(
        key_id=p.key_id,
        prefix=p.prefix,
        scopes=p.scopes,
        created_at=e.timestamp,
        agent_id=(p.agent_id or "") if type(p) is KeyCreated else "",
        name_sha256=_sha256(p.name_ref) if type(p) is KeyCreated else "",
    )
    e.changes.touch("key", p.key_id)
    return None


def key_revoked(world: World, e: Event, p: KeyRevoked) -> Void:
    _advance(world, e)
    key = world.keys.get(p.key_id)
    if key is None:
        return "unknown_key"
    key.revoked_at = key.revoked_at or e.timestamp
    e.changes.touch("key", key.key_id)
    return None


def credits_granted(world: World, e: Event, p: CreditsGranted) -> Void:
    _advance(world, e)
    world.workspace.credits_granted += p.amount
    world.workspace.credits_unit = p.unit
    return None


def credits_priced(world: World, e: Event, p: CreditsPriced) -> Void:
    _advance(world, e)
    world.workspace.price_version = p.version
    world.workspace.price_sha256 = p.prices_ref.sha256
    world.workspace.prices = {**(e.structure or {})}
    return None


def noted(
    world: World,
    e: Event,
    p: ContentErased | SignerAdded | SignerRetired | LedgerRestored | CheckpointAnchored,
) -> Void:
    """Facts of the log itself and of content: on the record, and nothing in the world changes."""
    _advance(world, e)
    return None
