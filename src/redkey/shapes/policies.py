"""Policies of a workspace, and the rules its records fold under. They are on the ledger: every server decides alike."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from redkey.shapes.fields import BlockerType, BlockRoute, Body, Reply
from redkey.shapes.operation import ADMIN, OPERATOR, READ, Operation

CostScope = Literal["task", "workflow", "agent", "day"]
UnverifiedOutputs = Literal["refuse", "allow"]
CapUsd = Annotated[float, Meta(ge=0, le=1_000_000)]


class ReceiptPolicy(Reply, frozen=True, kw_only=True):
    """`public`: receipts open for everybody who has their link."""

    public: bool


class Policy(Reply, frozen=True, kw_only=True):
    """Settings of a workspace, kept on its ledger. `blockRoutes`: by type of blocker, the roles that get a message.
    `costCaps`: dollars that may be spent on one task, run (`workflow`) or agent, or on one day (UTC) by all.
    `unverifiedOutputs`: whether a task may be completed with required outputs whose bytes RedKey did not see."""

    workspace_id: str
    rules: int
    block_routes: dict[str, tuple[str, ...]]
    cost_caps: dict[str, float]
    # Whether a person may decide on gates of work that the same key did.
    self_approval: bool
    receipts: ReceiptPolicy
    unverified_outputs: str


class ReceiptPolicyPatch(Body, frozen=True, kw_only=True):
    """Whether receipts open for everybody who has their link."""

    public: bool


class PolicyPatch(Body, frozen=True, kw_only=True):
    """Policies to set; what is not named stays. A cap that is null is removed."""

    block_routes: dict[BlockerType, BlockRoute] = msgspec.field(default_factory=dict)
    cost_caps: dict[CostScope, CapUsd | None] = msgspec.field(default_factory=dict)
    self_approval: bool | None = None
    receipts: ReceiptPolicyPatch | None = None
    unverified_outputs: UnverifiedOutputs | None = None


class PolicyChange(Reply, frozen=True, kw_only=True):
    """What was changed; nothing was recorded when all of it was so before."""

    workspace_id: str
    block_routes: dict[str, tuple[str, ...]]
    cost_caps: dict[str, float | None]
    self_approval: bool | None = None
    receipts: ReceiptPolicy | None = None
    event_id: str | None
    unverified_outputs: str | None = None


class NewRules(Body, frozen=True, kw_only=True):
    """The rules to fold later records under."""

    rules: Annotated[int, Meta(ge=2, le=999_999)]


class RaisedRules(Reply, frozen=True, kw_only=True):
    """Later records fold under these rules."""

    workspace_id: str
    rules: int
    event_id: str


_WORKSPACE_ID = "wk_01JTMX9A2B3C4D5E6F7G8H9JKR"
_EVENT_ID = "evt_01JTMX9A2B3C4D5E6F7G8H9JKM"

GET_POLICY = Operation(
    "get_policy",
    "GET",
    "/workspaces/{workspace_id}/policy",
    (*READ, *OPERATOR),
    reply=Policy,
    summary="The policies of a workspace, defaults included.",
    reply_example={
        "workspaceId": _WORKSPACE_ID,
        "rules": 2,
        "blockRoutes": {"ambiguity": ["role_pm"], "auth": []},
        "costCaps": {"task": 2.5, "day": 20},
        "selfApproval": False,
        "receipts": {"public": False},
        "unverifiedOutputs": "refuse",
    },
    method_name="workspaces.policy",
)
SET_POLICY = Operation(
    "set_policy",
    "PATCH",
    "/workspaces/{workspace_id}/policy",
    (*ADMIN, *OPERATOR),
    body=PolicyPatch,
    reply=PolicyChange,
    # An operator's answer is kept in its own workspace, where nothing is recorded.
    repeats="bytes",
    summary="Set policies of a workspace: block routes, cost caps, self-approval, public receipts.",
    description="Set policies of a workspace, on the record.",
    example={"blockRoutes": {"ambiguity": ["role_editor"]}, "costCaps": {"day": 20}, "selfApproval": True},
    reply_example={
        "workspaceId": _WORKSPACE_ID,
        "blockRoutes": {"ambiguity": ["role_editor"]},
        "costCaps": {"day": 20},
        "selfApproval": True,
        "eventId": _EVENT_ID,
    },
    method_name="workspaces.set_policy",
)
RAISE_RULES = Operation(
    "raise_rules",
    "POST",
    "/workspaces/{workspace_id}/rules",
    (*ADMIN, *OPERATOR),
    body=NewRules,
    reply=RaisedRules,
    summary="Let later records fold under newer rules; for operators.",
    description="Let later records fold under newer rules; older servers stop serving the workspace.",
    replies={409: "The workspace is under these rules, or newer ones, already."},
    example={"rules": 2},
    reply_example={"workspaceId": _WORKSPACE_ID, "rules": 2, "eventId": _EVENT_ID},
    method_name="workspaces.raise_rules",
    positional=("rules",),
)

OPERATIONS = (GET_POLICY, SET_POLICY, RAISE_RULES)
