"""The SDK says what the server says: its replies are the same structs, and the same things can be asked."""

from __future__ import annotations

import inspect
import typing
from typing import Any

import msgspec
import pytest

from redkey.api.surface import routes
from redkey.client import RedKey
from redkey.client.operation import Gathering, Listing, Operation, Procedure, Resource, Stream
from redkey.shapes import operation as shapes
from redkey.shapes.fields import camel

# Where one method cannot have the name that the API has, or gives what the API leaves to HTTP.
PARAMETERS = {
    "from_": "since",
    "at": "at_sequence",
    "queue_id": "queue",
}
# Said by a header, by the path, or by the method itself; `format` and `content` are methods of receipts. The server
# knows the id and the role of a message.
NOT_PARAMETERS = {"idempotency_key", "to_agent", "format", "content", "own_id", "said_as"}
METHODS = {
    "list_workspaces": "workspaces.list",
    "create_workspace": "workspaces.create",
    "get_policy": "workspaces.policy",
    "set_policy": "workspaces.set_policy",
    "raise_rules": "workspaces.raise_rules",
    "create_key": "keys.create",
    "list_keys": "keys.list",
    "revoke_key": "keys.revoke",
    "token": "oauth.token",
    "server_metadata": "oauth.metadata",
    "key_set": "oauth.key_set",
    "revoke_token": "oauth.revoke",
    "register_client": "oauth.register",
    "protected_resource": "oauth.resource",
    "protected_mcp": "oauth.mcp_resource",
    "invite_person": "people.invite",
    "list_people": "people.list",
    "create_person_code": "people.code",
    "end_person_session": "people.end_session",
    "remove_person": "people.remove",
    "sign_up": "signup.create",
    "register_card": "agents.register",
    "list_agents": "agents.list",
    "get_agent": "agents.get",
    "patch_agent": "agents.update",
    "heartbeat_agent": "agents.heartbeat",
    "deactivate_agent": "agents.deactivate",
    "list_claim_history": "agents.claim_history",
    "create_role": "roles.create",
    "list_roles": "roles.list",
    "get_role": "roles.get",
    "patch_role": "roles.update",
    "remove_role": "roles.remove",
    "grant_role": "roles.grant",
    "revoke_role": "roles.revoke",
    "create_queue": "queues.create",
    "list_queues": "queues.list",
    "get_queue": "queues.get",
    "patch_queue": "queues.update",
    "count_tasks": "queues.counts",
    "list_tasks": "tasks.list",
    "list_available": "tasks.available",
    "create_task": "tasks.create",
    "create_tasks": "tasks.create_many",
    "get_task": "tasks.get",
    "explain_task": "tasks.explain",
    "cancel_task": "tasks.cancel",
    "retry_task": "tasks.retry",
    "unblock_task": "tasks.unblock",
    "add_message": "tasks.add_message",
    "list_messages": "tasks.messages",
    "raise_concern": "tasks.raise_concern",
    "get_context_state": "tasks.context",
    "claim_task": "tasks.claim",
    "claim_next": "queues.claim_next",
    "complete_claims": "claims.complete_many",
    "start_claim": "claims.start",
    "release_claim": "claims.release",
    "heartbeat_claim": "claims.heartbeat",
    "block_claim": "claims.block",
    "add_artifact": "claims.add_artifact",
    "plan_claim": "claims.plan",
    "report_usage": "claims.report_usage",
    "report_progress": "claims.report_progress",
    "complete_claim": "claims.complete",
    "fail_claim": "claims.fail",
    "validate_definition": "definitions.validate",
    "simulate_plan": "definitions.simulate",
    "create_login_code": "logins.create",
    "exchange_login_code": "logins.exchange",
    "create_definition": "definitions.create",
    "list_definitions": "definitions.list",
    "get_definition": "definitions.get",
    "change_definition": "definitions.update",
    "create_version": "definitions.create_version",
    "publish_definition": "definitions.publish",
    "start_workflow": "workflows.start",
    "list_workflows": "workflows.list",
    "get_workflow": "workflows.get",
    "get_workflow_state": "workflows.state",
    "get_workflow_graph": "workflows.graph",
    "workflow_events": "workflows.events",
    "pause_workflow": "workflows.pause",
    "resume_workflow": "workflows.resume",
    "cancel_workflow": "workflows.cancel",
    "create_project": "projects.create",
    "list_projects": "projects.list",
    "get_project": "projects.get",
    "patch_project": "projects.update",
    "complete_project": "projects.complete",
    "project_events": "projects.events",
    "create_phase": "phases.create",
    "get_phase": "phases.get",
    "patch_phase": "phases.update",
    "complete_phase": "phases.complete",
    "phase_events": "phases.events",
    "list_gates": "gates.list",
    "get_gate": "gates.get",
    "approve_gate": "gates.approve",
    "reject_gate": "gates.reject",
    "approve_plan_task": "workflows.approve",
    "reject_plan_task": "workflows.reject",
    "send_message": "inbox.send",
    "list_inbox": "inbox.list",
    "list_agent_inbox": "agents.inbox",
    "read_message": "inbox.read",
    "query_ledger": "ledger.query",
    "get_event": "events.get",
    "task_events": "tasks.events",
    "claim_events": "claims.events",
    "agent_events": "agents.events",
    "get_receipt": "receipts.get",
    "show_receipt": "receipts.page",
    "latest_checkpoint": "checkpoints.latest",
    "stream": "events.follow",
    "put_content": "content.put",
    "get_content": "content.get",
    "erase_content": "content.erase",
    "get_usage": "usage.get",
    "get_credits": "billing.credits",
    "grant_credits": "billing.grant",
    "set_prices": "billing.set_prices",
    "healthz": "server.health",
    "readyz": "server.ready",
    "find_ids": "server.find_ids",
    "create_webhook": "webhooks.create",
    "list_webhooks": "webhooks.list",
    "get_webhook": "webhooks.get",
    "remove_webhook": "webhooks.remove",
    "resume_webhook": "webhooks.resume",
    "metrics": "server.metrics",
    "openapi": "server.openapi",
    "docs": "server.docs",
}
ROUTES = {route.operation.name: route.operation for route in routes()}


def resources() -> dict[str, type[Resource[Any]]]:
    """The resources of a client, by their names."""
    with RedKey("http://127.0.0.1:1", "rk_a_b") as rk:
        return {name: type(value) for name, value in vars(rk).items() if isinstance(value, Resource)}


def declared(name: str) -> Any:
    resource, _, method = METHODS[name].partition(".")
    return getattr(resources()[resource], method)


def hints(method: Any) -> dict[str, Any]:
    return typing.get_type_hints(method.build, include_extras=True)


def parameters(method: Any) -> set[str]:
    """What can be asked of a method."""
    return set(inspect.signature(method.build).parameters) - {"self"}


def reply_of(method: Any) -> Any:
    """What a method gives, out of its Request; out of its Steps, when it sends several."""
    *_, kind = typing.get_args(hints(method)["return"])
    return kind


def test_every_operation_has_its_method_and_every_method_its_operation() -> None:
    assert METHODS.keys() == ROUTES.keys()
    assert {name: one.method_name for name, one in ROUTES.items() if one.method_name}.items() <= METHODS.items()
    kinds = (Operation, Procedure, Gathering, Listing, Stream)
    methods = {
        f"{name}.{method}"
        for name, kind in resources().items()
        for method in dir(kind)
        if isinstance(getattr(kind, method), kinds)
    }
    # Other ways to ask for the same: streamed, in pieces, as text, when it has ended.
    others = {
        "agents.follow",
        "workflows.follow",
        "workflows.mermaid",
        "content.pieces",
        "tasks.as_ended",
        "tasks.wait",
    }
    assert methods == set(METHODS.values()) | others | {"receipts.summary", "receipts.tlog_proof"}


@pytest.mark.parametrize("name", [name for name, route in ROUTES.items() if route.reply is not None])
def test_replies_are_the_shapes_of_the_server(name: str) -> None:
    reply = reply_of(declared(name))
    if name == "show_receipt":
        # A page for people; the same receipt as JSON is receipts.get.
        assert reply is str
    elif name == "get_receipt":
        # Keeps the bytes that came beside what they say.
        assert issubclass(reply, ROUTES[name].reply)
    else:
        assert reply == ROUTES[name].reply


def asked(route: shapes.Operation) -> set[str]:
    """What the API can be asked, by names of the SDK."""
    fields = [
        field.name
        for kind in (route.body, route.query)
        if kind is not None
        for field in msgspec.structs.fields(kind)
        if field.name not in NOT_PARAMETERS
    ]
    # The end of a span of time is `to` in the API, as a recipient is.
    until = {"to": "until"} if "from_" in fields else {}
    return {(PARAMETERS | until).get(name, name) for name in fields}


@pytest.mark.parametrize("name", ROUTES)
def test_everything_that_can_be_asked_is_a_parameter(name: str) -> None:
    route, offered = ROUTES[name], parameters(declared(name))
    if name in ("token", "complete_claims", "create_tasks", "send_message", "plan_claim"):
        # These name their arguments by what they are: credentials, batches, a recipient.
        assert offered
        return
    wanted = asked(route) - ({"queue"} if name == "create_task" else set())
    in_path = {"{queue_id}": "queue", "{role_id}": "role"}
    for part in route.path.split("/"):
        if part.startswith("{"):
            wanted.add(in_path.get(part, part[1:-1]))
    assert wanted <= offered


def test_names_of_the_api_are_camel_case() -> None:
    assert camel("required_roles") == "requiredRoles"
    assert camel("from_") == "from"
    assert camel("sha256") == "sha256"
