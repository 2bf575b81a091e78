"""Agents: registered by their cards, seen, changed, heard of, deactivated; and how their claims went."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from redkey.api.call import Call
from redkey.api.card_intake import Intake, fetch_card, take_card
from redkey.api.fields import Body, Id, Listed, Name, Page, Slug, Word, given, place_after, sequence_after, wrong
from redkey.api.keys_issued import issue_agent_key
from redkey.commands.decision import Refused, not_found
from redkey.commands.registry import DeactivateAgent, HeartbeatAgent, RegisterAgent, UpdateAgent
from redkey.http.route import ADMIN, AGENT, READ, Route
from redkey.ledger.ports import Content
from redkey.readmodel.agent_view import AgentView, agent_view
from redkey.readmodel.claim_history import HistoryItem, claim_history
from redkey.readmodel.rows import entity
from redkey.readmodel.view import View, read_document
from redkey.reducers.entities import Agent
from redkey.services.caller import NO_CONTENT
from redkey.services.outcome import Outcome, Settled
from redkey.services.use_cases.texts import keep
from redkey.shapes.tasks import Advice
from redkey.wire.events import Ref
from redkey.wire.ids import event_id, parse_stream
from redkey.wire.names import ROLE_ID, role_id

Roles = Annotated[tuple[Word, ...], Meta(max_length=64)]
Many = Annotated[int, Meta(ge=0, le=1_000_000)]


class RegisterCard(Body, frozen=True, kw_only=True):
    """An Agent Card, given or to be fetched. What it says is kept as data; the agent's id is never the card's."""

    workspace_id: Id = ""
    agent_card_url: Annotated[str, Meta(max_length=2048)] = ""
    agent_card: dict[str, Any] | None = None
    framework: Annotated[str, Meta(max_length=64)] = ""
    # Information for whoever grants roles; only a grant makes an agent eligible.
    eligible_roles: Roles = ()
    issue_key: bool = False


class Registered(AgentView, frozen=True, kw_only=True):
    """The agent as it was registered; `apiKey` is shown here and never again."""

    event_id: str
    api_key: str = ""
    warnings: tuple[Advice, ...] = ()


class AgentPatch(Body, frozen=True, kw_only=True):
    """What to change; a new card replaces the old one and its capabilities."""

    slug: Slug = ""
    agent_card: dict[str, Any] | None = None
    framework: Annotated[str, Meta(max_length=64)] | None = None
    eligible_roles: Roles | None = None
    verification: Literal["verified", "unverified"] | None = None
    active: bool | None = None


class Beat(Body, frozen=True, kw_only=True):
    """A sign of life, and how much work the agent can take and has."""

    capacity: Many | None = None
    in_use: Many | None = None


class Heard(View, frozen=True, kw_only=True):
    """The agent was heard of; only what changes something is an event."""

    agent_id: str
    status: Literal["alive"]
    event_id: str = ""


class Deactivated(View, frozen=True, kw_only=True):
    """The agent may claim nothing more."""

    agent_id: str
    event_id: str
    status: Literal["deactivated"]


class AgentFilter(Page, frozen=True, kw_only=True):
    """Which agents: all of the given."""

    slug: Name | None = None
    role: Name | None = None
    active: bool | None = None


async def register_card(call: Call, body: RegisterCard) -> Registered:
    """Register an agent by its card."""
    if body.workspace_id and body.workspace_id != call.actor.workspace_id:
        raise Refused(404, "workspace_not_found", "There is no such workspace for this key.")
    if call.is_repeat:
        # The card may be gone from its place by now; what was recorded of it is not.
        outcome = await call.submit(RegisterAgent("", "", NO_CONTENT))
    else:
        taken = await _take(call, body)
        outcome = await call.submit(
            RegisterAgent(
                "agt_" + call.services.ids.ulid(),
                taken.card.slug,
                taken.ref,
                taken.card.capabilities,
                "verified" if taken.card.verified_by else "unverified",
                taken.card.slug_given,
            ),
            (taken.content,),
        )
    agent_id = _registered_id(outcome)
    key = await issue_agent_key(call, agent_id) if body.issue_key else ""
    return _registered(call, outcome, key)


class _Kept(msgspec.Struct, frozen=True):
    """A card that was taken in, and the document that it became."""

    card: Any
    ref: Ref
    content: Content


async def _take(call: Call, body: RegisterCard) -> _Kept:
    if (body.agent_card is None) == (not body.agent_card_url):
        raise wrong("card_missing", "/agentCard", "give an agentCard or an agentCardUrl, and not both")
    if body.agent_card_url:
        intake = await fetch_card(call, body.agent_card_url)
    else:
        intake = Intake(take_card(call, body.agent_card, under="/agentCard"), "")
    return _keep(call, intake, body.framework, _role_ids(body.eligible_roles))


def _keep(call: Call, intake: Intake, framework: str, eligible: tuple[str, ...]) -> _Kept:
    card = intake.card
    document: dict[str, Any] = {
        "agentCard": card.card,
        "normal": msgspec.to_builtins(card.normal),
        "framework": framework or card.normal.format.partition("/")[0],
        "eligibleRoles": list(eligible),
        "verifiedBy": card.verified_by,
        "warnings": [finding.as_json() for finding in card.warnings],
    }
    if intake.url:
        document["agentCardUrl"] = intake.url
    ref, content = keep(call, document)
    return _Kept(card, ref, content)


def _role_ids(names: tuple[str, ...]) -> tuple[str, ...]:
    for index, name in enumerate(names):
        if not ROLE_ID.fullmatch(role_id(name)):
            raise wrong("role_invalid", f"/eligibleRoles/{index}", "a role is a name of letters, digits, dot, dash")
    return tuple(dict.fromkeys(role_id(name) for name in names))


def _registration(outcome: Outcome) -> Settled:
    found = outcome.first("agent.registered")
    if found is None:
        raise AssertionError("a registration without its record")
    return found


def _registered_id(outcome: Outcome) -> str:
    return parse_stream(_registration(outcome).event.stream.stream_id).subject


def _registered(call: Call, outcome: Outcome, key: str) -> Registered:
    """The reply of a registration: the agent as its records made it, whatever became of it since."""
    record = _registration(outcome)
    payload = record.wire["payload"]
    more = [one.wire["payload"]["capabilities"] for one in outcome.records if one.event.type == "agent.updated"]
    agent = Agent(
        agent_id=_registered_id(outcome),
        slug=payload["slug"],
        card_sha256=payload["card_ref"]["sha256"],
        registered_at=record.timestamp,
        last_act_at=record.timestamp,
        verification=payload["verification"],
        capabilities=tuple(word for words in (payload["capabilities"], *more) for word in words),
    )
    document = read_document(call.services.store, call.topic, agent.card_sha256)
    shown = agent_view(agent, document)
    warnings = tuple(
        Advice(code=one["code"], pointer=one["pointer"], message=one["message"])
        for one in (document or {}).get("warnings", ())
    )
    fields = {name: getattr(shown, name) for name in shown.__struct_fields__}
    return Registered(**fields, event_id=event_id(record.event.wire_id), api_key=key, warnings=warnings)


def read_agent(call: Call, agent_id: str) -> Agent:
    """The agent with an id; not found when there is none in the workspace."""
    row = call.services.store.row(call.topic, "agent", agent_id)
    if row is None:
        raise not_found("agent")
    agent: Agent = entity(row)
    return agent


def _show(call: Call, agent: Agent, *, whole: bool = False) -> AgentView:
    return agent_view(agent, read_document(call.services.store, call.topic, agent.card_sha256), whole=whole)


async def list_agents(call: Call) -> Listed[AgentView]:
    """The agents of the workspace."""
    asked: AgentFilter = call.query
    if asked.slug is not None:
        found = call.services.coordinator.peek(call.topic).slugs.get(asked.slug)
        rows = [call.services.store.row(call.topic, "agent", found)] if found and not asked.after else []
        agents, following = [entity(row) for row in rows if row is not None], None
    else:
        after = place_after(asked)[1]
        page = call.services.store.rows(call.topic, "agent", None, (0, after), asked.limit)
        agents = [entity(row) for row in page]
        following = f"0.{page[-1].key}" if len(page) == asked.limit else None
    wanted = [agent for agent in agents if _is_asked_for(agent, asked)]
    return Listed(tuple(_show(call, agent) for agent in wanted), following)


def _is_asked_for(agent: Agent, asked: AgentFilter) -> bool:
    if asked.role is not None and role_id(asked.role) not in agent.roles:
        return False
    return asked.active is None or agent.active == asked.active


async def get_agent(call: Call) -> AgentView:
    """One agent, with its card."""
    return _show(call, read_agent(call, call.path["agent_id"]), whole=True)


async def patch_agent(call: Call, body: AgentPatch) -> AgentView:
    """Change an agent: its card, its slug, whether it is verified or active."""
    agent = read_agent(call, call.path["agent_id"])
    if not given(body, *body.__struct_fields__):
        raise wrong("nothing_to_change", "", "name at least one field to change")
    document = read_document(call.services.store, call.topic, agent.card_sha256) or {}
    framework = body.framework if body.framework is not None else document.get("framework", "")
    eligible = _role_ids(body.eligible_roles) if body.eligible_roles is not None else document.get("eligibleRoles", ())
    command = UpdateAgent(agent.agent_id, body.slug, verification=body.verification or "", active=body.active)
    contents: tuple[Content, ...] = ()
    if body.agent_card is not None:
        card = take_card(call, body.agent_card, under="/agentCard")
        kept = _keep(call, Intake(card, ""), framework, tuple(eligible))
        verified = "verified" if card.verified_by else "unverified"
        command = msgspec.structs.replace(
            command,
            card_ref=kept.ref,
            capabilities=card.capabilities,
            verification=body.verification or verified,
        )
        contents = (kept.content,)
    elif body.framework is not None or body.eligible_roles is not None:
        if not document:
            raise wrong("card_erased", "/agentCard", "the card was erased; send one")
        ref, content = keep(call, {**document, "framework": framework, "eligibleRoles": list(eligible)})
        command, contents = msgspec.structs.replace(command, card_ref=ref), (content,)
    await call.submit(command, contents)
    return _show(call, read_agent(call, agent.agent_id), whole=True)


async def heartbeat_agent(call: Call, body: Beat) -> Heard:
    """Tell that the agent is alive; recorded when something changed or it was silent for a while."""
    agent_id = call.path["agent_id"]
    outcome = await call.submit(HeartbeatAgent(agent_id, body.capacity, body.in_use))
    record = outcome.first("agent.heartbeat")
    happened = event_id(record.event.wire_id) if record is not None else ""
    return Heard(agent_id=agent_id, status="alive", event_id=happened)


async def deactivate_agent(call: Call) -> Deactivated:
    """Deactivate an agent: it claims nothing more; what it holds runs out."""
    outcome = await call.submit(DeactivateAgent(call.path["agent_id"]))
    return Deactivated(
        agent_id=call.path["agent_id"], status="deactivated", event_id=event_id(outcome.records[0].event.wire_id)
    )


async def list_claim_history(call: Call) -> Listed[HistoryItem]:
    """How an agent's claims went, the newest first: won, missed, rejected."""
    agent = read_agent(call, call.path["agent_id"])
    asked: Page = call.query
    items, following = claim_history(
        call.services.store, call.topic, agent.agent_id, sequence_after(asked), asked.limit
    )
    return Listed(tuple(items), str(following) if following else None)


_EXAMPLE_CARD = {
    "name": "Research Agent",
    "description": "Finds and summarizes source material",
    "url": "https://agent.example.com/a2a",
    "version": "1.0.0",
    "skills": [{"id": "web_search", "name": "Web search", "tags": ["source_review"]}],
    "capabilities": {},
}

ROUTES = [
    Route(
        "POST",
        "/agents/register-card",
        register_card,
        ("runner",),
        body=RegisterCard,
        reply=Registered,
        status=201,
        summary="Register an agent by its Agent Card, A2A of either shape or RedKey's own.",
        replies={
            404: "The body names a workspace that is not the key's.",
            409: "The slug that the card names is taken.",
        },
        idempotent=True,
        example={"agentCard": _EXAMPLE_CARD},
    ),
    Route("GET", "/agents", list_agents, READ, query=AgentFilter, reply=Listed[AgentView], summary="List agents."),
    Route("GET", "/agents/{agent_id}", get_agent, READ, reply=AgentView, summary="One agent, with its card."),
    Route(
        "PATCH",
        "/agents/{agent_id}",
        patch_agent,
        ADMIN,
        body=AgentPatch,
        reply=AgentView,
        repeats="bytes",
        summary="Change an agent.",
        replies={409: "The slug is taken."},
        example={"active": True},
    ),
    Route(
        "POST",
        "/agents/{agent_id}/heartbeat",
        heartbeat_agent,
        AGENT,
        body=Beat,
        reply=Heard,
        summary="Tell that an agent is alive, and how much work it can take.",
        replies={409: "The agent is not active."},
        idempotent=True,
        example={"capacity": 4, "inUse": 1},
    ),
    Route(
        "POST",
        "/agents/{agent_id}/deactivate",
        deactivate_agent,
        AGENT,
        reply=Deactivated,
        summary="Deactivate an agent.",
        replies={409: "The agent is not active."},
        idempotent=True,
    ),
    Route(
        "GET",
        "/agents/{agent_id}/claim-history",
        list_claim_history,
        READ,
        query=Page,
        reply=Listed[HistoryItem],
        summary="How an agent's claims went, the newest first.",
    ),
]
