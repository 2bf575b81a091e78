"""The OpenAPI document: complete, equal to the routes, with valid examples; and every operation called at random."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any

import httpx2
import jsonschema_rs
import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from redkey.api.surface import routes
from redkey.shapes.fields import camel
from tests.api.conftest import Workspace
from tests.harness.acts import begin_queue, claim, create_task, register
from tests.harness.client import Client, contract
from tests.harness.server import Server

EXAMPLES = 100 if os.environ.get("REDKEY_TEST_LONG") == "1" else 6
# Seed 004, sections 1 to 4, "Missed Claim Awareness" and "Ledger And Receipt API"; what workflows add is their own.
SEED = """
POST /oauth/token
GET /workspaces
POST /workspaces
GET /usage
GET /billing/credits
POST /agents/register-card
GET /agents
GET /agents/{agentId}
POST /agents/{agentId}/heartbeat
POST /agents/{agentId}/deactivate
POST /roles
GET /roles
GET /roles/{roleId}
POST /roles/{roleId}/agents/{agentId}
DELETE /roles/{roleId}/agents/{agentId}
POST /queues
GET /queues
POST /queues/{queueId}/tasks
GET /queues/{queueId}/tasks/available
POST /tasks/{taskId}/claim
POST /claims/{claimId}/heartbeat
POST /claims/{claimId}/complete
POST /claims/{claimId}/fail
GET /agents/{agentId}/events
GET /agents/{agentId}/claim-history
GET /events/{eventId}
GET /events/{eventId}/receipt
GET /tasks/{taskId}/events
GET /claims/{claimId}/events
GET /ledger/query
"""


def document(server: Server) -> dict[str, Any]:
    return contract(server.url).document


def operations(found: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in found["paths"].items():
        for method, operation in methods.items():
            yield method.upper(), path, operation


def references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for item in value.values():
            yield from references(item)
    elif isinstance(value, list):
        for item in value:
            yield from references(item)


def test_every_endpoint_of_the_seed_is_there(server: Server) -> None:
    found = {f"{method} {path}" for method, path, _ in operations(document(server))}
    assert [line for line in SEED.split("\n") if line and line not in found] == []


def test_it_says_what_it_is(server: Server) -> None:
    found = document(server)
    assert found["openapi"].startswith("3.1.")
    assert found["servers"] == [{"url": server.url}]
    assert found["components"]["securitySchemes"].keys() == {"apiKey", "oauth2"}


def test_every_reference_leads_somewhere_and_every_schema_compiles(server: Server) -> None:
    found = document(server)
    schemas = found["components"]["schemas"]
    for reference in references(found):
        _, _, kind, name = reference.split("/")
        assert name in found["components"][kind]
    for name, schema in schemas.items():
        jsonschema_rs.Draft202012Validator({**schema, "components": {"schemas": schemas}})
        assert re.fullmatch(r"[A-Z][A-Za-z0-9]+", name)
        assert schema["title"] == name


def test_operations_have_names_of_their_own_and_a_sentence(server: Server) -> None:
    found = list(operations(document(server)))
    names = [operation["operationId"] for _, _, operation in found]
    assert len(set(names)) == len(names)
    assert [f"{method} {path}" for method, path, operation in found if not operation["summary"].endswith(".")] == []


def test_path_parameters_are_those_of_the_path(server: Server) -> None:
    for _, path, operation in operations(document(server)):
        declared = [one["name"] for one in operation["parameters"] if one["in"] == "path"]
        assert declared == re.findall(r"\{(\w+)\}", path)


def test_examples_are_valid_and_whatever_has_a_body_has_one(server: Server) -> None:
    found, held = document(server), contract(server.url)
    for method, path, operation in operations(found):
        contents = [("body", media, content) for media, content in _bodies(operation)]
        for media, content in operation["responses"][_success(operation)]["content"].items():
            contents.append(("reply", media, content))
        for what, media, content in contents:
            if "json" in media and content["schema"].get("$ref") and "example" in content:
                held.validate(content["schema"], content["example"])
            if what == "body" and media == "application/json" and _own_fields(found, content["schema"]):
                assert "example" in content, f"{method} {path} has no example of its body"


def _own_fields(found: dict[str, Any], schema: dict[str, Any]) -> set[str]:
    """The fields of a body beside `extensions`, which every recorded request may carry."""
    return set(found["components"]["schemas"][schema["$ref"].rpartition("/")[2]]["properties"]) - {"extensions"}


def _bodies(operation: dict[str, Any]) -> list[tuple[str, Any]]:
    return list(operation.get("requestBody", {}).get("content", {}).items())


def _success(operation: dict[str, Any]) -> str:
    return next(status for status in operation["responses"] if status.startswith("2"))


def test_the_page_loads_nothing_and_links_every_problem(server: Server) -> None:
    page = httpx2.get(f"{server.url}/docs", timeout=60)
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert not re.search(r"(?:src|href)=\"(?:https?:)?//", page.text)
    assert "<script" not in page.text
    for method, path, _ in operations(document(server)):
        assert f"{method}</span> <code>{path}" in page.text
    refused = httpx2.get(f"{server.url}/queues", timeout=60).json()
    assert f'id="{refused["type"].removeprefix("/docs#")}"' in page.text


# Every operation, tried at random.


@pytest.fixture(scope="module")
def known(server: Server) -> Iterator[tuple[Workspace, dict[str, str]]]:
    """A workspace with an entity of every kind, and their ids."""
    with server.client() as operator:
        made = Workspace(server, operator.post("/workspaces", {}).json)
    yield made, _known_ids(made)
    made.close()


@pytest.fixture(scope="module")
def api_schema(server: Server, known: tuple[Workspace, dict[str, str]]) -> Any:
    """Return the document with real ids among the generated ones, so that all kinds of replies occur."""
    ids = known[1]
    schema = schemathesis.openapi.from_url(f"{server.url}/openapi.json")
    schema = schema.exclude(path="/stream")

    @schema.hook
    def map_path_parameters(context: Any, path_parameters: dict[str, Any] | None) -> dict[str, Any] | None:
        for name, value in (path_parameters or {}).items():
            if name in ids and path_parameters is not None and len(str(value)) % 2:
                path_parameters[name] = ids[name]
        return path_parameters

    @schema.hook
    def map_query(context: Any, query: dict[str, Any] | None) -> dict[str, Any] | None:
        return {name: value for name, value in query.items() if name != "wait"} if query else query

    @schema.hook
    def map_body(context: Any, body: Any) -> Any:
        # Nobody waits a minute for each of these.
        if isinstance(body, dict) and "wait" in body:
            return {**body, "wait": 0}
        return body

    return schema


@pytest.fixture(scope="module")
def session(known: tuple[Workspace, dict[str, str]]) -> Iterator[requests.Session]:
    """Calls with the admin key of the workspace of the ids."""
    with requests.Session() as opened:
        opened.headers["Authorization"] = f"Bearer {known[0].admin.key}"
        yield opened


def _known_ids(workspace: Workspace) -> dict[str, str]:
    admin: Client = workspace.admin
    begin_queue(admin)
    assert admin.post("/roles", {"name": "reviewer"}).status == 201
    agent_id = register(admin)["agentId"]
    held = claim(admin, create_task(admin), agent_id)
    sent = admin.post("/inbox", {"to": "human", "subject": "s", "body": "b"}).json
    return {
        "workspaceId": workspace.workspace_id,
        "queueId": "queue_q",
        "roleId": "role_reviewer",
        "agentId": agent_id,
        "taskId": held["taskId"],
        "claimId": held["claimId"],
        "eventId": held["eventId"],
        "messageId": sent["messageId"],
        "keyId": workspace.key("read")["keyId"],
        "sha256": admin.put("/content", b"x").json["sha256"],
        "contextId": "queue:queue_q",
    }


OPERATIONS = [
    pytest.param(one.method, re.sub(r"\{(\w+)\}", lambda found: f"{{{camel(found[1])}}}", one.path))
    for one in (route.operation for route in routes())
    if one.path != "/stream"
]


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_no_operation_breaks_or_answers_what_is_not_documented(
    api_schema: Any, session: requests.Session, method: str, path: str
) -> None:
    operation = api_schema[path][method.lower()]

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
        derandomize=True,
        database=None,
    )
    @given(case=operation.as_strategy())
    def holds(case: Any) -> None:
        case.validate_response(
            case.call(session=session),
            checks=[
                not_a_server_error,
                status_code_conformance,
                content_type_conformance,
                response_schema_conformance,
            ],
        )

    holds()
