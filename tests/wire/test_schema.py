"""Every schema file has its id, is closed and bounded, references only its neighbours; findings are sentences."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jsonschema_rs
import pytest

from redkey.errors import ContractBroken
from redkey.wire import files, schema
from redkey.wire.catalogue import SCHEMAS, catalogue
from redkey.wire.schema import FINDINGS_LIMIT, checker_of, compile_schema

NAMES = sorted(
    path.relative_to(files.root()).as_posix()
    for folder in ("schemas", "definitions")
    for path in (files.root() / folder).rglob("*.schema.json")
)
EVENT_SCHEMAS = {event.schema: name for name, event in catalogue().items()}

# Objects that are open on purpose: a type's own schema closes its payload, what an action needs is its own, and a
# contract's schema is a JSON Schema. Extensions are any JSON: the size of the wire bounds them.
OPEN = {
    (f"{SCHEMAS}/envelope.schema.json", "/properties/payload"),
    ("definitions/wire/envelope.schema.json", "/properties/payload"),
    ("definitions/contracts/contract.schema.json", "/properties/schema"),
    ("definitions/step/input.schema.json", "/$defs/task/properties/params"),
    ("schemas/plan/v1.0/plan.schema.json", "/$defs/task/properties/input"),
}

# Names and values of extensions.
EXTENSIONS = {
    (f"{SCHEMAS}/envelope.schema.json", "/properties/extensions"),
    (f"{SCHEMAS}/envelope.schema.json", "/properties/extensions/propertyNames"),
    (f"{SCHEMAS}/types.schema.json", "/$defs/extension_value"),
}

# Keywords whose value is a schema, a list of schemas, or schemas by name.
_ONE = ("items", "propertyNames", "additionalProperties", "if", "then", "else", "not", "contains")
_LIST = ("allOf", "anyOf", "oneOf", "prefixItems")
_NAMED = ("properties", "$defs", "patternProperties", "dependentSchemas")

Part = tuple[str, Any]


def _parts(part: Any, place: str = "") -> Iterator[Part]:
    """Yield every subschema with its place in the file."""
    yield place, part
    if not isinstance(part, dict):
        return
    for keyword in _ONE:
        if keyword in part:
            yield from _parts(part[keyword], f"{place}/{keyword}")
    for keyword in _LIST:
        for index, item in enumerate(part.get(keyword, ())):
            yield from _parts(item, f"{place}/{keyword}/{index}")
    for keyword in _NAMED:
        for name, item in part.get(keyword, {}).items():
            yield from _parts(item, f"{place}/{keyword}/{name}")


def _resolve(file: str, ref: str) -> tuple[str, Any]:
    name, _, fragment = ref.partition("#")
    target = f"{file.rsplit('/', 1)[0]}/{name}" if name else file
    found = files.load(target)
    for step in fragment.split("/")[1:]:
        found = found[step]
    return target, found


def _types(part: dict[str, Any]) -> set[str]:
    types = part.get("type", ())
    return {types} if isinstance(types, str) else set(types)


def _narrows(name: str, place: str) -> dict[str, Any] | None:
    """Return the closed object that an open schema narrows; None if the schema must be closed itself."""
    if name in EVENT_SCHEMAS and place in ("", "/properties/stream"):
        return files.load(f"{SCHEMAS}/{'stream' if place else 'envelope'}.schema.json")
    whole = files.load(name)
    for keyword in ("/if", "/then", "/else"):
        outer, found, _ = place.rpartition(keyword)
        if found:
            return dict(_parts(whole))[outer.rsplit("/allOf", 1)[0]]
    if "allOf" in dict(_parts(whole))[place]:
        target = dict(_parts(whole))[place]["allOf"][0].get("$ref")
        return _resolve(name, target)[1] if target else None
    return None


def test_there_are_schemas_to_walk() -> None:
    assert len(NAMES) > len(catalogue()) + 7


@pytest.mark.parametrize("name", NAMES)
def test_a_schema_names_itself_and_is_valid_by_the_metaschema(name: str) -> None:
    content = files.load(name)
    assert content["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert content["$id"] == f"https://redkey.dev/{name}"
    assert content["title"]
    jsonschema_rs.meta.validate(content)
    compile_schema(name)


@pytest.mark.parametrize("name", NAMES)
def test_references_stay_among_the_neighbours(name: str) -> None:
    for place, part in _parts(files.load(name)):
        if isinstance(part, dict) and "$ref" in part:
            assert "/" not in part["$ref"].partition("#")[0], place
            _resolve(name, part["$ref"])


@pytest.mark.parametrize("name", NAMES)
def test_only_known_keywords_are_used(name: str) -> None:
    known = {*_ONE, *_LIST, *_NAMED, "$schema", "$id", "$ref", "$comment", "title", "description", "type", "const"}
    known |= {"enum", "pattern", "required", "uniqueItems", "dependentRequired"}
    known |= {f"{end}{what}" for end in ("min", "max") for what in ("Length", "Items", "Properties", "imum")}
    for place, part in _parts(files.load(name)):
        assert isinstance(part, bool) or part.keys() <= known, place


@pytest.mark.parametrize("name", NAMES)
def test_every_string_list_and_number_has_a_bound(name: str) -> None:
    for place, part in _parts(files.load(name)):
        if isinstance(part, bool) or "const" in part or "enum" in part or (name, place) in EXTENSIONS:
            continue
        if "$ref" in part and "type" in part:
            part = {**_resolve(name, part["$ref"])[1], **part}
        types = _types(part)
        if "string" in types or "pattern" in part:
            assert "maxLength" in part, place
        if "array" in types:
            assert {"maxItems", "items"} <= part.keys(), place
        if types & {"integer", "number"}:
            assert {"minimum", "maximum"} <= part.keys(), place


@pytest.mark.parametrize("name", NAMES)
def test_every_object_is_closed_or_narrows_one_that_is(name: str) -> None:
    for place, part in _parts(files.load(name)):
        if isinstance(part, bool) or part.get("additionalProperties") is False or (name, place) in EXTENSIONS:
            continue
        if isinstance(part.get("additionalProperties"), dict):
            # Names are free here, so they are bounded in number and length.
            assert "maxProperties" in part, place
            assert "maxLength" in part["propertyNames"], place
        elif "properties" in part:
            narrowed = _narrows(name, place)
            assert narrowed is not None, place
            assert part["properties"].keys() <= narrowed["properties"].keys(), place
        elif "object" in _types(part):
            assert (name, place) in OPEN, place


@pytest.mark.parametrize("name", EVENT_SCHEMAS)
def test_every_event_schema_closes_its_payload(name: str) -> None:
    payload = files.load(name)["properties"]["payload"]
    assert payload["additionalProperties"] is False
    assert set(payload.get("required", ())) <= payload["properties"].keys()


@pytest.mark.parametrize("name", EVENT_SCHEMAS)
def test_the_envelope_accepts_whatever_an_event_schema_accepts(name: str) -> None:
    def whole(relative: str) -> jsonschema_rs.CanonicalSchema:
        return jsonschema_rs.canonicalize(files.load(relative), registry=schema._registry(), offline=True)

    # Proved on the schemas themselves, for every wire there can be, not by trying some.
    assert str(whole(f"{SCHEMAS}/envelope.schema.json").covers(whole(name))) == "yes"
    assert files.load(name)["properties"]["type"] == {"const": EVENT_SCHEMAS[name]}


@pytest.mark.parametrize("ref", ["https://example.org/wire.schema.json", "file:///etc/passwd", "other.schema.json"])
def test_a_remote_reference_is_an_error_and_never_a_request(ref: str, monkeypatch: pytest.MonkeyPatch) -> None:
    schema._registry()
    monkeypatch.setattr(files, "load", lambda relative: {"$id": "https://redkey.dev/a.schema.json", "$ref": ref})
    with pytest.raises(ContractBroken, match=r"a\.schema\.json"):
        compile_schema.__wrapped__("a.schema.json")


def test_a_schema_that_is_missing_is_a_broken_installation() -> None:
    with pytest.raises(ContractBroken):
        compile_schema(f"{SCHEMAS}/task-begun.schema.json")


PART = "schemas/agent-wire/v1.1/part.schema.json"

SENTENCES = [
    ({}, "/kind", "schema_required", "the field 'kind' is missing"),
    (
        {"kind": "text", "text": "a", "extra": 1},
        "/extra",
        "schema_additionalProperties",
        '"extra" is not a field of this',
    ),
    ({"kind": "text", "text": "a", "data": 1}, "/data", "schema_not_allowed", "this field is not allowed here"),
    ({"kind": "image"}, "/kind", "schema_enum", '"image" is not one of "text", "artifact_ref", "data", "file_ref"'),
    ({"kind": "text", "text": 7}, "/text", "schema_type", '7 is not of type "string"'),
    (
        {"kind": "artifact_ref", "artifact_id": "seven"},
        "/artifact_id",
        "schema_pattern",
        '"seven" does not fit: an artifact: art_ and a ULID; older messages have shorter ids.',
    ),
    (["text"], "", "schema_type", 'the list is not of type "object"'),
]


@pytest.mark.parametrize(("value", "pointer", "code", "sentence"), SENTENCES, ids=[row[2] for row in SENTENCES])
def test_findings_are_sentences(value: Any, pointer: str, code: str, sentence: str) -> None:
    found = compile_schema(PART).findings(value)
    assert [(item.pointer, item.code) for item in found] == [(pointer, code)]
    assert found[0].message.startswith(sentence)


OPTIONAL = {
    "type": "object",
    "properties": {
        "priority": {"anyOf": [{"enum": ["high", "low"]}, {"type": "null"}]},
        "lease": {"anyOf": [{"type": "null"}, {"type": "integer", "minimum": 5}]},
        "gate": {"anyOf": [{"type": "boolean"}, {"type": "object", "required": ["by"]}, {"type": "null"}]},
        "name": {"anyOf": [{"type": "string", "minLength": 3}, {"type": "integer", "minimum": 9}]},
    },
}


@pytest.mark.parametrize(
    ("value", "pointer", "code", "sentence"),
    [
        ({"priority": "nope"}, "/priority", "schema_enum", '"nope" is not one of "high", "low"'),
        ({"lease": "a"}, "/lease", "schema_type", '"a" is not of type "integer"'),
        ({"lease": 1}, "/lease", "schema_minimum", "1 is less than the minimum of 5"),
        ({"gate": 7}, "/gate", "schema_anyOf", '7 is not of type "boolean" or "object"'),
        ({"gate": {}}, "/gate/by", "schema_required", "the field 'by' is missing"),
        ({"name": "x"}, "/name", "schema_anyOf", '"x" is not of an accepted form'),
    ],
)
def test_a_wrong_nullable_value_is_reported_by_its_own_type(value: Any, pointer: str, code: str, sentence: str) -> None:
    (finding,) = checker_of(OPTIONAL).findings(value)
    assert (finding.pointer, finding.code, finding.message) == (pointer, code, sentence)


def test_a_hostile_value_is_neither_repeated_at_length_nor_raw() -> None:
    (found,) = compile_schema(PART).findings({"kind": "\x1b[31m\x9b" + "x" * 100_000})
    assert len(found.message) < 300
    assert found.message.isprintable()


def test_the_number_of_findings_is_limited() -> None:
    checker = compile_schema(PART)
    assert (
        len(checker.findings({"kind": "text", "text": "a"} | {f"extra{n}": n for n in range(10_000)})) == FINDINGS_LIMIT
    )
    data = {"kind": "data", "data": [{"a": "x" * 70_000}] * 500}
    assert len(checker.findings(data)) == FINDINGS_LIMIT


@pytest.mark.parametrize("name", EVENT_SCHEMAS)
def test_an_event_schema_builds_on_the_envelope_and_on_nothing_else(name: str) -> None:
    # So that checking the envelope and what the type adds is checking the whole.
    assert files.load(name)["allOf"] == [{"$ref": "envelope.schema.json"}]
    assert "$ref" not in files.load(name)
