"""Policies of a workspace, and the rules its records fold under. They are on the ledger, so all servers agree."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import msgspec
from msgspec import Meta

from redkey.shapes.fields import (
    Attempts,
    Backoff,
    BlockerType,
    BlockRoute,
    Body,
    DelaySeconds,
    Extended,
    Identified,
    Jitter,
    Reply,
)
from redkey.shapes.operation import ADMIN, OPERATOR, READ, Operation

CostScope = Literal["task", "workflow", "agent", "day"]
UnverifiedOutputs = Literal["refuse", "allow"]
CapUsd = Annotated[float, Meta(ge=0, le=1_000_000)]


class ReceiptPolicy(Reply, frozen=True, kw_only=True):
    """`public`: anyone with the link may open a receipt."""

    public: bool


class RetryPolicyReply(Reply, frozen=True, kw_only=True):
    """How tasks without their own retry settings are retried."""

    max_attempts: int
    delay_seconds: float
    backoff: float
    jitter: float
    longest_delay_seconds: float


class Policy(Identified, frozen=True, kw_only=True):
    """Settings of a workspace, stored on its ledger. `blockRoutes`: blocker type -> the roles that get a message.
    `costCaps`: dollars that may be spent on one task, run (`workflow`) or agent, or in one day (UTC) by all.
    `unverifiedOutputs`: whether a task may complete with required outputs whose bytes RedKey has not seen."""

    SPECIFIC: ClassVar[str] = "workspace_id"
    workspace_id: str
    rules: int
    block_routes: dict[str, tuple[str, ...]]
    cost_caps: dict[str, float]
    # Whether a person may decide on gates of work that the same key did.
    self_approval: bool
    receipts: ReceiptPolicy
    unverified_outputs: str
    retry: RetryPolicyReply


class ReceiptPolicyPatch(Body, frozen=True, kw_only=True):
    """Whether anyone with the link may open a receipt."""

    public: bool


class RetryPolicyPatch(Body, frozen=True, kw_only=True):
    """Retries of tasks without their own retry settings: how often, and the pause before another attempt."""

    max_attempts: Attempts
    delay_seconds: DelaySeconds = 0
    backoff: Backoff = 2
    jitter: Jitter = 0
    longest_delay_seconds: DelaySeconds = 3600


class PolicyPatch(Extended, frozen=True, kw_only=True):
    """Policies to set; those that are not named stay. A cap that is null is removed."""

    block_routes: dict[BlockerType, BlockRoute] = msgspec.field(default_factory=dict)
    cost_caps: dict[CostScope, CapUsd | None] = msgspec.field(default_factory=dict)
    self_approval: bool | None = None
    receipts: ReceiptPolicyPatch | None = None
    unverified_outputs: UnverifiedOutputs | None = None
    retry: RetryPolicyPatch | None = None


class PolicyChange(Reply, frozen=True, kw_only=True):
    """What was changed; nothing is recorded if nothing changed."""

    workspace_id: str
    block_routes: dict[str, tuple[str, ...]]
    cost_caps: dict[str, float | None]
    self_approval: bool | None = None
    receipts: ReceiptPolicy | None = None
    event_id: str | None
    unverified_outputs: str | None = None
    retry: RetryPolicyReply | None = None


class NewRules(Extended, frozen=True, kw_only=True):
    """The rules for later records."""

    rules: Annotated[int, Meta(ge=2, le=999_999)]


class RaisedRules(Reply, frozen=True, kw_only=True):
    """Later records fold under these rules."""

    workspace_id: str
    rules: int
    event_id: str


_WORKSPACE_ID = "wk_01JTMX9A2B3C4D5E6F7G8H9JKR"
_EVENT_ID = "evt_01JTMX9A2B3C4D5E6F7G8H9JKM"
_RETRY = {"maxAttempts": 3, "delaySeconds": 10, "backoff": 2, "jitter": 0.1, "longestDelaySeconds": 600}

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
        "retry": _RETRY,
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
    # An operator's reply is stored in its own workspace, where nothing is recorded.
    repeats="bytes",
    summary="Set policies of a workspace: block routes, cost caps, retries, self-approval, public receipts.",
    description="Set policies of a workspace; the change is recorded.",
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
    summary="Fold later records under newer rules; for operators.",
    description="Fold later records under newer rules; older servers stop serving the workspace.",
    replies={
        409: "The workspace already has these rules or newer ones, or a registered server does not know them yet."
    },
    example={"rules": 2},
    reply_example={"workspaceId": _WORKSPACE_ID, "rules": 2, "eventId": _EVENT_ID},
    method_name="workspaces.raise_rules",
    positional=("rules",),
)

OPERATIONS = (GET_POLICY, SET_POLICY, RAISE_RULES)
