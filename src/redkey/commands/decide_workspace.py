"""Decisions on the workspace itself, its keys, queues, inboxes, credits and content."""

from __future__ import annotations

import msgspec

from redkey.commands.actor import Actor
from redkey.commands.claims import acting_agent
from redkey.commands.decision import Decision, Refused, not_found
from redkey.commands.draft import Draft, Ids
from redkey.commands.past import Past
from redkey.commands.policies import check_rules
from redkey.commands.registry import (
    KEY_HASH_DIGITS,
    CreateKey,
    CreateQueue,
    CreateWorkspace,
    EraseContent,
    GrantCredits,
    PriceCredits,
    QueueChoices,
    ReadMessage,
    RevokeKey,
    SendMessage,
    UpdateQueue,
)
from redkey.reducers.entities import Key
from redkey.reducers.world import RULES, World
from redkey.wire.events import (
    AnyPayload,
    ContentErased,
    CreditsGranted,
    CreditsPriced,
    InboxRead,
    InboxSent,
    KeyCreated,
    KeyRevoked,
    QueueCreated,
    QueueSettings,
    QueueUpdated,
    WorkspaceCreated,
)

# The first version of the workspace rules under which a key can be a person who logs in.
PERSON_RULES = 2


def _workspace(world: World, payload: AnyPayload, sender: str, workspace_id: str = "") -> Decision:
    where = f"workspace:{workspace_id or world.workspace.workspace_id}"
    return Decision([Draft(payload, where, where, sender)])


def create_workspace(world: World, command: CreateWorkspace, actor: Actor, now: int, ids: Ids) -> Decision:
    """Create the workspace of a topic that has none."""
    if world.workspace.workspace_id:
        raise Refused(409, "workspace_exists", "The workspace already exists.")
    self_approval = True if command.self_approval else None
    payload = WorkspaceCreated(rules=RULES, name_ref=command.name_ref, self_approval=self_approval)
    return _workspace(world, payload, actor.sender(world), command.workspace_id)


def create_key(world: World, command: CreateKey, actor: Actor, now: int, ids: Ids) -> Decision:
    """Create an API key."""
    if command.key_id in world.keys:
        raise Refused(409, "key_exists", f"The key {command.key_id!r} already exists.")
    if command.agent_id and command.agent_id not in world.agents:
        raise not_found("agent")
    if command.person:
        check_rules(world, PERSON_RULES)
    payload = KeyCreated(
        key_id=command.key_id,
        scopes=command.scopes,
        prefix=command.prefix,
        key_hash=command.secret_sha256[:KEY_HASH_DIGITS] or None,
        agent_id=command.agent_id or None,
        name_ref=command.name_ref,
        person=True if command.person else None,
    )
    return _workspace(world, payload, actor.sender(world))


def revoke_key(world: World, command: RevokeKey, actor: Actor, now: int, ids: Ids) -> Decision:
    """Revoke an API key, unless no other key could create new ones."""
    key = world.keys.get(command.key_id)
    if key is None or key.revoked_at:
        raise not_found("key")
    _keep_a_last_key(world, key, actor)
    return _workspace(world, KeyRevoked(key_id=command.key_id), actor.sender(world))


def _keep_a_last_key(world: World, key: Key, actor: Actor) -> None:
    """Refuse to revoke the last key that could create other keys.

    Only an operator can revoke an operator key, so the actor's own key remains unless it revokes itself; the same holds
    for admin keys in a workspace. So only a key that revokes itself needs another one.
    """
    if "operator" in key.scopes:
        if "operator" not in actor.scopes:
            raise Refused(403, "insufficient_scope", "Only an operator may revoke operator keys.")
        if key.key_id == actor.key_id and not _another_key(world, key, "operator"):
            detail = "This is the last operator key of its workspace; create another one before you revoke it."
            raise Refused(409, "last_operator_key", detail)
    elif "admin" in key.scopes and key.key_id == actor.key_id and not _another_key(world, key, "admin", "operator"):
        detail = "This is the last admin key of its workspace; create another one before you revoke it."
        raise Refused(409, "last_admin_key", detail)


def _another_key(world: World, key: Key, *scopes: str) -> bool:
    """True when another live key has one of the scopes. A person's key does not count: it has no secret."""
    others = (other for other in world.keys.values() if other is not key and not other.revoked_at and not other.person)
    return any(not {*scopes}.isdisjoint(other.scopes) for other in others)


def create_queue(world: World, command: CreateQueue, actor: Actor, now: int, ids: Ids) -> Decision:
    """Create a queue."""
    if command.queue_id in world.queues:
        raise Refused(409, "queue_exists", f"The queue {command.queue_id!r} already exists.")
    payload = QueueCreated(settings=_settings(command.settings), name_ref=command.name_ref)
    return _queue(world, command.queue_id, payload, actor)


def update_queue(world: World, command: UpdateQueue, actor: Actor, now: int, ids: Ids) -> Decision:
    """Change a queue."""
    if command.queue_id not in world.queues:
        raise not_found("queue")
    payload = QueueUpdated(settings=_settings(command.settings), name_ref=command.name_ref)
    return _queue(world, command.queue_id, payload, actor)


def _settings(settings: QueueChoices) -> QueueSettings:
    unknown = sorted(settings.keys() - {*QueueSettings.__struct_fields__})
    if unknown:
        detail = f"{unknown[0][:64]!r} is not a setting of a queue."
        raise Refused(422, "schema_additionalProperties", detail, f"/payload/settings/{unknown[0][:64]}")
    try:
        return msgspec.convert(settings, QueueSettings)
    except msgspec.ValidationError as cause:
        raise Refused(422, "schema_type", f"The settings are not valid: {cause}.", "/payload/settings") from cause


def _queue(world: World, queue_id: str, payload: QueueCreated | QueueUpdated, actor: Actor) -> Decision:
    context = f"workspace:{world.workspace.workspace_id}"
    return Decision([Draft(payload, f"queue:{queue_id}", context, actor.sender(world))])


def send_message(world: World, command: SendMessage, actor: Actor, now: int, ids: Ids, past: Past) -> Decision:
    """Send a message to an agent, to each active holder of a role (the humans if there is none), or to the humans."""
    if command.message_id in world.messages or past.message(command.message_id) is not None:
        raise Refused(409, "message_exists", "A message with this id was already sent.")
    if command.agent_id:
        agent = acting_agent(world, actor, command.agent_id)
        actor = msgspec.structs.replace(actor, agent_id=agent.agent_id)
    recipients = _recipients(world, command.to)
    drafts = []
    for index, to in enumerate(recipients):
        payload = InboxSent(
            message_id=command.message_id if index == 0 else "msg_" + ids.ulid(),
            to=to,
            priority=command.priority,
            message_type=command.message_type,
            body_ref=command.body_ref,
            action_required=command.action_required,
            ref_task_id=command.ref_task_id or None,
        )
        drafts.append(_mail(world, to, payload, actor))
    return Decision(drafts)


def _recipients(world: World, to: str) -> list[str]:
    kind, _, key = to.partition(":")
    if kind == "agent":
        if key not in world.agents:
            raise not_found("agent")
        return [to]
    if kind == "role":
        if key not in world.roles:
            raise not_found("role")
        active = [agent_id for agent_id in world.roles[key].agents if world.agents[agent_id].active]
        return [f"agent:{agent_id}" for agent_id in active] or ["human"]
    if to != "human":
        raise Refused(422, "unknown_recipient", "A message goes to agent:<id>, role:<id> or human.", "/to")
    return [to]


def _mail(world: World, to: str, payload: InboxSent | InboxRead, actor: Actor) -> Draft:
    context = f"workspace:{world.workspace.workspace_id}"
    return Draft(payload, to if to.startswith("agent:") else context, context, actor.sender(world))


def read_message(world: World, command: ReadMessage, actor: Actor, now: int, ids: Ids, past: Past) -> Decision:
    """Mark a message as read; an agent may do so only for its own."""
    message = world.messages.get(command.message_id) or past.message(command.message_id)
    if message is None or (actor.agent_id and message.to != f"agent:{actor.agent_id}"):
        raise not_found("message")
    if message.read_at:
        return Decision(answer={"unchanged": True})
    return Decision([_mail(world, message.to, InboxRead(message_id=message.message_id), actor)])


def grant_credits(world: World, command: GrantCredits, actor: Actor, now: int, ids: Ids) -> Decision:
    """Add credits to the workspace."""
    return _workspace(world, CreditsGranted(amount=command.amount, unit=command.unit), actor.sender(world))


def price_credits(world: World, command: PriceCredits, actor: Actor, now: int, ids: Ids) -> Decision:
    """Replace the price table."""
    payload = CreditsPriced(version=command.version, prices_ref=command.prices_ref)
    return _workspace(world, payload, actor.sender(world))


def erase_content(world: World, command: EraseContent, actor: Actor, now: int, ids: Ids) -> Decision:
    """Record that a body was erased."""
    return _workspace(world, ContentErased(sha256=command.sha256), actor.sender(world))
