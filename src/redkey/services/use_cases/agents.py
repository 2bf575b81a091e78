"""Agents: registered by their cards, listed, changed, deactivated; their heartbeats, and results of their claims."""

from __future__ import annotations

import msgspec

from redkey.commands.decision import Refused, wrong
from redkey.commands.registry import DeactivateAgent, HeartbeatAgent, RegisterAgent, UpdateAgent
from redkey.ledger.ports import Content
from redkey.readmodel.agent_view import agent_view
from redkey.readmodel.claim_history import claim_history
from redkey.readmodel.view import read_document
from redkey.reducers import entities
from redkey.services.caller import NO_CONTENT, Caller, Pending
from redkey.services.outcome import Outcome
from redkey.services.place import Place
from redkey.services.use_case import use_case
from redkey.services.use_cases.card_intake import fetch_card, keep_card, take_card
from redkey.services.use_cases.new_key import issue_agent_key
from redkey.services.use_cases.pages import page_by_key, read_entity, sequence_after
from redkey.services.use_cases.texts import keep
from redkey.shapes import agents
from redkey.shapes.agents import (
    Agent,
    AgentBeat,
    AgentFilter,
    AgentHeard,
    AgentPatch,
    AgentRegistration,
    ClaimHistoryItem,
    DeactivatedAgent,
    RegisteredAgent,
)
from redkey.shapes.fields import Page, PageQuery, set_fields
from redkey.shapes.tasks import Advice
from redkey.wire.canonical import canonical
from redkey.wire.envelope import wire_of
from redkey.wire.events import AgentRegistered, AgentUpdated
from redkey.wire.ids import event_id, hashed_ulid, parse_stream
from redkey.wire.names import ROLE_ID, role_id


@use_case(agents.REGISTER_CARD)
async def register_card(caller: Caller, new: AgentRegistration) -> RegisteredAgent:
    """Register an agent by its card."""
    if new.workspace_id and new.workspace_id != caller.actor.workspace_id:
        raise Refused(404, "workspace_not_found", "There is no such workspace for this key.")
    if caller.is_repeat:
        # The card may be gone from its URL by now; what was recorded of it is not.
        registration = Pending(RegisterAgent("", "", NO_CONTENT), _registered)
    else:
        registration = await _registration(caller, new)
    agent = await caller.settled(registration)
    if not new.issue_key:
        return agent
    return msgspec.structs.replace(agent, api_key=await issue_agent_key(caller, agent.agent_id))


async def _registration(caller: Caller, new: AgentRegistration) -> Pending[RegisteredAgent]:
    if (new.card is None) == (not new.card_url):
        raise wrong("card_missing", "/agentCard", "give an agentCard or an agentCardUrl, and not both")
    if new.card_url:
        card, url = await fetch_card(caller, new.card_url)
    else:
        card, url = take_card(caller, new.card), ""
    ref, content = keep_card(caller, card, new.framework, _role_ids(new.eligible_roles), url)
    # The card gives the agent its id, so the same card is the same agent, even if two callers register it at once.
    identity = (caller.actor.workspace_id, canonical(card.card).decode(), new.slot)
    command = RegisterAgent(
        "agt_" + hashed_ulid("\n".join(identity).encode()),
        card.slug,
        ref,
        card.capabilities,
        "verified" if card.verified_by else "unverified",
        card.slug_given,
    )
    return Pending(command, _registered, (content,))


def _role_ids(names: tuple[str, ...]) -> tuple[str, ...]:
    for index, name in enumerate(names):
        if not ROLE_ID.fullmatch(role_id(name)):
            raise wrong("role_invalid", f"/eligibleRoles/{index}", "a role is a name of letters, digits, dot, dash")
    return tuple(dict.fromkeys(role_id(name) for name in names))


def _registered(outcome: Outcome, place: Place) -> RegisteredAgent:
    """Return the reply of a registration: the agent as its records made it, even if it has changed since."""
    if outcome.answer is not None:
        return _registered_before(place, outcome.answer["agent_id"])
    record, *more = outcome.records
    payload = record.event.payload
    if type(payload) is not AgentRegistered:
        raise AssertionError("a registration without its record")
    capabilities = payload.capabilities
    for one in more:
        if type(one.event.payload) is AgentUpdated:
            capabilities += one.event.payload.capabilities or ()
    agent = entities.Agent(
        agent_id=parse_stream(record.event.stream.stream_id).subject,
        slug=payload.slug,
        card_sha256=payload.card_ref.sha256,
        registered_at=record.timestamp,
        last_act_at=record.timestamp,
        verification=payload.verification,
        capabilities=capabilities,
    )
    document = place.document(agent.card_sha256)
    return RegisteredAgent(
        **msgspec.structs.asdict(agent_view(agent, document)),
        event_id=event_id(record.event.wire_id),
        warnings=msgspec.convert((document or {}).get("warnings", ()), tuple[Advice, ...]),
    )


def _registered_before(place: Place, agent_id: str) -> RegisteredAgent:
    """Return the agent of a card that was registered before, as it is now."""
    agent = place.world.agents[agent_id]
    first = place.events(place.topic, agent_id, 0, 1)
    return RegisteredAgent(
        **msgspec.structs.asdict(agent_view(agent, place.document(agent.card_sha256))),
        event_id=event_id(wire_of(first[0].wire).wire_id) if first else "",
    )


def read_agent(caller: Caller, agent_id: str) -> entities.Agent:
    """Return the agent with an id; not found if the workspace has none."""
    return read_entity(caller, entities.Agent, agent_id)


def _show(caller: Caller, agent: entities.Agent, *, whole: bool = False) -> Agent:
    return agent_view(agent, read_document(caller.means.store, caller.topic, agent.card_sha256), whole=whole)


@use_case(agents.LIST_AGENTS)
def list_agents(caller: Caller, asked: AgentFilter) -> Page[Agent]:
    """List the agents of the workspace."""
    found: Page[entities.Agent]
    if asked.slug is not None:
        named = caller.means.coordinator.peek(caller.topic).slugs.get(asked.slug)
        found = Page((read_agent(caller, named),) if named is not None and not asked.after else ())
    else:
        found = page_by_key(caller, "agent", asked, lambda agent: agent)
    return Page(tuple(_show(caller, agent) for agent in found.items if _is_asked_for(agent, asked)), found.next)


def _is_asked_for(agent: entities.Agent, asked: AgentFilter) -> bool:
    if asked.role is not None and role_id(asked.role) not in agent.roles:
        return False
    return asked.active is None or agent.active == asked.active


@use_case(agents.GET_AGENT)
def get_agent(caller: Caller, agent_id: str) -> Agent:
    """Show one agent, with its card."""
    return _show(caller, read_agent(caller, agent_id), whole=True)


@use_case(agents.PATCH_AGENT)
def patch_agent(caller: Caller, agent_id: str, patch: AgentPatch) -> Pending[Agent]:
    """Change an agent: its card, its slug, whether it is verified or active."""
    agent = read_agent(caller, agent_id)
    if patch == AgentPatch():
        raise wrong("nothing_to_change", "", "name at least one field to change")
    command = UpdateAgent(agent_id, patch.slug, verification=patch.verification or "", active=patch.active)
    contents: tuple[Content, ...] = ()
    document = read_document(caller.means.store, caller.topic, agent.card_sha256) or {}
    stated = set_fields(patch, "framework")
    if patch.eligible_roles is not None:
        asked = _role_ids(patch.eligible_roles)
        matched = [one["roleId"] for one in document.get("roleMatches", ())]
        stated["askedRoles"], stated["eligibleRoles"] = list(asked), sorted({*asked, *matched})
    if patch.card is not None:
        card, said = take_card(caller, patch.card), {**document, **stated}
        ref, content = keep_card(
            caller, card, said.get("framework", ""), tuple(said.get("askedRoles", said.get("eligibleRoles", ())))
        )
        contents = (content,)
        verified = "verified" if card.verified_by else "unverified"
        command = msgspec.structs.replace(
            command, card_ref=ref, capabilities=card.capabilities, verification=patch.verification or verified
        )
    elif stated:
        if not document:
            raise wrong("card_erased", "/agentCard", "the card was erased; send one")
        ref, content = keep(caller, {**document, **stated})
        command, contents = msgspec.structs.replace(command, card_ref=ref), (content,)

    def reply(outcome: Outcome, place: Place) -> Agent:
        changed = place.world.agents[agent_id]
        return agent_view(changed, place.document(changed.card_sha256), whole=True)

    return Pending(command, reply, contents)


@use_case(agents.HEARTBEAT_AGENT)
def heartbeat_agent(caller: Caller, agent_id: str, beat: AgentBeat) -> Pending[AgentHeard]:
    """Report that the agent is alive; recorded if something changed or it was silent for a while."""

    def reply(outcome: Outcome, place: Place) -> AgentHeard:
        record = outcome.first("agent.heartbeat")
        happened = event_id(record.event.wire_id) if record is not None else ""
        return AgentHeard(agent_id=agent_id, status="alive", event_id=happened)

    command = HeartbeatAgent(agent_id, beat.capacity, beat.in_use, beat.pause, beat.pause_seconds, beat.account)
    return Pending(command, reply)


@use_case(agents.DEACTIVATE_AGENT)
def deactivate_agent(caller: Caller, agent_id: str) -> Pending[DeactivatedAgent]:
    """Deactivate an agent: it claims nothing more; its current holds expire."""

    def reply(outcome: Outcome, place: Place) -> DeactivatedAgent:
        happened = event_id(outcome.records[0].event.wire_id) if outcome.records else ""
        return DeactivatedAgent(agent_id=agent_id, status="deactivated", event_id=happened)

    return Pending(DeactivateAgent(agent_id), reply)


@use_case(agents.LIST_CLAIM_HISTORY)
def list_claim_history(caller: Caller, agent_id: str, asked: PageQuery) -> Page[ClaimHistoryItem]:
    """List the outcomes of an agent's claims, the newest first: won, missed, rejected."""
    agent = read_agent(caller, agent_id)
    items, following = claim_history(
        caller.means.store, caller.topic, agent.agent_id, sequence_after(asked), asked.limit
    )
    return Page(tuple(items), str(following) if following else None)
