"""Schemathesis calls every operation of the OpenAPI document with valid and invalid input.

No answer is a 5xx, none is undocumented, and each fits its schema. The number of examples is bounded so that the
suite stays quick; REDKEY_TEST_LONG asks for many more.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from redkey.api.openapi import document
from redkey.api.surface import routes
from redkey.wire.decode import decode
from tests.harness.acts import begin_queue, claim, create_task, register
from tests.harness.server import Server, serving

EXAMPLES = 200 if os.environ.get("REDKEY_TEST_LONG") else 8
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
# A stream does not end by itself.
ENDLESS = {"/stream"}
OPENAPI: dict[str, Any] = decode(document(tuple(route.operation for route in routes())))
SCHEMA = schemathesis.openapi.from_dict(
    {**OPENAPI, "paths": {path: item for path, item in OPENAPI["paths"].items() if path not in ENDLESS}}
)


class Known:
    """Return ids of existing entities, so that some requests pass the first check."""

    def __init__(self, server: Server) -> None:
        with server.client() as client:
            begin_queue(client)
            client.post("/roles", {"name": "Writer"})
            agent = register(client)
            task_id = create_task(client)
            held = claim(client, task_id, agent["agentId"])
            mail = client.post("/inbox", {"to": "human", "subject": "x"}).json
            self.ids = {
                "agentId": agent["agentId"],
                "roleId": "role_writer",
                "queueId": "queue_q",
                "taskId": task_id,
                "claimId": held["claimId"],
                "messageId": mail["messageId"],
                "eventId": held["eventId"],
                "contextId": "queue:queue_q",
                "workspaceId": server.workspace_id,
            }


@pytest.fixture(scope="module")
def house() -> Iterator[tuple[Server, Known]]:
    """One server for all operations, with some entities."""
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as directory, serving(Path(directory)) as server:
        yield server, Known(server)


@SCHEMA.parametrize()
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
    database=None,
)
def test_every_operation_answers_as_documented(case: schemathesis.Case, house: tuple[Server, Known]) -> None:
    server, known = house
    # Half of the cases speak of things that exist.
    if sum(map(len, map(str, case.path_parameters.values()))) % 2:
        case.path_parameters.update({name: known.ids[name] for name in case.path_parameters if name in known.ids})
    # Nobody waits a minute for work in this test.
    if isinstance(case.query, dict):
        case.query.pop("wait", None)
    if isinstance(case.body, dict):
        case.body.pop("wait", None)
    case.call_and_validate(
        base_url=server.url, headers={"authorization": f"Bearer {server.key}"}, checks=CHECKS, timeout=30
    )


def test_the_stream_is_the_only_operation_left_out() -> None:
    assert set(OPENAPI["paths"]) - {operation.ok().path for operation in SCHEMA.get_all_operations()} == ENDLESS
