"""Workspaces and their API keys. A request's workspace comes from its key; operators see and create all of them."""

from __future__ import annotations

from redkey.commands.decision import Refused, not_found
from redkey.commands.registry import RevokeKey
from redkey.readmodel.rows import entity
from redkey.readmodel.workspace_view import key_view, workspace_view
from redkey.reducers.entities import Workspace as WorkspaceState
from redkey.services.caller import Caller, Pending
from redkey.services.ordered.operations import OrderRequest
from redkey.services.outcome import Outcome, settled
from redkey.services.place import Place
from redkey.services.use_case import use_case
from redkey.services.use_cases.new_key import new_key
from redkey.services.use_cases.new_workspace import found_workspace
from redkey.services.use_cases.ordered_workspaces import begin_ordered
from redkey.services.use_cases.texts import keep
from redkey.services.workspaces import Founding, first_policy, new_workspace_id, topic_of
from redkey.services.workspaces import workspaces as all_workspaces
from redkey.shapes import workspaces
from redkey.shapes.fields import Page, PageQuery
from redkey.shapes.workspaces import (
    CreatedKey,
    CreatedWorkspace,
    Key,
    NewKey,
    NewWorkspace,
    RevokedKey,
    Workspace,
    WorkspaceFilter,
)
from redkey.wire.events import KeyCreated, KeyRevoked
from redkey.wire.ids import event_id


@use_case(workspaces.LIST_WORKSPACES)
def list_workspaces(caller: Caller, asked: WorkspaceFilter) -> Page[Workspace]:
    """List the workspaces of the caller: its own; for operators all."""
    store = caller.means.store
    if asked.own or "operator" not in caller.actor.scopes:
        row = store.row(caller.topic, "workspace", "")
        if row is None or asked.after:
            return Page(())
        return Page((workspace_view(store, caller.topic, entity(row)),))
    found: list[Workspace] = []
    begun = not asked.after
    for topic, workspace in all_workspaces(store):
        if begun:
            found.append(workspace_view(store, topic, workspace))
        begun = begun or workspace.workspace_id == asked.after
        if len(found) > asked.limit:
            break
    items = found[: asked.limit]
    return Page(tuple(items), items[-1].workspace_id if len(found) > asked.limit else None)


@use_case(workspaces.CREATE_WORKSPACE)
async def create_workspace(caller: Caller, new: NewWorkspace) -> CreatedWorkspace:
    """Create a workspace with a first key."""
    means = caller.means
    if new.order == "network":
        return await _create_ordered(caller, new)
    key = new_key(caller, ("admin",))
    name = keep(caller, {"name": new.name})[1] if new.name is not None else None
    idem, body = caller.identity
    policy = first_policy(means.config)
    founding = Founding(founder=caller.actor, key=key, name=name, policy=policy, idem=idem, body=body)
    begun = await found_workspace(caller, founding)
    return CreatedWorkspace(
        workspace_id=begun.workspace_id,
        key_id=begun.key_id,
        api_key=means.keys.text(begun.key_id),
        event_id=event_id(begun.records[0].event.wire_id),
    )


async def _create_ordered(caller: Caller, new: NewWorkspace) -> CreatedWorkspace:
    """Create a workspace on a new topic of the network."""
    workspace_id = new_workspace_id(caller.means.ids, caller.identity[0])
    begun = await begin_ordered(caller, workspace_id, OrderRequest(name=new.name))
    if begun.key_id is None or begun.api_key is None:
        raise Refused(409, "workspace_exists", "The workspace exists already; create another key: redkey key create.")
    topic = workspace_topic(caller, workspace_id)
    first = settled(caller.means.store.read(topic, 0, 1)[0])
    return CreatedWorkspace(
        workspace_id=workspace_id,
        key_id=begun.key_id,
        api_key=begun.api_key,
        event_id=event_id(first.event.wire_id),
    )


@use_case(workspaces.CREATE_KEY)
def create_key(caller: Caller, workspace_id: str, new: NewKey) -> Pending[CreatedKey]:
    """Create a key; its secret is shown once."""
    topic = workspace_topic(caller, workspace_id)
    _check_grant(caller, new, topic)
    ref, name = keep(caller, {"name": new.name}) if new.name is not None else (None, None)
    text = caller.means.keys.text

    def reply(outcome: Outcome, place: Place) -> CreatedKey:
        key = outcome.payload(KeyCreated)
        return CreatedKey(
            key_id=key.key_id,
            api_key=text(key.key_id),
            scopes=key.scopes,
            agent_id=key.agent_id,
            event_id=outcome.event_id,
        )

    command = new_key(caller, new.scopes, new.agent_id or "", ref)
    return Pending(command, reply, () if name is None else (name,), topic=topic)


@use_case(workspaces.LIST_KEYS)
def list_keys(caller: Caller, workspace_id: str, asked: PageQuery) -> Page[Key]:
    """List the keys of a workspace."""
    topic, store = workspace_topic(caller, workspace_id), caller.means.store
    rows = store.rows(topic, "key", after=(0, asked.after), limit=asked.limit + 1)
    items = [key_view(store, topic, entity(row)) for row in rows[: asked.limit]]
    return Page(tuple(items), items[-1].key_id if len(rows) > asked.limit else None)


@use_case(workspaces.REVOKE_KEY)
def revoke_key(caller: Caller, workspace_id: str, key_id: str) -> Pending[RevokedKey]:
    """Revoke a key, at once and for good; its tokens with it."""

    def reply(outcome: Outcome, place: Place) -> RevokedKey:
        revoked = outcome.payload(KeyRevoked)
        return RevokedKey(key_id=revoked.key_id, status="revoked", event_id=outcome.event_id)

    return Pending(RevokeKey(key_id), reply, topic=workspace_topic(caller, workspace_id))


def workspace_topic(caller: Caller, workspace_id: str) -> str:
    """Return the topic of a workspace: the caller's own, or any for operators; not found for all others."""
    if workspace_id == caller.actor.workspace_id:
        return caller.topic
    topic = topic_of(caller.means.store, workspace_id) if "operator" in caller.actor.scopes else None
    if topic is None:
        raise not_found("workspace")
    return topic


def workspace_at(caller: Caller, topic: str) -> WorkspaceState:
    """Return the workspace that a topic holds; not found while it holds none."""
    row = caller.means.store.row(topic, "workspace", "")
    if row is None:
        raise not_found("workspace")
    workspace: WorkspaceState = entity(row)
    return workspace


def _check_grant(caller: Caller, new: NewKey, topic: str) -> None:
    """Refuse a key with more rights than its creator has; a key with the scope agent must name its agent."""
    if "operator" in new.scopes and "operator" not in caller.actor.scopes:
        raise Refused(403, "insufficient_scope", "Only an operator makes operator keys.")
    if len(set(new.scopes)) != len(new.scopes):
        raise Refused(422, "scope_repeated", "A scope is listed twice.", "/scopes")
    if ("agent" in new.scopes) != (new.agent_id is not None):
        detail = "A key with the scope agent names its agentId, and no other key does."
        raise Refused(422, "agent_id_mismatch", detail, "/agentId")
    if new.agent_id is not None:
        if not set(new.scopes) <= {"agent", "produce"}:
            detail = "An agent's key has the scope agent, with produce where it may create work, and no other."
            raise Refused(422, "agent_scope_alone", detail, "/scopes")
        if caller.means.store.row(topic, "agent", new.agent_id) is None:
            raise not_found("agent")
