"""JSON Schemas of the API's requests and replies, in the form that client generators read best.

msgspec generates them from the shapes. This module adds what it leaves out: `required` lists all fields that a reply
always has, a union names the field that distinguishes its members, an enum has its type, a free object is open, and a
page is named after its items.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, get_args, get_origin

import msgspec

REF = "#/components/schemas/{name}"
Schema = dict[str, Any]
_JSON_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}
# `Page[Task]` as msgspec names it.
_GENERIC = re.compile(r"([A-Za-z0-9]+)_([A-Za-z0-9]+)_")


class Schemas:
    """Schemas by type, and the components that they refer to."""

    def __init__(self, requests: Iterable[Any], replies: Iterable[Any]) -> None:
        requested, replied = list(dict.fromkeys(requests)), list(dict.fromkeys(replies))
        kinds = [*requested, *replied]
        schemas, components = msgspec.json.schema_components(kinds, ref_template=REF)
        self.components: dict[str, Schema] = {}
        for name, schema in components.items():
            if not re.fullmatch(r"\w+", name):
                raise ValueError(f"two shapes of the API have the same name: {name}")
            public = _renamed(name)
            self.components[public] = tidy(schema) | {"title": public}
        for schema in _all_schemas(self.components):
            self._discriminate(schema)
        input_names = {_name(kind) for kind in _structs(requested)}
        for kind in _structs(replied):
            if _name(kind) not in input_names:
                _require(self.components[_name(kind)], kind)
        self._schemas = {kind: self._discriminate(tidy(schema)) for kind, schema in zip(kinds, schemas, strict=True)}

    def of(self, kind: Any) -> Schema:
        """The schema of one of the types; for a struct, a reference."""
        return self._schemas[kind]

    def _discriminate(self, schema: Schema) -> Schema:
        """Add the field that distinguishes the members of a union."""
        members = schema.get("anyOf", ())
        names = [member["$ref"].rpartition("/")[2] for member in members if "$ref" in member]
        if len(names) < 2:
            return schema
        del schema["anyOf"]
        schema.pop("discriminator", None)
        discriminator = _tag(names, self.components)
        union: Schema = {"oneOf": [{"$ref": REF.format(name=name)} for name in names]} | discriminator
        others = [member for member in members if "$ref" not in member]
        schema.update({"anyOf": [union, *others]} if others else union)
        return schema


def tidy(schema: Schema) -> Schema:
    """The same schema with typed enums, constants, open objects and the public names of components."""
    result = dict(schema)
    if "$ref" in result:
        head, _, name = result["$ref"].rpartition("/")
        result["$ref"] = f"{head}/{_renamed(name)}"
    if "enum" in result:
        types = list(dict.fromkeys(_JSON_TYPES[type(value)] for value in result["enum"]))
        result = {"type": types[0] if len(types) == 1 else types} | result
        if len(result["enum"]) == 1:
            [result["const"]] = result.pop("enum")
    if result.get("type") == "object" and "properties" not in result:
        result.setdefault("additionalProperties", True)
    for word in ("items", "additionalProperties"):
        if isinstance(result.get(word), dict):
            result[word] = tidy(result[word])
    for word in ("anyOf", "oneOf", "prefixItems"):
        if word in result:
            result[word] = [tidy(member) for member in result[word]]
    if "properties" in result:
        result["properties"] = {name: tidy(part) for name, part in result["properties"].items()}
    return result


def _tag(names: list[str], components: Mapping[str, Schema]) -> Schema:
    """The discriminator of a union: the field with a different constant in each of its members."""
    parts = [components[name].get("properties", {}) for name in names]
    for field in parts[0]:
        values = [part.get(field, {}).get("const") for part in parts]
        if None not in values and len(set(values)) == len(values):
            mapping = {value: REF.format(name=name) for value, name in zip(values, names, strict=True)}
            return {"discriminator": {"propertyName": field, "mapping": mapping}}
    raise ValueError(f"no field distinguishes these shapes: {', '.join(names)}")


def _require(schema: Schema, kind: Any) -> None:
    """List the fields that a reply always has, and drop defaults: a field that is left out has no value."""
    config = (get_origin(kind) or kind).__struct_config__
    always = {
        field.encode_name
        for field in msgspec.structs.fields(kind)
        if field.required or not (config.omit_defaults or msgspec.UnsetType in get_args(field.type))
    }
    listed = schema.get("required", ())
    schema["required"] = [name for name in schema["properties"] if name in always or name in listed]
    for part in schema["properties"].values():
        part.pop("default", None)


def _structs(kinds: Iterable[Any]) -> list[Any]:
    """Every struct that the types consist of, and every generic one with its item."""
    structs: dict[Any, None] = {}
    waiting = list(kinds)
    while waiting:
        kind = waiting.pop()
        waiting += get_args(kind)
        origin = get_origin(kind) or kind
        if isinstance(origin, type) and issubclass(origin, msgspec.Struct) and kind not in structs:
            structs[kind] = None
            waiting += [field.type for field in msgspec.structs.fields(kind)]
    return list(structs)


def _name(kind: Any) -> str:
    """The name of a struct's component."""
    return "".join(part.__name__ for part in (*get_args(kind), get_origin(kind) or kind))


def _renamed(name: str) -> str:
    return _GENERIC.sub(r"\2\1", name)


def _all_schemas(value: Any) -> Iterator[Schema]:
    """Every schema inside a value, innermost first."""
    if isinstance(value, dict):
        for member in value.values():
            yield from _all_schemas(member)
        yield value
    elif isinstance(value, list):
        for member in value:
            yield from _all_schemas(member)
