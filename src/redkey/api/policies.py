"""Policies of a workspace, and the rules its records fold under. They are on the ledger: every server decides alike."""

from __future__ import annotations

from typing import Annotated

import msgspec

from redkey.api.call import Call
from redkey.api.fields import Body, wrong
from redkey.api.workspaces import workspace_topic
from redkey.commands.policies import RaiseRules, SetPolicy
from redkey.config import BlockerType, BlockRoute
from redkey.http.route import ADMIN, OPERATOR, READ, Route
from redkey.reducers.task import block_route
from redkey.reducers.world import BLOCK_ROUTES
from redkey.wire.ids import event_id


class Policy(msgspec.Struct, frozen=True, rename="camel"):
    """What a workspace decides for itself. `blockRoutes`: blocker type -> roles that are told."""

    workspace_id: str
    rules: int
    block_routes: dict[str, list[str]]


class PolicyPatch(Body, frozen=True, kw_only=True):
    """Policies to set; what is not named stays."""

    block_routes: dict[BlockerType, BlockRoute]


class PolicyChange(msgspec.Struct, frozen=True, rename="camel"):
    """What was changed; nothing was recorded when all of it was so before."""

    workspace_id: str
    block_routes: dict[str, list[str]]
    event_id: str | None


class NewRules(Body, frozen=True, kw_only=True):
    """The rules to fold later records under."""

    rules: Annotated[int, msgspec.Meta(ge=2, le=999_999)]


class RaisedRules(msgspec.Struct, frozen=True, rename="camel"):
    """Later records fold under these rules."""

    workspace_id: str
    rules: int
    event_id: str


async def get_policy(call: Call) -> Policy:
    """The policies of a workspace, defaults included."""
    world = call.services.coordinator.peek(workspace_topic(call))
    routes = {kind: list(block_route(world, kind)) for kind in BLOCK_ROUTES}
    return Policy(world.workspace.workspace_id, world.workspace.rules, routes)


async def set_policy(call: Call, body: PolicyPatch) -> PolicyChange:
    """Set policies of a workspace, on the record."""
    routes = {str(kind): roles for kind, roles in body.block_routes.items()}
    if not routes:
        raise wrong("nothing_to_change", "", "name at least one policy to set")
    for kind, roles in routes.items():
        if len(set(roles)) != len(roles):
            raise wrong("role_repeated", f"/blockRoutes/{kind}", "a role is named twice")
    outcome = await call.submit(SetPolicy(routes), topic=workspace_topic(call))
    changed = [one.wire["payload"]["block_route"] for one in outcome.records]
    return PolicyChange(
        call.path["workspace_id"],
        {route["blocker_type"]: route["roles"] for route in changed},
        event_id(outcome.records[0].event.wire_id) if changed else None,
    )


async def raise_rules(call: Call, body: NewRules) -> RaisedRules:
    """Let later records fold under newer rules; older servers stop serving the workspace."""
    outcome = await call.submit(RaiseRules(body.rules), topic=workspace_topic(call))
    wire = outcome.records[0].wire
    return RaisedRules(call.path["workspace_id"], wire["payload"]["rules"], event_id(wire["wire_id"]))


_WORKSPACE_ID = "wk_01JTMX9A2B3C4D5E6F7G8H9JKR"
_EVENT_ID = "evt_01JTMX9A2B3C4D5E6F7G8H9JKM"
ROUTES = [
    Route(
        "GET",
        "/workspaces/{workspace_id}/policy",
        get_policy,
        (*READ, *OPERATOR),
        reply=Policy,
        summary="The policies of a workspace, defaults included.",
        reply_example={
            "workspaceId": _WORKSPACE_ID,
            "rules": 2,
            "blockRoutes": {"ambiguity": ["role_pm"], "auth": []},
        },
    ),
    Route(
        "PATCH",
        "/workspaces/{workspace_id}/policy",
        set_policy,
        (*ADMIN, *OPERATOR),
        body=PolicyPatch,
        reply=PolicyChange,
        summary="Set policies of a workspace: who is told of which blocks.",
        example={"blockRoutes": {"ambiguity": ["role_editor"]}},
        reply_example={
            "workspaceId": _WORKSPACE_ID,
            "blockRoutes": {"ambiguity": ["role_editor"]},
            "eventId": _EVENT_ID,
        },
    ),
    Route(
        "POST",
        "/workspaces/{workspace_id}/rules",
        raise_rules,
        (*ADMIN, *OPERATOR),
        body=NewRules,
        reply=RaisedRules,
        summary="Let later records fold under newer rules; for operators.",
        replies={409: "The workspace is under these rules, or newer ones, already."},
        example={"rules": 2},
        reply_example={"workspaceId": _WORKSPACE_ID, "rules": 2, "eventId": _EVENT_ID},
    ),
]
