"""Operations for operators on the ledger of a workspace: which topics of a public network it uses, and who may write.

These operations need the scope `operator`. They are declared here and not among the shapes, because they are in an
OpenAPI document of their own (`/ledger/openapi.json`) and in no SDK: callers of the API do not see the network.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta

from redkey.shapes.fields import Extended, Id, Name, Page, PageQuery, Reply, SecretReply, one_of
from redkey.shapes.operation import OPERATOR, Operation

Entity = Annotated[str, Meta(pattern=r"^0\.\d{1,10}\.\d{1,19}$", description="An id of the network, such as 0.0.4711.")]
Owner = Literal["managed", "customer"]


class OrderRequest(Extended, frozen=True, kw_only=True):
    """How a workspace gets its order from a topic: a new one, or one that exists."""

    topic: Annotated[Entity, Meta(description="The topic [a new one of the server's account].")] | None = None
    owner: Annotated[Owner, Meta(description="Whose the topic is: the server's account's, or a customer's.")] = (
        "managed"
    )
    account: Annotated[Entity, Meta(description="The customer's account.")] | None = None
    name: Annotated[Name, Meta(description="A name for people, if the workspace is begun.")] | None = None


class Ordered(SecretReply, frozen=True, kw_only=True):
    """A workspace that is ordered by a topic. A key comes with a workspace that was begun, and is shown once."""

    status: Annotated[str, one_of("begun", "followed")]
    workspace_id: str
    network: str
    topic: str
    key_id: str | None = None
    api_key: str | None = None


class LedgerTopic(Reply, frozen=True, kw_only=True):
    """A topic of a public network that belongs to a workspace."""

    topic: str
    network: str
    use: Annotated[str, one_of("order", "anchor")]
    owner: Annotated[str, one_of("managed", "customer")]
    account: str | None = None
    assigned_at: str
    retired_at: str | None = None


class LedgerParty(Reply, frozen=True, kw_only=True):
    """An account that may write: as one agent, or, without one, as another server."""

    account: str
    agent_id: str | None = None
    added_at: str


class LedgerSpending(Reply, frozen=True, kw_only=True):
    """What this server paid for messages, and what is reserved for those on their way."""

    messages: int
    usd: float
    reserved_usd: float
    tinybars: int


class Ledger(Reply, frozen=True, kw_only=True):
    """The ledger of a workspace as this server has it."""

    workspace_id: str
    order: Annotated[str, one_of("local", "network")]
    # The local topic, and how many records it has.
    local_topic: str
    records: int
    # Who pays for the workspace's own messages, and for those of this server.
    operator: str
    account: str | None = None
    network: str | None = None
    topic: str | None = None
    # Up to which message of the topic everything is folded.
    read_to: int
    # The structure that the next message needs and that no server gave yet; why nothing is read, or nothing paid.
    waits_for: str | None = None
    failure: str | None = None
    price_failure: str | None = None
    # How often a mirror repeated, changed or left out rows: they were asked for again.
    noticed: dict[str, int]
    bodies_wanted: int
    spending: LedgerSpending
    topics: tuple[LedgerTopic, ...]
    parties: tuple[LedgerParty, ...]


class LeftOut(Reply, frozen=True, kw_only=True):
    """A message of the topic that left no record, and why."""

    sequence: int
    consensus_at: str
    account: str
    reason: str


class HandOver(Extended, frozen=True, kw_only=True):
    """Whose the topic is now: the network must show it already."""

    account: Annotated[Entity, Meta(description="The account that the topic was handed to.")]


class Retirement(Extended, frozen=True, kw_only=True):
    """How a topic is retired."""

    delete: Annotated[bool, Meta(description="Delete the topic on the network too; it must be the server's own.")] = (
        False
    )


class TopicChange(Reply, frozen=True, kw_only=True):
    """A topic of a workspace was handed over or retired."""

    status: Annotated[str, one_of("assigned", "retired")]
    topic: str
    event_id: str


class NewParty(Extended, frozen=True, kw_only=True):
    """An account to let write."""

    account: Entity
    agent_id: Annotated[Id, Meta(description="The agent that it writes as [a server].")] | None = None


class PartyChange(Reply, frozen=True, kw_only=True):
    """An account may write, or may no more."""

    status: Annotated[str, one_of("added", "removed")]
    account: str
    event_id: str


_WORKSPACE, _EVENT = "wk_01JTMX9A2B3C4D5E6F7G8H9JKR", "evt_01JTMX9A2B3C4D5E6F7G8H9JKM"
_TIME = "2026-05-07T18:15:00.000000001Z"
_TOPIC = {
    "topic": "0.0.4711",
    "network": "testnet",
    "use": "order",
    "owner": "managed",
    "assignedAt": _TIME,
}
_AWAY = {
    402: "The account cannot pay the network's fee; send HBAR to it.",
    409: "The workspace, the topic or the network does not allow it; the detail says why.",
}

GET_LEDGER = Operation(
    "get_ledger",
    "GET",
    "/workspaces/{workspace_id}/ledger",
    OPERATOR,
    reply=Ledger,
    summary="The ledger of a workspace: what orders it, how far it is read, who may write.",
    reply_example={
        "workspaceId": _WORKSPACE,
        "order": "network",
        "localTopic": "3.0.4711",
        "records": 120,
        "operator": "0.0.1001",
        "account": "0.0.1001",
        "network": "testnet",
        "topic": "0.0.4711",
        "readTo": 40,
        "noticed": {"repeated": 1},
        "bodiesWanted": 0,
        "spending": {"messages": 40, "usd": 0.046, "reservedUsd": 0, "tinybars": 920000},
        "topics": [_TOPIC],
        "parties": [{"account": "0.0.2002", "addedAt": _TIME}],
    },
)
ORDER_WORKSPACE = Operation(
    "order_workspace",
    "PUT",
    "/workspaces/{workspace_id}/ledger",
    OPERATOR,
    body=OrderRequest,
    reply=Ordered,
    summary="Begin a workspace on a topic, or follow the existing one.",
    description="Begin a workspace that is ordered by a topic of the network, or follow it if its topic has it. "
    "The caller chooses the id; a follower names the id that was chosen.",
    replies=_AWAY,
    example={"topic": "0.0.4711", "owner": "customer", "account": "0.0.3003"},
    reply_example={"status": "followed", "workspaceId": _WORKSPACE, "network": "testnet", "topic": "0.0.4711"},
)
LIST_LEDGER_TOPICS = Operation(
    "list_ledger_topics",
    "GET",
    "/workspaces/{workspace_id}/ledger/topics",
    OPERATOR,
    reply=Page[LedgerTopic],
    summary="The topics of public networks that belong to a workspace, retired ones too.",
    reply_example={"items": [_TOPIC], "next": None},
)
HAND_OVER_TOPIC = Operation(
    "hand_over_topic",
    "POST",
    "/workspaces/{workspace_id}/ledger/topics/{topic}/hand-over",
    OPERATOR,
    body=HandOver,
    reply=TopicChange,
    repeats="bytes",
    summary="Record that a topic belongs to a customer now, as the network shows it.",
    description="Record that a topic belongs to a customer now. The key of the topic must be the account's already: "
    "redkey hedera topic hand-over makes it so, with the keys of both.",
    replies=_AWAY,
    example={"account": "0.0.3003"},
    reply_example={"status": "assigned", "topic": "0.0.4711", "eventId": _EVENT},
)
RETIRE_TOPIC = Operation(
    "retire_topic",
    "POST",
    "/workspaces/{workspace_id}/ledger/topics/{topic}/retire",
    OPERATOR,
    body=Retirement,
    reply=TopicChange,
    repeats="bytes",
    summary="Use a topic no more: what is written there afterwards counts for nothing.",
    replies=_AWAY,
    example={"delete": True},
    reply_example={"status": "retired", "topic": "0.0.4711", "eventId": _EVENT},
)
ADD_PARTY = Operation(
    "add_party",
    "POST",
    "/workspaces/{workspace_id}/ledger/parties",
    OPERATOR,
    body=NewParty,
    reply=PartyChange,
    repeats="bytes",
    status=201,
    summary="Let an account write: another organisation's server, or one agent by itself.",
    replies=_AWAY,
    example={"account": "0.0.2002"},
    reply_example={"status": "added", "account": "0.0.2002", "eventId": _EVENT},
)
REMOVE_PARTY = Operation(
    "remove_party",
    "DELETE",
    "/workspaces/{workspace_id}/ledger/parties/{account}",
    OPERATOR,
    body=Extended,
    reply=PartyChange,
    repeats="bytes",
    summary="Take the right to write from an account.",
    replies=_AWAY,
    reply_example={"status": "removed", "account": "0.0.2002", "eventId": _EVENT},
)
LIST_LEFT_OUT = Operation(
    "list_left_out",
    "GET",
    "/workspaces/{workspace_id}/ledger/left-out",
    OPERATOR,
    query=PageQuery,
    reply=Page[LeftOut],
    summary="Messages of the topic that left no record, each with its reason.",
    reply_example={
        "items": [{"sequence": 7, "consensusAt": _TIME, "account": "0.0.666", "reason": "unknown_payer"}],
        "next": None,
    },
)
LEDGER_OPENAPI = Operation(
    "ledger_openapi",
    "GET",
    "/ledger/openapi.json",
    OPERATOR,
    reply=dict[str, Any],
    summary="These operations as OpenAPI 3.1.",
)

OPERATIONS = (
    GET_LEDGER,
    ORDER_WORKSPACE,
    LIST_LEDGER_TOPICS,
    HAND_OVER_TOPIC,
    RETIRE_TOPIC,
    ADD_PARTY,
    REMOVE_PARTY,
    LIST_LEFT_OUT,
    LEDGER_OPENAPI,
)
