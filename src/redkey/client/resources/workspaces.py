"""Workspaces and their API keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from redkey.client.operation import Listing, Mode, Operation, Resource
from redkey.client.replies import Page
from redkey.client.request import Request, at, delete, get, patch, post
from redkey.shapes.policies import Policy as Policy
from redkey.shapes.policies import PolicyChange as PolicyChange
from redkey.shapes.policies import RaisedRules as RaisedRules
from redkey.shapes.workspaces import CreatedKey as CreatedKey
from redkey.shapes.workspaces import CreatedWorkspace as CreatedWorkspace
from redkey.shapes.workspaces import Key as Key
from redkey.shapes.workspaces import RevokedKey as RevokedKey
from redkey.shapes.workspaces import Scope as Scope
from redkey.shapes.workspaces import Workspace as Workspace


class Workspaces(Resource[Mode]):
    """Workspaces: one order, one ledger, one set of keys each."""

    @Listing
    def list(self, *, limit: int | None = None, after: str | None = None) -> Request[Page[Workspace]]:
        """The caller's workspace; all of them for operators."""
        return get("/workspaces", Page[Workspace], limit=limit, after=after)

    @Operation
    def create(self, *, name: str | None = None) -> Request[CreatedWorkspace]:
        """Begin a workspace; its first key is shown once."""
        return post("/workspaces", CreatedWorkspace, name=name)

    @Operation
    def policy(self, workspace_id: str) -> Request[Policy]:
        """The policies of a workspace, defaults included."""
        return get(at("workspaces", workspace_id, "policy"), Policy)

    @Operation
    def set_policy(self, workspace_id: str, *, block_routes: Mapping[str, Sequence[str]]) -> Request[PolicyChange]:
        """Set who is told of which blocks: blocker type -> roles. What is not named stays."""
        return patch(at("workspaces", workspace_id, "policy"), PolicyChange, block_routes=block_routes)

    @Operation
    def raise_rules(self, workspace_id: str, rules: int) -> Request[RaisedRules]:
        """Let later records fold under newer rules (operators only). There is no way back."""
        return post(at("workspaces", workspace_id, "rules"), RaisedRules, rules=rules)


class Keys(Resource[Mode]):
    """API keys of a workspace."""

    @Listing
    def list(self, workspace_id: str, *, limit: int | None = None, after: str | None = None) -> Request[Page[Key]]:
        """The keys of a workspace, by prefix."""
        return get(at("workspaces", workspace_id, "api-keys"), Page[Key], limit=limit, after=after)

    @Operation
    def create(
        self, workspace_id: str, *, scopes: Sequence[Scope], name: str | None = None, agent_id: str | None = None
    ) -> Request[CreatedKey]:
        """Make a key; its secret is shown once. A key with the scope agent names its agent."""
        path = at("workspaces", workspace_id, "api-keys")
        return post(path, CreatedKey, scopes=scopes, name=name, agent_id=agent_id)

    @Operation
    def revoke(self, workspace_id: str, key_id: str) -> Request[RevokedKey]:
        """Make a key invalid, at once and for good."""
        return delete(at("workspaces", workspace_id, "api-keys", key_id), RevokedKey)
