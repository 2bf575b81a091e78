"""Workspaces and their API keys. A request's workspace follows from its key; operators see all of them."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from redkey.shapes.fields import Extended, Id, Identified, Name, Page, PageQuery, Reply, SecretReply, one_of
from redkey.shapes.operation import ADMIN, OPERATOR, READ, Operation

Scope = Literal["operator", "admin", "produce", "agent", "runner", "read"]
# What a key or token with a scope may do.
SCOPES: dict[Scope, str] = {
    "operator": "The whole server: workspaces, credits, prices.",
    "admin": "Everything in one workspace, as any of its agents.",
    "produce": "Queues, tasks and workflows.",
    "agent": "Claim and report, as one agent.",
    "runner": "Claim and report, as any agent of the workspace.",
    "read": "Read, and nothing else.",
}


class NewWorkspace(Extended, frozen=True, kw_only=True):
    """A workspace to create."""

    name: Annotated[Name, Meta(description="A display name.")] | None = None
    order: Annotated[
        Literal["local", "network"],
        Meta(
            description="What gives the workspace its order: this server, or a public network, which several "
            "organisations can follow. There a request takes 5 to 10 seconds, and a fee is paid for it."
        ),
    ] = "local"


class WorkspaceFilter(PageQuery, frozen=True, kw_only=True):
    """Which workspaces."""

    own: Annotated[bool, Meta(description="Only the workspace of the key, for operators too.")] = False


class Workspace(Identified, frozen=True, kw_only=True):
    """A workspace."""

    SPECIFIC: ClassVar[str] = "workspace_id"
    workspace_id: str
    name: str | None
    created_at: str


class CreatedWorkspace(SecretReply, Identified, frozen=True, kw_only=True):
    """A new workspace and its first key (scope admin), which is shown only here."""

    SPECIFIC: ClassVar[str] = "workspace_id"
    workspace_id: str
    key_id: str
    api_key: str
    event_id: str


class NewKey(Extended, frozen=True, kw_only=True):
    """A key to create. A key with the scope agent is bound to one agent and acts only as that agent."""

    scopes: Annotated[tuple[Scope, ...], Meta(min_length=1, max_length=6, description="What it may do.")]
    name: Annotated[Name, Meta(description="A display name.")] | None = None
    agent_id: Annotated[Id, Meta(description="The agent of a key with the scope agent.")] | None = None


class Key(Identified, frozen=True, kw_only=True):
    """A key in a list: its prefix, never its secret."""

    SPECIFIC: ClassVar[str] = "key_id"
    key_id: str
    prefix: str
    scopes: tuple[str, ...]
    name: str | None
    agent_id: str | None
    created_at: str
    revoked_at: str | None


class CreatedKey(SecretReply, Identified, frozen=True, kw_only=True):
    """A new key; `apiKey` is shown only here."""

    SPECIFIC: ClassVar[str] = "key_id"
    key_id: str
    api_key: str
    scopes: tuple[str, ...]
    agent_id: str | None
    event_id: str


class RevokedKey(Reply, frozen=True, kw_only=True):
    """A key that is no longer valid."""

    key_id: str
    status: Annotated[str, one_of("revoked")]
    event_id: str


_KEY = {
    "keyId": "key_01JTMX9A2B3C4D5E6F7G8H9JKS",
    "prefix": "rk_5E6F7G8H9JKS4D5E",
    "scopes": ["produce"],
    "name": "release pipeline",
    "agentId": None,
    "createdAt": "2026-05-07T18:15:00.000000001Z",
    "revokedAt": None,
}
_WORKSPACE_ID = "wk_01JTMX9A2B3C4D5E6F7G8H9JKR"
_EVENT_ID = "evt_01JTMX9A2B3C4D5E6F7G8H9JKM"

LIST_WORKSPACES = Operation(
    "list_workspaces",
    "GET",
    "/workspaces",
    (*READ, *OPERATOR),
    query=WorkspaceFilter,
    reply=Page[Workspace],
    summary="List the caller's workspace; all workspaces for operators.",
    description="List the caller's workspace; for operators, all workspaces.",
    reply_example={
        "items": [{"workspaceId": _WORKSPACE_ID, "name": "Podcast", "createdAt": "2026-05-07T18:15:00.000000001Z"}],
        "next": None,
    },
    method_name="workspaces.list",
    command="workspace list",
)
CREATE_WORKSPACE = Operation(
    "create_workspace",
    "POST",
    "/workspaces",
    OPERATOR,
    body=NewWorkspace,
    reply=CreatedWorkspace,
    status=201,
    summary="Create a workspace; its first key is shown once.",
    description="Create a workspace with a first key.",
    example={"name": "Podcast"},
    reply_example={
        "workspaceId": _WORKSPACE_ID,
        "keyId": _KEY["keyId"],
        "apiKey": "rk_5E6F7G8H9JKS4D5E_…",
        "eventId": _EVENT_ID,
    },
    method_name="workspaces.create",
    command="workspace create",
)
CREATE_KEY = Operation(
    "create_key",
    "POST",
    "/workspaces/{workspace_id}/api-keys",
    (*ADMIN, *OPERATOR),
    body=NewKey,
    reply=CreatedKey,
    status=201,
    summary="Create an API key; its secret is shown once.",
    example={"scopes": ["produce"], "name": "release pipeline"},
    reply_example={
        "keyId": _KEY["keyId"],
        "apiKey": "rk_5E6F7G8H9JKS4D5E_…",
        "scopes": ["produce"],
        "agentId": None,
        "eventId": _EVENT_ID,
    },
    method_name="keys.create",
    command="key create",
)
LIST_KEYS = Operation(
    "list_keys",
    "GET",
    "/workspaces/{workspace_id}/api-keys",
    (*ADMIN, *OPERATOR),
    query=PageQuery,
    reply=Page[Key],
    summary="List the keys of a workspace, by prefix.",
    description="List the keys of a workspace.",
    reply_example={"items": [_KEY], "next": None},
    method_name="keys.list",
    command="key list",
)
REVOKE_KEY = Operation(
    "revoke_key",
    "DELETE",
    "/workspaces/{workspace_id}/api-keys/{key_id}",
    (*ADMIN, *OPERATOR),
    body=Extended,
    reply=RevokedKey,
    summary="Revoke a key.",
    description="Revoke a key at once and permanently; its tokens end with it.",
    replies={409: "It is the last key that can create keys; create another one first."},
    reply_example={"keyId": _KEY["keyId"], "status": "revoked", "eventId": _EVENT_ID},
    method_name="keys.revoke",
    command="key revoke KEY",
)

OPERATIONS = (LIST_WORKSPACES, CREATE_WORKSPACE, CREATE_KEY, LIST_KEYS, REVOKE_KEY)
