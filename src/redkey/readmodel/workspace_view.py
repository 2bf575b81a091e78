"""Workspaces and keys as the API shows them."""

from __future__ import annotations

from redkey.ledger.record import iso_time
from redkey.readmodel.view import Shelf, moment, read_document
from redkey.reducers import entities
from redkey.shapes.workspaces import Key, Workspace


def workspace_view(shelf: Shelf, topic: str, workspace: entities.Workspace) -> Workspace:
    """Show a workspace."""
    return Workspace(
        workspace_id=workspace.workspace_id,
        name=_name(shelf, topic, workspace.name_sha256),
        created_at=iso_time(workspace.created_at),
    )


def key_view(shelf: Shelf, topic: str, key: entities.Key) -> Key:
    """Show a key; its secret is never shown."""
    return Key(
        key_id=key.key_id,
        prefix=key.prefix,
        scopes=key.scopes,
        name=_name(shelf, topic, key.name_sha256),
        agent_id=key.agent_id or None,
        created_at=iso_time(key.created_at),
        revoked_at=moment(key.revoked_at),
    )


def _name(shelf: Shelf, topic: str, sha256: str) -> str | None:
    """Read a name, or the e-mail address of a person without one; None if there is none or it was erased."""
    document = read_document(shelf, topic, sha256) or {}
    return document.get("name") or document.get("email")
