"""Agents, roles, queues, keys, inboxes, credits and content: what their owners may do with them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import final

import msgspec

from redkey.commands.actor import Actor
from redkey.commands.claims import acting_agent
from redkey.commands.decision import Decision, Refused, not_found
from redkey.commands.draft import Draft, Ids
from redkey.commands.past import Past
from redkey.commands.policies import check_rules
from redkey.reducers.entities import Key
from redkey.reducers.world import LOST_AFTER_NANOSECONDS, RULES, SECOND, World
from redkey.wire.events import (
    AgentDeactivated,
    AgentHeartbeat,
    AgentRegistered,
    AgentUpdated,
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
    Ref,
    RoleCreated,
    RoleGranted,
    RoleRemoved,
    RoleRevoked,
    RoleUpdated,
    WorkspaceCreated,
)
from redkey.wire.times import write_time

CAPABILITIES_A_WIRE = 8
# Settings of a queue by name; what is not named stays, or is as the rules have it.
QueueChoices = Mapping[str, int | str | bool]


# Pauses of agents are recorded from these rules on.
PAUSE_RULES = 2
# Since these rules roles can be changed and removed.
ROLE_RULES = 2


@final
class CreateWorkspace(msgspec.Struct, frozen=True):
    """Create the workspace of a new topic."""

    workspace_id: str
    name_ref: Ref | None = None
    # The policy that it begins with.
    self_approval: bool = False


# How much of a key's SHA-256 is on the ledger: too much to find another key for, and short enough for a wire.
KEY_HASH_DIGITS = 32


@final
class CreateKey(msgspec.Struct, frozen=True):
    """Create an API key; `agent_id` names the agent that a key with the scope agent is for."""

    key_id: str
    prefix: str
    scopes: tuple[str, ...]
    agent_id: str = ""
    name_ref: Ref | None = None
    # Of the whole key. The store keeps it beside the ledger to check keys by it; half of it is on the ledger as proof.
    secret_sha256: str = ""


@final
class RevokeKey(msgspec.Struct, frozen=True):
    """Revoke an API key."""

    key_id: str


@final
class RegisterAgent(msgspec.Struct, frozen=True):
    """Register an agent by its card."""

    agent_id: str
    slug: str
    card_ref: Ref
    capabilities: tuple[str, ...] = ()
    verification: str = "unverified"
    # A slug that was made from a name may become another one; one that somebody chose may not.
    slug_given: bool = True


@final
class UpdateAgent(msgspec.Struct, frozen=True):
    """Change an agent; what is None or empty stays."""

    agent_id: str
    slug: str = ""
    card_ref: Ref | None = None
    capabilities: tuple[str, ...] | None = None
    verification: str = ""
    active: bool | None = None


@final
class DeactivateAgent(msgspec.Struct, frozen=True):
    """Switch an agent off: it claims nothing more."""

    agent_id: str


@final
class HeartbeatAgent(msgspec.Struct, frozen=True):
    """Report that an agent is alive, how much work it can take, and whether it claims nothing for a while."""

    agent_id: str
    capacity: int | None = None
    in_use: int | None = None
    # Why it pauses, `none` to end a pause, None to say nothing of it.
    pause: str | None = None
    pause_seconds: int = 0
    # The account at its model's provider; empty to say nothing of it.
    account: str = ""


@final
class CreateRole(msgspec.Struct, frozen=True):
    """Create a role."""

    role_id: str
    role_ref: Ref | None = None
    capabilities: tuple[str, ...] = ()


@final
class UpdateRole(msgspec.Struct, frozen=True):
    """Change what a role is called, or what its holders can do; what is None stays."""

    role_id: str
    role_ref: Ref | None = None
    capabilities: tuple[str, ...] | None = None


@final
class RemoveRole(msgspec.Struct, frozen=True):
    """Take a role from everybody and remove it."""

    role_id: str


@final
class GrantRole(msgspec.Struct, frozen=True):
    """Give a role to an agent."""

    role_id: str
    agent_id: str


@final
class RevokeRole(msgspec.Struct, frozen=True):
    """Take a role from an agent."""

    role_id: str
    agent_id: str


@final
class CreateQueue(msgspec.Struct, frozen=True):
    """Create a queue."""

    queue_id: str
    settings: QueueChoices
    name_ref: Ref | None = None


@final
class UpdateQueue(msgspec.Struct, frozen=True):
    """Change the settings or the name of a queue."""

    queue_id: str
    settings: QueueChoices
    name_ref: Ref | None = None


@final
class SendMessage(msgspec.Struct, frozen=True):
    """Send a message to an inbox: an agent's, a role's or the humans'."""

    message_id: str
    to: str
    priority: int
    message_type: str
    body_ref: Ref
    ref_task_id: str = ""
    action_required: bool = False
    # The agent that speaks, where the actor may act as it and is not it.
    agent_id: str = ""


@final
class ReadMessage(msgspec.Struct, frozen=True):
    """Mark a message of an inbox as read."""

    message_id: str


@final
class GrantCredits(msgspec.Struct, frozen=True):
    """Add credits to the workspace."""

    amount: int
    unit: str = "credit"


@final
class PriceCredits(msgspec.Struct, frozen=True):
    """Set what each event type costs, in credits."""

    version: int
    prices_ref: Ref


@final
class EraseContent(msgspec.Struct, frozen=True):
    """Erase a body from the content store; its hash stays on the ledger."""

    sha256: str


def _workspace(world: World, payload: AnyPayload, sender: str, workspace_id: str = "") -> Decision:
    where = f"workspace:{workspace_id or world.workspace.workspace_id}"
    return Decision([Draft(payload, where, where, sender)])


def create_workspace(world: World, command: CreateWorkspace, actor: Actor, now: int, ids: Ids) -> Decision:
    if world.workspace.workspace_id:
        raise Refused(409, "workspace_exists", "The workspace exists already.")
    self_approval = True if command.self_approval else None
    payload = WorkspaceCreated(rules=RULES, name_ref=command.name_ref, self_approval=self_approval)
    return _workspace(world, payload, actor.sender(world), command.workspace_id)


def create_key(world: World, command: CreateKey, actor: Actor, now: int, ids: Ids) -> Decision:
    if command.key_id in world.keys:
        raise Refused(409, "key_exists", f"The key {command.key_id!r} exists already.")
    if command.agent_id and command.agent_id not in world.agents:
        raise not_found("agent")
    payload = KeyCreated(
        key_id=command.key_id,
        scopes=command.scopes,
        prefix=command.prefix,
        key_hash=command.secret_sha256[:KEY_HASH_DIGITS] or None,
        agent_id=command.agent_id or None,
        name_ref=command.name_ref,
    )
    return _workspace(world, payload, actor.sender(world))


def revoke_key(world: World, command: RevokeKey, actor: Actor, now: int, ids: Ids) -> Decision:
    key = world.keys.get(command.key_id)
    if key is None or key.revoked_at:
        raise not_found("key")
    _keep_a_way_in(world, key, actor)
    return _workspace(world, KeyRevoked(key_id=command.key_id), actor.sender(world))


def _keep_a_way_in(world: World, key: Key, actor: Actor) -> None:
    """Refuse a revocation after which nobody could make keys any more.

    An operator's key is revoked by an operator, so the actor's own key stays unless it revokes itself; the same holds
    for admin keys inside a workspace. So only a key that revokes itself needs another one beside it.
    """
    if "operator" in key.scopes:
        if "operator" not in actor.scopes:
            raise Refused(403, "insufficient_scope", "Only an operator revokes operator keys.")
        if key.key_id == actor.key_id and not _another_key(world, key, "operator"):
            detail = "This is the last operator key of its workspace; make another one before you revoke it."
            raise Refused(409, "last_operator_key", detail)
    elif "admin" in key.scopes and key.key_id == actor.key_id and not _another_key(world, key, "admin", "operator"):
        detail = "This is the last admin key of its workspace; make another one before you revoke it."
        raise Refused(409, "last_admin_key", detail)


def _another_key(world: World, key: Key, *scopes: str) -> bool:
    """True when a live key beside this one has one of the scopes."""
    others = (one for one in world.keys.values() if one is not key and not one.revoked_at)
    return any(not {*scopes}.isdisjoint(one.scopes) for one in others)


def register_agent(world: World, command: RegisterAgent, actor: Actor, now: int, ids: Ids) -> Decision:
    if command.agent_id in world.agents:
        raise Refused(409, "agent_exists", f"The agent {command.agent_id!r} is registered already.")
    slug = command.slug if command.slug_given else _free_slug(world, command.slug)
    if slug in world.slugs:
        raise Refused(409, "slug_taken", f"An agent with the slug {command.slug!r} is registered already.")
    where, context, sender = _agent_place(world, command.agent_id, actor)
    first, more = command.capabilities[:CAPABILITIES_A_WIRE], command.capabilities[CAPABILITIES_A_WIRE:]
    payload = AgentRegistered(
        slug=slug, card_ref=command.card_ref, capabilities=first, verification=command.verification
    )
    drafts = [Draft(payload, where, context, sender)]
    drafts.extend(_more_capabilities(where, context, sender, more))
    return Decision(drafts)


def _free_slug(world: World, slug: str) -> str:
    """The slug itself, or with the first number that nobody has."""
    number, found = 1, slug
    while found in world.slugs:
        number += 1
        found = f"{slug[: 31 - len(str(number))]}-{number}"
    return found


def _agent_place(world: World, agent_id: str, actor: Actor) -> tuple[str, str, str]:
    return f"agent:{agent_id}", f"workspace:{world.workspace.workspace_id}", actor.sender(world)


def _more_capabilities(where: str, context: str, sender: str, more: tuple[str, ...]) -> list[Draft]:
    return [
        Draft(AgentUpdated(capabilities=more[i : i + CAPABILITIES_A_WIRE], add=True), where, context, sender)
        for i in range(0, len(more), CAPABILITIES_A_WIRE)
    ]


def update_agent(world: World, command: UpdateAgent, actor: Actor, now: int, ids: Ids) -> Decision:
    agent = world.agents.get(command.agent_id)
    if agent is None:
        raise not_found("agent")
    if command.slug and world.slugs.get(command.slug, agent.agent_id) != agent.agent_id:
        raise Refused(409, "slug_taken", f"An agent with the slug {command.slug!r} is registered already.", "/slug")
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
    agent = acting_agent(world, actor, command.agent_id)
    if not agent.active:
        raise Refused(409, "inactive_agent", "The agent is not active.")
    where, context, sender = _agent_place(world, command.agent_id, actor)
    return Decision([Draft(AgentDeactivated(), where, context, sender)])


def heartbeat_agent(world: World, command: HeartbeatAgent, actor: Actor, now: int, ids: Ids) -> Decision:
    """Recorded when capacity or use changed, and each third of the time after which an agent counts as lost."""
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
    if command.role_id in world.roles:
        raise Refused(409, "role_exists", f"The role {command.role_id!r} exists already.")
    payload = RoleCreated(capabilities=command.capabilities or None, role_ref=command.role_ref)
    return Decision([_role_draft(world, command.role_id, payload, actor)])


def update_role(world: World, command: UpdateRole, actor: Actor, now: int, ids: Ids) -> Decision:
    check_rules(world, ROLE_RULES)
    if command.role_id not in world.roles:
        raise not_found("role")
    payload = RoleUpdated(capabilities=command.capabilities, role_ref=command.role_ref)
    return Decision([_role_draft(world, command.role_id, payload, actor)])


def remove_role(world: World, command: RemoveRole, actor: Actor, now: int, ids: Ids) -> Decision:
    """Revoke it from each holder, on the record, then remove it; refused while work needs it."""
    check_rules(world, ROLE_RULES)
    role_id, role = command.role_id, world.roles.get(command.role_id)
    if role is None:
        raise not_found("role")
    task = next((one for one in world.tasks.values() if role_id in one.roles and not one.ended_at), None)
    if task is not None:
        raise Refused(409, "role_in_use", f"{task.task_id} needs this role and has not ended; end or cancel it first.")
    run = next((run for run in world.runs.values() if any(one.role == role_id for one in run.plan.tasks)), None)
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
    return _grant(world, command.role_id, RoleGranted(agent_id=command.agent_id), actor)


def revoke_role(world: World, command: RevokeRole, actor: Actor, now: int, ids: Ids) -> Decision:
    return _grant(world, command.role_id, RoleRevoked(agent_id=command.agent_id), actor)


def _grant(world: World, role_id: str, payload: RoleGranted | RoleRevoked, actor: Actor) -> Decision:
    role, agent_id = world.roles.get(role_id), payload.agent_id
    if role is None:
        raise not_found("role")
    if agent_id not in world.agents:
        raise not_found("agent")
    if (agent_id in role.agents) == isinstance(payload, RoleGranted):
        # It is so already: saying it again changes nothing and is not recorded.
        return Decision(answer={"unchanged": True})
    return Decision([_role_draft(world, role_id, payload, actor)])


def create_queue(world: World, command: CreateQueue, actor: Actor, now: int, ids: Ids) -> Decision:
    if command.queue_id in world.queues:
        raise Refused(409, "queue_exists", f"The queue {command.queue_id!r} exists already.")
    payload = QueueCreated(settings=_settings(command.settings), name_ref=command.name_ref)
    return _queue(world, command.queue_id, payload, actor)


def update_queue(world: World, command: UpdateQueue, actor: Actor, now: int, ids: Ids) -> Decision:
    if command.queue_id not in world.queues:
        raise not_found("queue")
    payload = QueueUpdated(settings=_settings(command.settings), name_ref=command.name_ref)
    return _queue(world, command.queue_id, payload, actor)


def _settings(stated: QueueChoices) -> QueueSettings:
    unknown = sorted(stated.keys() - {*QueueSettings.__struct_fields__})
    if unknown:
        detail = f"{unknown[0][:64]!r} is not a setting of a queue."
        raise Refused(422, "schema_additionalProperties", detail, f"/payload/settings/{unknown[0][:64]}")
    try:
        return msgspec.convert(stated, QueueSettings)
    except msgspec.ValidationError as cause:
        raise Refused(422, "schema_type", f"The settings are not valid: {cause}.", "/payload/settings") from cause


def _queue(world: World, queue_id: str, payload: QueueCreated | QueueUpdated, actor: Actor) -> Decision:
    context = f"workspace:{world.workspace.workspace_id}"
    return Decision([Draft(payload, f"queue:{queue_id}", context, actor.sender(world))])


def send_message(world: World, command: SendMessage, actor: Actor, now: int, ids: Ids, past: Past) -> Decision:
    """To an agent, to each active holder of a role (to the humans when there is none), or to the humans."""
    if command.message_id in world.messages or past.message(command.message_id) is not None:
        raise Refused(409, "message_exists", "A message of this id was sent already.")
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
        raise Refused(422, "unknown_recipient", "Mail goes to agent:<id>, to role:<id> or to human.", "/to")
    return [to]


def _mail(world: World, to: str, payload: InboxSent | InboxRead, actor: Actor) -> Draft:
    context = f"workspace:{world.workspace.workspace_id}"
    return Draft(payload, to if to.startswith("agent:") else context, context, actor.sender(world))


def read_message(world: World, command: ReadMessage, actor: Actor, now: int, ids: Ids, past: Past) -> Decision:
    message = world.messages.get(command.message_id) or past.message(command.message_id)
    if message is None or (actor.agent_id and message.to != f"agent:{actor.agent_id}"):
        raise not_found("message")
    if message.read_at:
        return Decision(answer={"unchanged": True})
    return Decision([_mail(world, message.to, InboxRead(message_id=message.message_id), actor)])


def grant_credits(world: World, command: GrantCredits, actor: Actor, now: int, ids: Ids) -> Decision:
    return _workspace(world, CreditsGranted(amount=command.amount, unit=command.unit), actor.sender(world))


def price_credits(world: World, command: PriceCredits, actor: Actor, now: int, ids: Ids) -> Decision:
    payload = CreditsPriced(version=command.version, prices_ref=command.prices_ref)
    return _workspace(world, payload, actor.sender(world))


def erase_content(world: World, command: EraseContent, actor: Actor, now: int, ids: Ids) -> Decision:
    return _workspace(world, ContentErased(sha256=command.sha256), actor.sender(world))
