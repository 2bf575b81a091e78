"""The generator of the TypeScript SDK reads the document as data, however it is spelled."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from redkey.api.openapi import document
from redkey.api.surface import routes
from redkey.app import operations_of
from tools.typescript import FOLDER, files_for
from tools.typescript.operations import find_operations
from tools.typescript.schemas import Types


@pytest.fixture
def described() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(document(operations_of(routes())))
    return found


def file(described: dict[str, Any], name: str) -> str:
    return files_for(described)[f"{FOLDER}/{name}"].decode()


def test_every_operation_has_one_name_and_one_line(described: dict[str, Any]) -> None:
    operations = find_operations(described)
    names = [(one.family, one.name) for one in operations]
    assert len(set(names)) == len(names)
    documented = {(method.upper(), path) for path, methods in described["paths"].items() for method in methods}
    assert {(one.method, one.path) for one in operations} == documented


def test_references_to_parameters_responses_and_bodies_give_the_same_files(described: dict[str, Any]) -> None:
    before = files_for(described)
    changed = copy.deepcopy(described)
    parts: dict[str, dict[str, Any]] = {"parameters": {}, "responses": {}, "requestBodies": {}}

    def moved(kind: str, part: dict[str, Any]) -> dict[str, str]:
        name = f"part{len(parts[kind])}"
        parts[kind][name] = part
        return {"$ref": f"#/components/{kind}/{name}"}

    for methods in changed["paths"].values():
        for operation in methods.values():
            operation["parameters"] = [moved("parameters", one) for one in operation["parameters"]]
            operation["responses"] = {key: moved("responses", one) for key, one in operation["responses"].items()}
            if "requestBody" in operation:
                operation["requestBody"] = moved("requestBodies", operation["requestBody"])
    changed["components"] |= parts
    assert files_for(changed) == before


def test_renamed_pages_and_discriminated_unions_give_the_same_signatures(described: dict[str, Any]) -> None:
    text = json.dumps(described)
    text = text.replace("Listed_TaskSummary_", "TaskSummaryPage").replace('{"anyOf": [{"$ref"', '{"oneOf": [{"$ref"')
    assert file(json.loads(text), "api.ts") == file(described, "api.ts")


def test_the_document_may_say_what_a_stream_sends(described: dict[str, Any]) -> None:
    content = described["paths"]["/stream"]["get"]["responses"]["200"]["content"]["text/event-stream"]
    content["x-event"] = {"$ref": "#/components/schemas/Party"}
    assert "AsyncGenerator<T.Party, void, undefined>" in file(described, "api.ts")


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({}, "unknown"),
        ({"type": "object"}, "Record<string, unknown>"),
        ({"type": "object", "additionalProperties": True}, "Record<string, unknown>"),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, "Record<string, number>"),
        ({"type": "string", "enum": ["a", "b"]}, '"a" | "b"'),
        ({"const": "claimed"}, '"claimed"'),
        ({"type": ["string", "null"]}, "string | null"),
        ({"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "null"}]}}, "Array<string | null>"),
        ({"type": "object", "properties": {"a-b": {"type": "boolean"}}, "required": ["a-b"]}, '{ "a-b": boolean }'),
        ({"allOf": [{"type": "string"}, {"const": "x"}]}, 'string & "x"'),
    ],
)
def test_schemas_as_types(schema: dict[str, Any], expected: str) -> None:
    assert Types({"components": {"schemas": {}}}).of(schema) == expected


def test_a_keyword_that_is_not_understood_is_an_error() -> None:
    with pytest.raises(NotImplementedError, match="patternProperties"):
        Types({"components": {"schemas": {}}}).of({"type": "object", "patternProperties": {}})
