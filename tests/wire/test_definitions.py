"""The schemas under `definitions/` are closed and bounded, and reference only each other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from redkey.wire import files
from redkey.wire.schema import compile_schema

NAMES = sorted(
    path.relative_to(files.root()).as_posix() for path in (files.root() / "definitions").rglob("*.schema.json")
)


def _parts(schema: Any) -> Iterator[dict[str, Any]]:
    """Return every subschema, merged with the definition that it references in its file or folder."""
    if isinstance(schema, dict):
        yield schema
        for item in schema.values():
            yield from _parts(item)
    elif isinstance(schema, list):
        for item in schema:
            yield from _parts(item)


def _merged(name: str, part: dict[str, Any]) -> dict[str, Any]:
    if "$ref" not in part:
        return part
    file, _, fragment = part["$ref"].partition("#")
    target = files.load(f"{name.rsplit('/', 1)[0]}/{file}" if file else name)
    for step in fragment.split("/")[1:]:
        target = target[step]
    return {**target, **part}


def test_the_files_of_the_seed_are_there() -> None:
    wanted = {"envelope", "brief", "inbox", "complete", "blocked", "claim", "output-contract"}
    assert {f"definitions/wire/{word}.schema.json" for word in wanted} < set(NAMES)
    assert "definitions/cards/agent-card.schema.json" in NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_schema_says_what_it_is(name: str) -> None:
    schema = files.load(name)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["$id"] == f"https://redkey.dev/{name}"
    assert schema["title"]
    compile_schema(name)


@pytest.mark.parametrize("name", NAMES)
def test_every_string_and_list_has_a_bound_and_every_object_is_closed(name: str) -> None:
    for part in _parts(files.load(name)):
        if "type" not in part or not isinstance(part["type"], str | list):
            continue
        merged = _merged(name, part)
        if "string" in merged["type"]:
            assert "maxLength" in merged, part
        if "array" in merged["type"]:
            assert "maxItems" in merged, part
            assert "items" in merged, part
        if "properties" in merged and "allOf" not in merged:
            assert merged["additionalProperties"] is False, part
            assert set(merged["required"]) <= set(merged["properties"])
        if "integer" in merged["type"] or "number" in merged["type"]:
            assert {"minimum", "maximum"} <= merged.keys(), part


@pytest.mark.parametrize("name", NAMES)
def test_references_stay_in_the_folder(name: str) -> None:
    for part in _parts(files.load(name)):
        ref = part.get("$ref", "")
        assert ":" not in ref
        assert "/" not in ref.partition("#")[0]
        _merged(name, part)


@pytest.mark.parametrize("name", [name for name in NAMES if "/wire/" in name])
def test_optional_fields_may_be_null_and_required_ones_may_not(name: str) -> None:
    for part in _parts(files.load(name)):
        for field, rule in part.get("properties", {}).items():
            if isinstance(rule, dict) and part.get("required"):
                types = _merged(name, rule).get("type", "")
                assert ("null" in types) == (field not in part["required"]), field
