"""Workspaces and their API keys. A request's workspace follows from its key; operators see all of them.

Written by `python -m tools.sdk` from the declared operations; `make verify` proves it current.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from redkey.client.operation import Listing, Mode, Operation, Resource
from redkey.client.request import Request, at, delete, get, post
from redkey.shapes.fields import Page
from redkey.shapes.workspaces import CreatedKey, Key, RevokedKey, Scope


class Keys(Resource[Mode]):
    """Workspaces and their API keys. A request's workspace follows from its key; operators see all of them."""

    @Operation
    def create(
        self,
        workspace_id: str,
        *,
        scopes: Sequence[Scope],
        name: str | None = None,
        agent_id: str | None = None,
        extensions: Mapping[str, Any] | None = None,
    ) -> Request[CreatedKey]:
        """Create an API key; its secret is shown once."""
        return post(
            at("workspaces", workspace_id, "api-keys"),
            CreatedKey,
            scopes=scopes,
            name=name,
            agent_id=agent_id,
            extensions=extensions,
        )

    @Listing
    def list(self, workspace_id: str, *, limit: int | None = None, after: str | None = None) -> Request[Page[Key]]:
        """List the keys of a workspace, by prefix."""
        return get(at("workspaces", workspace_id, "api-keys"), Page[Key], limit=limit, after=after)

    @Operation
    def revoke(
        self, workspace_id: str, key_id: str, *, extensions: Mapping[str, Any] | None = None
    ) -> Request[RevokedKey]:
        """Revoke a key at once and permanently; its tokens end with it."""
        return delete(at("workspaces", workspace_id, "api-keys", key_id), RevokedKey, extensions=extensions)
