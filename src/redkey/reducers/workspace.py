"""What records mean for the workspace itself: rules, policies, webhooks, topics, parties, keys and credits."""

from __future__ import annotations

import msgspec

from redkey.reducers.entities import Key, Party, Topic, Webhook
from redkey.reducers.event import Event
from redkey.reducers.retrying import RetryDelay, RetryPolicy
from redkey.reducers.spending import nano_usd
from redkey.reducers.world import World
from redkey.wire.events import (
    CheckpointAnchored,
    ContentErased,
    CreditsGranted,
    CreditsPriced,
    KeyCreated,
    KeyRecovered,
    KeyRevoked,
    LedgerRestored,
    PartyAdded,
    PartyRemoved,
    PushRemoved,
    PushSet,
    Ref,
    SignerAdded,
    SignerRetired,
    TopicAssigned,
    TopicRetired,
    WebhookRemoved,
    WebhookSet,
    WorkspaceCreated,
    WorkspacePolicySet,
    WorkspaceRulesRaised,
)

Void = str | None


def ref_sha256(ref: Ref | None) -> str:
    """The hash of a content reference; empty without one."""
    return ref.sha256 if ref is not None else ""


def advance_workspace(world: World, e: Event) -> None:
    """Update the stream number of the workspace and mark its row to be written."""
    world.workspace.stream_seq = max(world.workspace.stream_seq, e.stream.stream_seq)
    e.changes.touch("workspace", "")


def workspace_created(world: World, e: Event, p: WorkspaceCreated) -> Void:
    """Set up the workspace; the first record of its topic."""
    if world.workspace.workspace_id:
        return "workspace_exists"
    advance_workspace(world, e)
    world.workspace.workspace_id = e.subject
    world.workspace.rules = p.rules
    world.workspace.created_at = e.timestamp
    if world.workspace.rules > 1:
        world.workspace.operator = e.payer
    world.workspace.name_sha256 = ref_sha256(p.name_ref)
    world.workspace.self_approval = bool(p.self_approval)
    return None


def rules_raised(world: World, e: Event, p: WorkspaceRulesRaised) -> Void:
    """Raise the rules that later records fold under."""
    advance_workspace(world, e)
    if p.rules <= world.workspace.rules:
        return "rules_not_raised"
    world.workspace.rules = p.rules
    # The rules decide how a task with an open gate is listed, so its row must be written again.
    for open_gate in world.gates.values():
        e.changes.touch("task", open_gate.task_id)
    return None


def policy_set(world: World, e: Event, p: WorkspacePolicySet) -> Void:
    """Change one policy of the workspace."""
    advance_workspace(world, e)
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
    if p.retry is not None:
        policy = p.retry
        delay = RetryDelay(policy.delay_ms, policy.backoff_percent, policy.jitter_percent, policy.longest_ms)
        workspace.retry = RetryPolicy(policy.attempts, delay)
    return None


def webhook_set(world: World, e: Event, p: WebhookSet | PushSet) -> Void:
    """Create or change a webhook of the workspace, or a push config of a task."""
    advance_workspace(world, e)
    task_id = p.task_id if isinstance(p, PushSet) else ""
    key = p.push_id if isinstance(p, PushSet) else p.webhook_id
    webhook = Webhook(key, task_id, e.timestamp, e.sequence, ref_sha256(p.settings_ref))
    e.changes.touch("webhook", webhook.key, webhook)
    return None


def webhook_removed(world: World, e: Event, p: WebhookRemoved | PushRemoved) -> Void:
    """Remove a webhook of the workspace, or a push config of a task."""
    advance_workspace(world, e)
    task_id = p.task_id if isinstance(p, PushRemoved) else ""
    key = p.push_id if isinstance(p, PushRemoved) else p.webhook_id
    webhook = Webhook(key, task_id, e.timestamp, e.sequence, removed=True)
    e.changes.touch("webhook", webhook.key, webhook)
    return None


def topic_assigned(world: World, e: Event, p: TopicAssigned) -> Void:
    """Assign a topic of a public network to the workspace; at most one topic provides the order."""
    advance_workspace(world, e)
    name, topics = f"{p.network}/{p.topic}", world.workspace.topics
    before = topics.get(name)
    if before is not None and (before.retired_at or before.use != p.use):
        return "topic_exists"
    if before is None and p.use == "order" and world.workspace.is_ordered:
        return "order_exists"
    since = before.assigned_at if before is not None else e.timestamp
    topic = Topic(p.topic, p.network, p.use, p.owner, since, p.account or "")
    world.workspace.topics = {**topics, name: topic}
    return None


def topic_retired(world: World, e: Event, p: TopicRetired) -> Void:
    """Retire a topic of the workspace; it is not used again."""
    advance_workspace(world, e)
    name, topics = f"{p.network}/{p.topic}", world.workspace.topics
    topic = topics.get(name)
    if topic is None or topic.retired_at:
        return "unknown_topic"
    world.workspace.topics = {**topics, name: msgspec.structs.replace(topic, retired_at=e.timestamp)}
    return None


def party_added(world: World, e: Event, p: PartyAdded) -> Void:
    """Let an account write on the topic, as an agent or as another server of the operator."""
    advance_workspace(world, e)
    if p.payer == world.workspace.operator or p.payer in world.parties:
        return "party_exists"
    if p.agent_id is not None and p.agent_id not in world.agents:
        return "unknown_agent"
    world.parties[p.payer] = Party(p.payer, e.timestamp, e.sequence, p.agent_id or "")
    e.changes.touch("party", p.payer, world.parties[p.payer])
    return None


def party_removed(world: World, e: Event, p: PartyRemoved) -> Void:
    """Stop an account from writing on the topic."""
    advance_workspace(world, e)
    party = world.parties.pop(p.payer, None)
    if party is None:
        return "unknown_party"
    e.changes.touch("party", party.payer, msgspec.structs.replace(party, removed_at=e.timestamp))
    return None


def key_created(world: World, e: Event, p: KeyCreated | KeyRecovered) -> Void:
    """Add an API key."""
    advance_workspace(world, e)
    if p.key_id in world.keys:
        return "key_exists"
    person = type(p) is KeyCreated and p.person is True
    if person and world.workspace.rules < 2:
        return "rules_too_old"
    world.keys[p.key_id] = Key(
        key_id=p.key_id,
        prefix=p.prefix,
        scopes=p.scopes,
        created_at=e.timestamp,
        agent_id=(p.agent_id or "") if type(p) is KeyCreated else "",
        name_sha256=ref_sha256(p.name_ref) if type(p) is KeyCreated else "",
        person=person,
    )
    e.changes.touch("key", p.key_id)
    return None


def key_revoked(world: World, e: Event, p: KeyRevoked) -> Void:
    """Revoke an API key."""
    advance_workspace(world, e)
    key = world.keys.get(p.key_id)
    if key is None:
        return "unknown_key"
    key.revoked_at = key.revoked_at or e.timestamp
    e.changes.touch("key", key.key_id)
    return None


def credits_granted(world: World, e: Event, p: CreditsGranted) -> Void:
    """Add credits that the workspace may spend."""
    advance_workspace(world, e)
    world.workspace.credits_granted += p.amount
    world.workspace.credits_unit = p.unit
    return None


def credits_priced(world: World, e: Event, p: CreditsPriced) -> Void:
    """Replace the price table."""
    advance_workspace(world, e)
    world.workspace.price_version = p.version
    world.workspace.price_sha256 = p.prices_ref.sha256
    world.workspace.prices = {**(e.structure or {})}
    return None


def noted(
    world: World,
    e: Event,
    p: ContentErased | SignerAdded | SignerRetired | LedgerRestored | CheckpointAnchored,
) -> Void:
    """Record a fact about the log or its content; the world does not change."""
    advance_workspace(world, e)
    return None
