"""Workspaces and their API keys. A request's workspace comes from its key; operators see and begin all of them."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from redkey.api.call import Call
from redkey.api.fields import Body, Id, Listed, Name, Page
from redkey.commands.decision import Refused, not_found
from redkey.commands.registry import CreateKey, RevokeKey
from redkey.http.problems import Declined
from redkey.http.route import ADMIN, OPERATOR, READ, Route
from redkey.ledger.record import iso_time
from redkey.readmodel.rows import entity
from redkey.reducers.entities import Key, Workspace
from redkey.services.keys import digest_of
from redkey.services.use_cases.texts import keep
from redkey.services.workspaces import begin_workspace, topic_of, workspaces
from redkey.wire.decode import decode
from redkey.wire.ids import event_id

Scope = Literal["operator", "admin", "produce", "agent", "runner", "read"]


class NewWorkspace(Body, frozen=True, kw_only=True):
    """A workspace to begin."""

    name: Name | None = None


class WorkspaceView(msgspec.Struct, frozen=True, rename="camel"):
    """A workspace."""

    workspace_id: str
    name: str | None
    created_at: str


class CreatedWorkspace(msgspec.Struct, frozen=True, rename="camel"):
    """A workspace that was begun, and its first key (scope admin), which is shown here and never again."""

    workspace_id: str
    key_id: str
    api_key: str
    event_id: str


class NewKey(Body, frozen=True, kw_only=True):
    """A key to make. A key with the scope agent is bound to one agent and acts as that agent only."""

    scopes: Annotated[list[Scope], msgspec.Meta(min_length=1, max_length=6)]
    name: Name | None = None
    agent_id: Id | None = None


class KeyView(msgspec.Struct, frozen=True, rename="camel"):
    """A key as lists show it: by its prefix, never its secret."""

    key_id: str
    prefix: str
    scopes: list[str]
    name: str | None
    agent_id: str | None
    created_at: str
    revoked_at: str | None


class CreatedKey(msgspec.Struct, frozen=True, rename="camel"):
    """A new key; `apiKey` is shown here and never again."""

    key_id: str
    api_key: str
    scopes: list[str]
    agent_id: str | None
    event_id: str


class RevokedKey(msgspec.Struct, frozen=True, rename="camel"):
    """A key that is no longer valid."""

    key_id: str
    status: Literal["revoked"]
    event_id: str


async def list_workspaces(call: Call) -> Listed[WorkspaceView]:
    """The workspaces of the caller: its own; for operators all."""
    store, asked = call.services.store, call.query
    if "operator" not in call.actor.scopes:
        row = store.row(call.topic, "workspace", "")
        return Listed((_view(call, call.topic, entity(row)),) if row is not None and not asked.after else ())
    found: list[WorkspaceView] = []
    begun = not asked.after
    for topic, workspace in workspaces(store):
        if begun:
            found.append(_view(call, topic, workspace))
        begun = begun or workspace.workspace_id == asked.after
        if len(found) > asked.limit:
            break
    items = found[: asked.limit]
    return Listed(tuple(items), items[-1].workspace_id if len(found) > asked.limit else None)


async def create_workspace(call: Call, body: NewWorkspace) -> CreatedWorkspace:
    """Begin a workspace with a first key."""
    services = call.services
    key_id = "key_" + services.ids.ulid()
    key = services.keys.text(key_id)
    command = CreateKey(key_id, key.rpartition("_")[0], ("admin",), secret_sha256=digest_of(key))
    name = keep(call, {"name": body.name})[1] if body.name is not None else None
    idem, body_hash = call.identity
    begun = await call.in_thread(
        lambda: begin_workspace(
            services.store,
            services.ids,
            services.signing,
            call.actor,
            command,
            name,
            block_routes=services.config.new_block_routes,
            idem=idem,
            body=body_hash,
        )
    )
    if not begun.repeated:
        services.coordinator.announce(begun.topic, begun.records)
    return CreatedWorkspace(
        workspace_id=begun.workspace_id,
        key_id=begun.key_id,
        api_key=services.keys.text(begun.key_id),
        event_id=event_id(begun.records[0].event.wire_id),
    )


async def create_key(call: Call, body: NewKey) -> CreatedKey:
    """Make a key; its secret is shown once."""
    topic = workspace_topic(call)
    _check_grant(call, body, topic)
    services = call.services
    key_id = "key_" + services.ids.ulid()
    key = services.keys.text(key_id)
    ref, name = keep(call, {"name": body.name}) if body.name is not None else (None, None)
    scopes = tuple(dict.fromkeys(body.scopes))
    command = CreateKey(key_id, key.rpartition("_")[0], scopes, body.agent_id or "", ref, digest_of(key))
    outcome = await call.submit(command, () if name is None else (name,), topic=topic)
    wire = outcome.records[0].wire
    made_id = wire["payload"]["key_id"]
    return CreatedKey(
        made_id,
        services.keys.text(made_id),
        wire["payload"]["scopes"],
        wire["payload"].get("agent_id"),
        event_id(wire["wire_id"]),
    )


async def list_keys(call: Call) -> Listed[KeyView]:
    """The keys of a workspace."""
    topic, asked = workspace_topic(call), call.query
    rows = call.services.store.rows(topic, "key", after=(0, asked.after), limit=asked.limit + 1)
    items = [_key_view(call, topic, entity(row)) for row in rows[: asked.limit]]
    return Listed(tuple(items), items[-1].key_id if len(rows) > asked.limit else None)


async def revoke_key(call: Call) -> RevokedKey:
    """Make a key invalid, at once and for good; its tokens with it."""
    topic = workspace_topic(call)
    outcome = await call.submit(RevokeKey(call.path["key_id"]), topic=topic)
    wire = outcome.records[0].wire
    return RevokedKey(wire["payload"]["key_id"], "revoked", event_id(wire["wire_id"]))


def workspace_topic(call: Call) -> str:
    """The topic of the workspace in the path: the caller's own, or any for operators; else as if it were missing."""
    workspace_id = call.path["workspace_id"]
    if workspace_id == call.actor.workspace_id:
        return call.topic
    topic = topic_of(call.services.store, workspace_id) if "operator" in call.actor.scopes else None
    if topic is None:
        raise not_found("workspace")
    return topic


def _check_grant(call: Call, body: NewKey, topic: str) -> None:
    """Nobody gives what they do not have, and an agent's key names its agent."""
    if "operator" in body.scopes and "operator" not in call.actor.scopes:
        raise Declined(403, "insufficient_scope", "Only an operator makes operator keys.")
    if len(set(body.scopes)) != len(body.scopes):
        raise Refused(422, "scope_repeated", "A scope stands twice.", "/scopes")
    if ("agent" in body.scopes) != (body.agent_id is not None):
        detail = "A key with the scope agent names its agentId, and no other key does."
        raise Refused(422, "agent_id_mismatch", detail, "/agentId")
    if body.agent_id is not None:
        if body.scopes != ["agent"]:
            raise Refused(422, "agent_scope_alone", "An agent's key has the scope agent and no other.", "/scopes")
        if call.services.store.row(topic, "agent", body.agent_id) is None:
            raise not_found("agent")


def _view(call: Call, topic: str, workspace: Workspace) -> WorkspaceView:
    return WorkspaceView(
        workspace.workspace_id, _name(call, topic, workspace.name_sha256), iso_time(workspace.created_at)
    )


def _key_view(call: Call, topic: str, key: Key) -> KeyView:
    return KeyView(
        key.key_id,
        key.prefix,
        list(key.scopes),
        _name(call, topic, key.name_sha256),
        key.agent_id or None,
        iso_time(key.created_at),
        iso_time(key.revoked_at) if key.revoked_at else None,
    )


def _name(call: Call, topic: str, sha256: str) -> str | None:
    content = call.services.store.content(topic, sha256) if sha256 else None
    return decode(content.data)["name"] if content is not None else None


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
ROUTES = [
    Route(
        "GET",
        "/workspaces",
        list_workspaces,
        (*READ, "operator"),
        query=Page,
        reply=Listed[WorkspaceView],
        summary="The caller's workspace; all of them for operators.",
        reply_example={
            "items": [{"workspaceId": _WORKSPACE_ID, "name": "Podcast", "createdAt": "2026-05-07T18:15:00.000000001Z"}],
            "next": None,
        },
    ),
    Route(
        "POST",
        "/workspaces",
        create_workspace,
        OPERATOR,
        body=NewWorkspace,
        reply=CreatedWorkspace,
        status=201,
        summary="Begin a workspace; its first key is shown once.",
        example={"name": "Podcast"},
        reply_example={
            "workspaceId": _WORKSPACE_ID,
            "keyId": _KEY["keyId"],
            "apiKey": "rk_5E6F7G8H9JKS4D5E_…",
            "eventId": _EVENT_ID,
        },
    ),
    Route(
        "POST",
        "/workspaces/{workspace_id}/api-keys",
        create_key,
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
    ),
    Route(
        "GET",
        "/workspaces/{workspace_id}/api-keys",
        list_keys,
        (*ADMIN, *OPERATOR),
        query=Page,
        reply=Listed[KeyView],
        summary="The keys of a workspace, by prefix.",
        reply_example={"items": [_KEY], "next": None},
    ),
    Route(
        "DELETE",
        "/workspaces/{workspace_id}/api-keys/{key_id}",
        revoke_key,
        (*ADMIN, *OPERATOR),
        reply=RevokedKey,
        summary="Revoke a key.",
        replies={409: "It is the last key that can make keys; make another one first."},
        reply_example={"keyId": _KEY["keyId"], "status": "revoked", "eventId": _EVENT_ID},
    ),
]
