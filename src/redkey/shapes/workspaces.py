"""Workspaces and their API keys. A request's workspace comes from its key; operators see and begin all of them."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from redkey.shapes.fields import Body, Id, Name, Page, PageQuery, Reply, SecretReply, one_of
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


class NewWorkspace(Body, frozen=True, kw_only=True):
    """A workspace to begin."""

    name: Annotated[Name, Meta(description="A name for people.")] | None = None


class Workspace(Reply, frozen=True, kw_only=True):
    """A workspace."""

    workspace_id: str
    name: str | None
    created_at: str


class CreatedWorkspace(SecretReply, frozen=True, kw_only=True):
    """A workspace that was begun, and its first key (scope admin), which is shown here and never again."""

    workspace_id: str
    key_id: str
    api_key: str
    event_id: str


class NewKey(Body, frozen=True, kw_only=True):
    """A key to make. A key with the scope agent is bound to one agent and acts as that agent only."""

    scopes: Annotated[tuple[Scope, ...], Meta(min_length=1, max_length=6, description="What it may do.")]
    name: Annotated[Name, Meta(description="A name for people.")] | None = None
    agent_id: Annotated[Id, Meta(description="The agent that a key with the scope agent is for.")] | None = None


class Key(Reply, frozen=True, kw_only=True):
    """A key as lists show it: by its prefix, never its secret."""

    key_id: str
    prefix: str
    scopes: tuple[str, ...]
    name: str | None
    agent_id: str | None
    created_at: str
    revoked_at: str | None


class CreatedKey(SecretReply, frozen=True, kw_only=True):
    """A new key; `apiKey` is shown here and never again."""

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
    query=PageQuery,
    reply=Page[Workspace],
    summary="The caller's workspace; all of them for operators.",
    description="The workspaces of the caller: its own; for operators all.",
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
    summary="Begin a workspace; its first key is shown once.",
    description="Begin a workspace with a first key.",
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
    summary="Make a key; its secret is shown once.",
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
    summary="The keys of a workspace, by prefix.",
    description="The keys of a workspace.",
    reply_example={"items": [_KEY], "next": None},
    method_name="keys.list",
    command="key list",
)
REVOKE_KEY = Operation(
    "revoke_key",
    "DELETE",
    "/workspaces/{workspace_id}/api-keys/{key_id}",
    (*ADMIN, *OPERATOR),
    reply=RevokedKey,
    summary="Revoke a key.",
    description="Make a key invalid, at once and for good; its tokens with it.",
    replies={409: "It is the last key that can make keys; make another one first."},
    reply_example={"keyId": _KEY["keyId"], "status": "revoked", "eventId": _EVENT_ID},
    method_name="keys.revoke",
    command="key revoke KEY",
)

OPERATIONS = (LIST_WORKSPACES, CREATE_WORKSPACE, CREATE_KEY, LIST_KEYS, REVOKE_KEY)
