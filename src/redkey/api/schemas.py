"""JSON Schemas of what the API sends and takes, in the form that generators of clients read best.

msgspec writes them from the shapes. Here they get what it leaves out: a reply lists all fields that always come as
required, a union names the field that tells its members apart, an enum has its type, a free object is open, and a page
is called after its items.
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
        taken, sent = list(dict.fromkeys(requests)), list(dict.fromkeys(replies))
        kinds = [*taken, *sent]
        found, components = msgspec.json.schema_components(kinds, ref_template=REF)
        self.components: dict[str, Schema] = {}
        for name, schema in components.items():
            if not re.fullmatch(r"\w+", name):
                raise ValueError(f"two shapes of the API have the same name: {name}")
            public = _renamed(name)
            self.components[public] = tidy(schema) | {"title": public}
        for schema in _all_schemas(self.components):
            self._discriminate(schema)
        input_names = {_name(kind) for kind in _structs(taken)}
        for kind in _structs(sent):
            if _name(kind) not in input_names:
                _require(self.components[_name(kind)], kind)
        self._schemas = {kind: self._discriminate(tidy(schema)) for kind, schema in zip(kinds, found, strict=True)}

    def of(self, kind: Any) -> Schema:
        """The schema of a type that was asked for; a struct's is a reference."""
        return self._schemas[kind]

    def _discriminate(self, schema: Schema) -> Schema:
        """Say which field tells the members of a union apart."""
        members = schema.get("anyOf", ())
        names = [member["$ref"].rpartition("/")[2] for member in members if "$ref" in member]
        if len(names) < 2:
            return schema
        del schema["anyOf"]
        schema.pop("discriminator", None)
        told = _tag(names, self.components)
        union: Schema = {"oneOf": [{"$ref": REF.format(name=name)} for name in names]} | told
        others = [member for member in members if "$ref" not in member]
        schema.update({"anyOf": [union, *others]} if others else union)
        return schema


def tidy(schema: Schema) -> Schema:
    """The same schema with typed enums, constants, open objects and the public names of components."""
    made = dict(schema)
    if "$ref" in made:
        head, _, name = made["$ref"].rpartition("/")
        made["$ref"] = f"{head}/{_renamed(name)}"
    if "enum" in made:
        types = list(dict.fromkeys(_JSON_TYPES[type(value)] for value in made["enum"]))
        made = {"type": types[0] if len(types) == 1 else types} | made
        if len(made["enum"]) == 1:
            [made["const"]] = made.pop("enum")
    if made.get("type") == "object" and "properties" not in made:
        made.setdefault("additionalProperties", True)
    for word in ("items", "additionalProperties"):
        if isinstance(made.get(word), dict):
            made[word] = tidy(made[word])
    for word in ("anyOf", "oneOf", "prefixItems"):
        if word in made:
            made[word] = [tidy(one) for one in made[word]]
    if "properties" in made:
        made["properties"] = {name: tidy(one) for name, one in made["properties"].items()}
    return made


def _tag(names: list[str], components: Mapping[str, Schema]) -> Schema:
    """The discriminator of a union: the field that is another constant in each of its members."""
    parts = [components[name].get("properties", {}) for name in names]
    for field in parts[0]:
        values = [part.get(field, {}).get("const") for part in parts]
        if None not in values and len(set(values)) == len(values):
            mapping = {value: REF.format(name=name) for value, name in zip(values, names, strict=True)}
            return {"discriminator": {"propertyName": field, "mapping": mapping}}
    raise ValueError(f"no field tells these shapes apart: {', '.join(names)}")


def _require(schema: Schema, kind: Any) -> None:
    """List what a reply always has. Its defaults are of no use to a reader: what is left out is left out."""
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
    """Every struct that the types are made of, and every generic one with its item."""
    found: dict[Any, None] = {}
    waiting = list(kinds)
    while waiting:
        kind = waiting.pop()
        waiting += get_args(kind)
        origin = get_origin(kind) or kind
        if isinstance(origin, type) and issubclass(origin, msgspec.Struct) and kind not in found:
            found[kind] = None
            waiting += [field.type for field in msgspec.structs.fields(kind)]
    return list(found)


def _name(kind: Any) -> str:
    """The name of a struct's component."""
    return "".join(one.__name__ for one in (*get_args(kind), get_origin(kind) or kind))


def _renamed(name: str) -> str:
    return _GENERIC.sub(r"\2\1", name)


def _all_schemas(value: Any) -> Iterator[Schema]:
    """Every schema inside a value, the innermost first."""
    if isinstance(value, dict):
        for one in value.values():
            yield from _all_schemas(one)
        yield value
    elif isinstance(value, list):
        for one in value:
            yield from _all_schemas(one)
