"""The OpenAPI document has everything that client generators need for good types."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from typing import Annotated, Any

import msgspec
import pytest

from redkey.api.openapi import document
from redkey.api.schemas import Schemas
from redkey.api.surface import routes
from redkey.app import operations_of
from redkey.shapes.fields import Page, Reply, one_of

Schema = dict[str, Any]


@cache
def described() -> Schema:
    found: Schema = json.loads(document(operations_of(routes())))
    return found


def operations() -> Iterator[tuple[str, Schema]]:
    for path, methods in described()["paths"].items():
        for method, operation in methods.items():
            yield f"{method} {path}", operation


def schemas(value: Any = None) -> Iterator[Schema]:
    """Yield every schema of the document at any depth; examples contain none."""
    value = described() if value is None else value
    if isinstance(value, dict):
        yield value
        for name, one in value.items():
            if name not in ("example", "default", "mapping"):
                yield from schemas(one)
    elif isinstance(value, list):
        for one in value:
            yield from schemas(one)


def component(reference: str) -> Schema:
    found: Any = described()
    for part in reference.removeprefix("#/").split("/"):
        found = found[part]
    return found  # type: ignore[no-any-return]


def reached(value: Any) -> set[str]:
    """Return the names of the schemas that a part of the document references."""
    found: set[str] = set()
    waiting = [value]
    while waiting:
        for one in schemas(waiting.pop()):
            reference = one.get("$ref", "")
            if reference and reference not in found:
                found.add(reference)
                waiting.append(component(reference))
    return found


def test_replies_list_what_always_comes_and_have_no_defaults() -> None:
    taken = reached([one.get("requestBody", {}) for _, one in operations()])
    sent = reached([one["responses"] for _, one in operations()]) - taken
    assert len(sent) > 100
    for reference in sent:
        for name, part in component(reference).get("properties", {}).items():
            assert "default" not in part, f"{reference} {name}"
    shapes = described()["components"]["schemas"]
    assert shapes["TaskSummaryPage"]["required"] == ["items", "next"]
    assert "errors" in shapes["Problem"]["required"]
    # Left out when it has no value, so a reader must not count on it.
    assert "task" not in shapes["Claimed"]["required"]


def test_requests_need_only_what_has_no_default() -> None:
    asked = described()["components"]["schemas"]["ClaimNextRequest"]
    assert asked["required"] == ["agentId"]
    assert asked["properties"]["wait"]["default"] == 0


def test_unions_name_their_discriminator() -> None:
    unions = [one for one in schemas() if "oneOf" in one]
    assert unions
    for union in unions:
        tag, mapping = union["discriminator"]["propertyName"], union["discriminator"]["mapping"]
        assert list(mapping.values()) == [member["$ref"] for member in union["oneOf"]]
        for value, reference in mapping.items():
            assert component(reference)["properties"][tag] == {"type": "string", "const": value}
            assert tag in component(reference)["required"]
    mixed = [one["anyOf"] for one in schemas() if sum("$ref" in member for member in one.get("anyOf", ())) > 1]
    assert mixed == []
    [claimed] = [one for name, one in operations() if name == "post /tasks/{taskId}/claim"]
    schema = claimed["responses"]["200"]["content"]["application/json"]["schema"]
    assert schema["discriminator"]["mapping"].keys() == {"claimed", "missed", "rejected"}


def test_enums_have_a_type_and_more_than_one_value() -> None:
    enums = [one for one in schemas() if isinstance(one.get("enum"), list)]
    assert len(enums) > 30
    assert [one for one in enums if "type" not in one or len(one["enum"]) < 2] == []


def test_refusals_are_shared_and_may_say_more_of_themselves() -> None:
    shared = described()["components"]["responses"]
    for name, operation in operations():
        for status, answer in operation["responses"].items():
            if not status.startswith("2"):
                assert answer["$ref"].removeprefix("#/components/responses/") in shared, f"{name} {status}"
    [created] = [one for name, one in operations() if name == "post /roles"]
    assert created["responses"]["409"] == {
        "$ref": "#/components/responses/Conflict",
        "description": "The role already exists.",
    }
    assert shared["Conflict"]["content"].keys() == {"application/problem+json"}
    assert shared["BusConflict"]["content"].keys() == {"application/json"}


def test_free_objects_are_open() -> None:
    closed = [one for one in schemas() if one.get("type") == "object" and "properties" not in one]
    assert closed
    assert [one for one in closed if "additionalProperties" not in one] == []
    brief = described()["components"]["schemas"]["NewTask"]["properties"]["brief"]
    assert {"type": "object", "additionalProperties": True} in brief["anyOf"]


def test_every_success_has_a_schema() -> None:
    for name, operation in operations():
        for status, answer in operation["responses"].items():
            if status.startswith("2"):
                assert all(one["schema"] for one in answer["content"].values()), f"{name} {status}"


def test_streams_document_the_schema_of_one_event() -> None:
    events = {
        name: content["x-event"]["$ref"].rpartition("/")[2]
        for name, operation in operations()
        for media, content in operation["responses"].get("200", {}).get("content", {}).items()
        if media == "text/event-stream"
    }
    assert events == {
        "get /stream": "Event",
        "get /agents/{agentId}/events": "Event",
        "get /workflows/{workflowId}/events": "Event",
        "get /api/sessions/stream": "BusSessionEvent",
        "get /api/sessions/{sessionId}/events/stream": "BusEvent",
    }


def test_pages_are_called_after_their_items() -> None:
    pages = [name for name in described()["components"]["schemas"] if "Page" in name]
    assert "EventPage" in pages
    assert [name for name in pages if not name.endswith("Page")] == []


def test_two_shapes_with_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="same name"):
        Schemas([msgspec.defstruct("Same", [], module="one")], [msgspec.defstruct("Same", [], module="other")])


class Small(Reply, frozen=True, kw_only=True):
    """A shape with a field of each kind."""

    state: Annotated[str, one_of("on")]
    note: str = ""


class Whole(msgspec.Struct, frozen=True):
    """A shape whose encoding contains every field that is set."""

    small: Page[Small]
    note: str = ""
    seen: int | msgspec.UnsetType = msgspec.UNSET


def test_a_reply_is_required_to_have_what_its_shape_always_sends() -> None:
    made = Schemas([], [Whole])
    assert made.of(Whole) == {"$ref": "#/components/schemas/Whole"}
    assert made.components["Whole"]["required"] == ["small", "note"]
    assert made.components["Whole"]["properties"]["small"] == {"$ref": "#/components/schemas/SmallPage"}
    assert made.components["Small"]["required"] == ["state"]
    assert made.components["Small"]["properties"]["state"] == {"type": "string", "const": "on"}
    # The same shape in a request: what has a default may be left out.
    assert Schemas([Whole], [Whole]).components["Whole"]["required"] == ["small"]
