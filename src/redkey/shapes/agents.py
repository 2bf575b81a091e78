"""Agents: registered by their cards, listed, changed, deactivated; their heartbeats, and how their claims went."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from redkey.shapes.fields import Body, Id, Name, Page, PageQuery, Reply, SecretReply, Slug, Word, one_of
from redkey.shapes.operation import ADMIN, AGENT, READ, Operation
from redkey.shapes.tasks import Advice

Roles = Annotated[tuple[Word, ...], Meta(max_length=64)]
Many = Annotated[int, Meta(ge=0, le=1_000_000)]


class AgentRegistration(Body, frozen=True, kw_only=True):
    """An Agent Card, given or to be fetched. What it says is kept as data; the agent's id is never the card's."""

    card: dict[str, Any] | None = msgspec.field(default=None, name="agentCard")
    card_url: Annotated[str, Meta(max_length=2048)] = msgspec.field(default="", name="agentCardUrl")
    framework: Annotated[str, Meta(max_length=64)] = ""
    # Information for those who grant roles; only a grant makes an agent eligible.
    eligible_roles: Roles = ()
    issue_key: bool = False
    workspace_id: Id = ""


class AgentPatch(Body, frozen=True, kw_only=True):
    """What to change; a new card replaces the old one and its capabilities."""

    slug: Slug = ""
    card: dict[str, Any] | None = msgspec.field(default=None, name="agentCard")
    framework: Annotated[str, Meta(max_length=64)] | None = None
    eligible_roles: Roles | None = None
    verification: Literal["verified", "unverified"] | None = None
    active: bool | None = None


Pause = Literal["none", "usage_limit", "cost_cap", "start_failed"]


class AgentBeat(Body, frozen=True, kw_only=True):
    """A heartbeat, how much work the agent can take and has, and whether it claims nothing for a while."""

    capacity: Many | None = None
    in_use: Many | None = None
    # Why it claims nothing for now, and for how long; `none` ends a pause.
    pause: Pause | None = None
    pause_seconds: Annotated[int, Meta(ge=0, le=31_536_000)] = 0
    # The account at its model's provider, as a label. Agents of one account share its usage limits.
    account: Slug = ""


class AgentFilter(PageQuery, frozen=True, kw_only=True):
    """Which agents: all of the given."""

    slug: Annotated[Name, Meta(description="Only the one with this slug.")] | None = None
    role: Annotated[Name, Meta(description="Only those that have this role.")] | None = None
    active: Annotated[bool, Meta(description="Only those that may claim, or only those that may not.")] | None = None


class Endpoint(Reply, frozen=True, kw_only=True):
    """Where an agent says it is reached."""

    url: str
    binding: str = ""
    protocol_version: str = ""


class Skill(Reply, frozen=True, kw_only=True):
    """What an agent says it can do."""

    id: str
    name: str = ""
    description: str = ""
    tags: tuple[str, ...] = ()


class AuthRequirement(Reply, frozen=True, kw_only=True):
    """How an agent asks its callers to authenticate."""

    name: str
    type: str = ""


class AgentVerification(Reply, frozen=True, kw_only=True):
    """Who vouches for the card: the id of a pinned key that signed it, or an admin."""

    status: str
    key_id: str = ""


class RoleMatch(Reply, frozen=True, kw_only=True):
    """A role whose capabilities the agent's card covers, and the capabilities that matched."""

    role_id: str
    matched: tuple[str, ...]


class Agent(Reply, frozen=True, kw_only=True):
    """An agent: what its card says, which is data from a stranger, and what the ledger knows."""

    agent_id: str
    slug: str
    active: bool
    # No call and no heartbeat for a while; its next call brings it back.
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
    # Roles that fit, worked out when the card was registered: those whose capabilities it covers (`role_matches` says
    # by which), and those that the registration named. Only a grant, by an admin, lets the agent claim.
    eligible_roles: tuple[str, ...]
    role_matches: tuple[RoleMatch, ...]
    roles: tuple[str, ...]
    live_claims: int
    capacity: int | None = None
    in_use: int | None = None
    # Why and until when it claims nothing, as it said itself; the time may have passed.
    pause: str = ""
    paused_until: str | None = None
    # Whose usage limits it shares.
    account: str = ""
    registered_at: str
    last_act_at: str
    card_url: str = ""
    card: dict[str, Any] | None = None
    erased: bool = False


class RegisteredAgent(Agent, frozen=True, kw_only=True):
    """The agent as it was registered; `apiKey` is shown here and never again."""

    event_id: str
    api_key: str = ""
    warnings: tuple[Advice, ...] = ()

    __repr__ = SecretReply.__repr__


class AgentHeard(Reply, frozen=True, kw_only=True):
    """The heartbeat was received; only one that changes something is an event."""

    agent_id: str
    status: Annotated[str, one_of("alive")]
    event_id: str = ""


class DeactivatedAgent(Reply, frozen=True, kw_only=True):
    """The agent may claim nothing more."""

    agent_id: str
    event_id: str
    status: Annotated[str, one_of("deactivated")]


class ClaimHistoryItem(Reply, frozen=True, kw_only=True):
    """One claim and its outcome."""

    task_id: str
    claim_id: str
    status: Annotated[str, one_of("claimed", "missed", "rejected")]
    # How a won claim ended; `held` while it has not.
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
    summary="Register an agent by its Agent Card, A2A of either shape or RedKey's own.",
    description="Register an agent by its card, given or to be fetched; with `issueKey` it gets a key of its own.",
    replies={
        404: "The body names a workspace that is not the key's.",
        409: "The slug that the card names is taken.",
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
    summary="One agent, with its card.",
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
    summary="Tell that an agent is alive, and how much work it can take.",
    description="Tell that the agent is alive; recorded when something changed or it was silent for a while.",
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
    reply=DeactivatedAgent,
    summary="Deactivate an agent.",
    description="Deactivate an agent: it claims nothing more; what it holds runs out.",
    replies={409: "The agent is not active."},
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
    summary="How an agent's claims went, the newest first.",
    description="How an agent's claims went, the newest first: won, missed, rejected.",
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
