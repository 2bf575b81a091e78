"""Agents: registered by their cards, listed, changed, deactivated; their heartbeats and claim history."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta

from redkey.shapes.fields import (
    Extended,
    Id,
    Identified,
    Name,
    Page,
    PageQuery,
    Reply,
    SecretReply,
    Slot,
    Slug,
    Word,
    one_of,
)
from redkey.shapes.operation import ADMIN, AGENT, READ, Operation
from redkey.shapes.tasks import Advice

Roles = Annotated[tuple[Word, ...], Meta(max_length=64)]
Many = Annotated[int, Meta(ge=0, le=1_000_000)]


class AgentRegistration(Extended, frozen=True, kw_only=True):
    """An Agent Card, in the request or at a URL. Its content is stored as data; the agent's id never comes from it."""

    card: dict[str, Any] | None = msgspec.field(default=None, name="agentCard")
    card_url: Annotated[str, Meta(max_length=2048)] = msgspec.field(default="", name="agentCardUrl")
    framework: Annotated[str, Meta(max_length=64)] = ""
    # Information for admins who grant roles; only a grant makes an agent eligible.
    eligible_roles: Roles = ()
    issue_key: bool = False
    workspace_id: Id = ""
    # The same card in the same slot is the same agent; processes that share a card and run together use several slots.
    slot: Slot = ""


class AgentPatch(Extended, frozen=True, kw_only=True):
    """What to change; a new card replaces the old one and its capabilities."""

    slug: Slug = ""
    card: dict[str, Any] | None = msgspec.field(default=None, name="agentCard")
    framework: Annotated[str, Meta(max_length=64)] | None = None
    eligible_roles: Roles | None = None
    verification: Literal["verified", "unverified"] | None = None
    active: bool | None = None


Pause = Literal["none", "usage_limit", "cost_cap", "start_failed"]


class AgentBeat(Extended, frozen=True, kw_only=True):
    """A heartbeat: how much work the agent can take and has, and whether it pauses."""

    capacity: Many | None = None
    in_use: Many | None = None
    # Why it claims nothing for now, and for how long; `none` ends a pause.
    pause: Pause | None = None
    pause_seconds: Annotated[int, Meta(ge=0, le=31_536_000)] = 0
    # The account at its model's provider, as a label. Agents of one account share its usage limits.
    account: Slug = ""


class AgentFilter(PageQuery, frozen=True, kw_only=True):
    """Which agents to list; all conditions must hold."""

    slug: Annotated[Name, Meta(description="Only the agent with this slug.")] | None = None
    role: Annotated[Name, Meta(description="Only agents that have this role.")] | None = None
    active: Annotated[bool, Meta(description="Only active agents, or only inactive ones.")] | None = None


class Endpoint(Reply, frozen=True, kw_only=True):
    """Where an agent can be reached, from its card."""

    url: str
    binding: str = ""
    protocol_version: str = ""


class Skill(Reply, frozen=True, kw_only=True):
    """A skill of an agent, from its card."""

    id: str
    name: str = ""
    description: str = ""
    tags: tuple[str, ...] = ()


class AuthRequirement(Reply, frozen=True, kw_only=True):
    """How callers must authenticate to an agent, from its card."""

    name: str
    type: str = ""


class AgentVerification(Reply, frozen=True, kw_only=True):
    """Who vouches for the card: the id of the pinned key that signed it, or an admin."""

    status: str
    key_id: str = ""


class RoleMatch(Reply, frozen=True, kw_only=True):
    """A role whose capabilities the agent's card covers, and the capabilities that matched."""

    role_id: str
    matched: tuple[str, ...]


class Agent(Identified, frozen=True, kw_only=True):
    """An agent: what its card says, which is unverified data, and what the ledger knows."""

    SPECIFIC: ClassVar[str] = "agent_id"
    agent_id: str
    slug: str
    active: bool
    # Not seen for a while; its next call or heartbeat brings it back.
    lost: bool
    name: str = ""
    description: str = ""
    framework: str = ""
    endpoint: str = ""
    endpoints: tuple[Endpoint, ...]
    card_format: str = ""
    version: str = ""
    provider: str = ""
    capabilities: tuple[str, ...]
    skills: tuple[Skill, ...]
    auth_requirements: tuple[AuthRequirement, ...]
    features: tuple[str, ...]
    verification: AgentVerification
    # Roles that fit, found when the card was registered: those whose capabilities it covers (`role_matches` says by
    # which), and those that the registration named. Only a grant by an admin lets the agent claim.
    eligible_roles: tuple[str, ...]
    role_matches: tuple[RoleMatch, ...]
    roles: tuple[str, ...]
    live_claims: int
    capacity: int | None = None
    in_use: int | None = None
    # Why and until when it claims nothing, as it reported; the time may have passed.
    pause: str = ""
    paused_until: str | None = None
    # The account whose usage limits it shares.
    account: str = ""
    registered_at: str
    last_act_at: str
    card_url: str = ""
    card: dict[str, Any] | None = None
    erased: bool = False


class RegisteredAgent(Agent, frozen=True, kw_only=True):
    """The agent as it was registered, or as it is now if its card was registered before; `apiKey` is shown only
    here."""

    event_id: str
    api_key: str = ""
    warnings: tuple[Advice, ...] = ()

    __repr__ = SecretReply.__repr__


class AgentHeard(Reply, frozen=True, kw_only=True):
    """The heartbeat was received; an event is written only if something changed."""

    agent_id: str
    status: Annotated[str, one_of("alive")]
    event_id: str = ""


class DeactivatedAgent(Reply, frozen=True, kw_only=True):
    """The agent is deactivated and claims nothing more; an event is written only if it was active."""

    agent_id: str
    event_id: str = ""
    status: Annotated[str, one_of("deactivated")]


class ClaimHistoryItem(Identified, frozen=True, kw_only=True):
    """One claim and its outcome."""

    SPECIFIC: ClassVar[str] = "claim_id"
    task_id: str
    claim_id: str
    status: Annotated[str, one_of("claimed", "missed", "rejected")]
    # How a won claim ended; `held` if it has not ended.
    ended: Annotated[
        str, one_of("", "held", "completed", "failed", "released", "blocked", "expired", "stalled", "cancelled")
    ] = ""
    reason: str = ""
    winning_claim_id: str = ""
    winning_agent_id: str = ""
    lease_expires_at: str = ""
    at: str
    event_id: str
    sequence: int


_EXAMPLE_CARD = {
    "name": "Research Agent",
    "description": "Finds and summarizes source material",
    "url": "https://agent.example.com/a2a",
    "version": "1.0.0",
    "skills": [{"id": "web_search", "name": "Web search", "tags": ["source_review"]}],
    "capabilities": {},
}

REGISTER_CARD = Operation(
    "register_card",
    "POST",
    "/agents/register-card",
    ("runner",),
    body=AgentRegistration,
    reply=RegisteredAgent,
    status=201,
    summary="Register an agent by its Agent Card: A2A of either format, or RedKey's own.",
    description="Register an agent by its card, in the request or at a URL; the same card is the same agent. With "
    "`issueKey` it gets an API key of its own.",
    replies={
        404: "The body names a workspace other than the key's.",
        409: "The slug in the card is taken.",
    },
    example={"agentCard": _EXAMPLE_CARD},
    method_name="agents.register",
)
LIST_AGENTS = Operation(
    "list_agents",
    "GET",
    "/agents",
    READ,
    query=AgentFilter,
    reply=Page[Agent],
    summary="List agents.",
    description="The agents of the workspace.",
    method_name="agents.list",
    command="agent list",
)
GET_AGENT = Operation(
    "get_agent",
    "GET",
    "/agents/{agent_id}",
    READ,
    reply=Agent,
    summary="Show an agent with its card.",
    method_name="agents.get",
    command="agent show AGENT",
)
PATCH_AGENT = Operation(
    "patch_agent",
    "PATCH",
    "/agents/{agent_id}",
    ADMIN,
    body=AgentPatch,
    reply=Agent,
    summary="Change an agent.",
    description="Change an agent: its card, its slug, whether it is verified or active.",
    repeats="bytes",
    replies={409: "The slug is taken."},
    example={"active": True},
    method_name="agents.update",
)
HEARTBEAT_AGENT = Operation(
    "heartbeat_agent",
    "POST",
    "/agents/{agent_id}/heartbeat",
    AGENT,
    body=AgentBeat,
    reply=AgentHeard,
    summary="Report that an agent is alive, and how much work it can take.",
    description="Report that the agent is alive; recorded if something changed or it was not seen for a while.",
    replies={409: "The agent is not active."},
    example={"capacity": 4, "inUse": 1},
    sends_key=False,
    method_name="agents.heartbeat",
)
DEACTIVATE_AGENT = Operation(
    "deactivate_agent",
    "POST",
    "/agents/{agent_id}/deactivate",
    AGENT,
    body=Extended,
    reply=DeactivatedAgent,
    summary="Deactivate an agent.",
    description="Deactivate an agent: it claims nothing more, and its leases expire.",
    method_name="agents.deactivate",
    command="agent deactivate AGENT",
)
LIST_CLAIM_HISTORY = Operation(
    "list_claim_history",
    "GET",
    "/agents/{agent_id}/claim-history",
    READ,
    query=PageQuery,
    reply=Page[ClaimHistoryItem],
    summary="List the outcomes of an agent's claims, newest first.",
    description="List the outcomes of an agent's claims, newest first: claimed, missed, rejected.",
    method_name="agents.claim_history",
)

OPERATIONS = (
    REGISTER_CARD,
    LIST_AGENTS,
    GET_AGENT,
    PATCH_AGENT,
    HEARTBEAT_AGENT,
    DEACTIVATE_AGENT,
    LIST_CLAIM_HISTORY,
)
