"""Workspaces and their API keys."""

from __future__ import annotations

from redkey.client.calls.keys import Keys
from redkey.client.calls.workspaces import Workspaces
from redkey.shapes.policies import Policy, PolicyChange, RaisedRules
from redkey.shapes.workspaces import CreatedKey, CreatedWorkspace, Key, RevokedKey, Scope, Workspace

__all__ = [
    "CreatedKey",
    "CreatedWorkspace",
    "Key",
    "Keys",
    "Policy",
    "PolicyChange",
    "RaisedRules",
    "RevokedKey",
    "Scope",
    "Workspace",
    "Workspaces",
]
