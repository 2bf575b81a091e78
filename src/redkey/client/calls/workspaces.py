"""Workspaces and their API keys. A request's workspace follows from its key; operators see all of them.

Written by `python -m tools.sdk` from the declared operations; `make verify` proves it current.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from redkey.client.operation import Listing, Mode, Operation, Resource
from redkey.client.request import Request, as_object, at, get, patch, post
from redkey.shapes.fields import Page
from redkey.shapes.policies import (
    Policy,
    PolicyChange,
    RaisedRules,
    ReceiptPolicyPatch,
    RetryPolicyPatch,
    UnverifiedOutputs,
)
from redkey.shapes.workspaces import CreatedWorkspace, Workspace


class Workspaces(Resource[Mode]):
    """Workspaces and their API keys. A request's workspace follows from its key; operators see all of them."""

    @Operation
    def policy(self, workspace_id: str) -> Request[Policy]:
        """The policies of a workspace, defaults included."""
        return get(at("workspaces", workspace_id, "policy"), Policy)

    @Operation
    def set_policy(
        self,
        workspace_id: str,
        *,
        block_routes: Mapping[str, Sequence[str]] | None = None,
        cost_caps: Mapping[str, float | None] | None = None,
        self_approval: bool | None = None,
        receipts: ReceiptPolicyPatch | Mapping[str, Any] | None = None,
        unverified_outputs: UnverifiedOutputs | None = None,
        retry: RetryPolicyPatch | Mapping[str, Any] | None = None,
        extensions: Mapping[str, Any] | None = None,
    ) -> Request[PolicyChange]:
        """Set policies of a workspace: block routes, cost caps, retries, self-approval, public receipts."""
        return patch(
            at("workspaces", workspace_id, "policy"),
            PolicyChange,
            block_routes=block_routes,
            cost_caps=cost_caps,
            self_approval=self_approval,
            receipts=as_object(receipts),
            unverified_outputs=unverified_outputs,
            retry=as_object(retry),
            extensions=extensions,
        )

    @Operation
    def raise_rules(
        self, workspace_id: str, rules: int, *, extensions: Mapping[str, Any] | None = None
    ) -> Request[RaisedRules]:
        """Fold later records under newer rules; older servers stop serving the workspace."""
        return post(at("workspaces", workspace_id, "rules"), RaisedRules, rules=rules, extensions=extensions)

    @Listing
    def list(
        self, *, own: bool | None = None, limit: int | None = None, after: str | None = None
    ) -> Request[Page[Workspace]]:
        """List the caller's workspace; for operators, all workspaces."""
        return get("/workspaces", Page[Workspace], own=own, limit=limit, after=after)

    @Operation
    def create(
        self,
        *,
        name: str | None = None,
        order: Literal["local", "network"] | None = None,
        extensions: Mapping[str, Any] | None = None,
    ) -> Request[CreatedWorkspace]:
        """Create a workspace; its first key is shown once."""
        return post("/workspaces", CreatedWorkspace, name=name, order=order, extensions=extensions)
