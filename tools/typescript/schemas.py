"""JSON Schemas of the OpenAPI document as TypeScript types.

Only the keywords that are listed here are supported; any other is an error, so that none is ignored silently.
"""

from __future__ import annotations

import json
import re
from typing import Any

Schema = dict[str, Any]
_REF = "#/components/schemas/"
_SCALARS = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}
_BOUNDS = {
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    *("minLength", "maxLength", "pattern", "format", "minItems", "maxItems", "uniqueItems"),
    *("minProperties", "maxProperties", "propertyNames"),
}
_ANNOTATIONS = {"title", "description", "default", "example", "examples", "deprecated", "discriminator"}
_SHAPES = {"$ref", "type", "enum", "const", "anyOf", "oneOf", "allOf", "properties", "required", "items"}
_KNOWN = _BOUNDS | _ANNOTATIONS | _SHAPES | {"additionalProperties"}


class Types:
    """The types that are used, in the order of their first use."""

    def __init__(self, document: Schema) -> None:
        self._schemas: dict[str, Schema] = document["components"]["schemas"]
        self._used: dict[str, str] = {}

    def of(self, schema: Schema, prefix: str = "T.") -> str:
        """The TypeScript type of a schema; `prefix` is put before the names of other types."""
        unknown = {key for key in schema if key not in _KNOWN and not key.startswith("x-")}
        if unknown:
            raise NotImplementedError(f"{sorted(unknown)} of a schema have no TypeScript type yet")
        if "$ref" in schema:
            return self._named(schema["$ref"].removeprefix(_REF), prefix)
        for key, sign in (("anyOf", " | "), ("oneOf", " | "), ("allOf", " & ")):
            if key in schema:
                return sign.join(dict.fromkeys(self.of(part, prefix) for part in schema[key]))
        if "const" in schema:
            return json.dumps(schema["const"])
        if "enum" in schema:
            return " | ".join(json.dumps(value) for value in schema["enum"])
        kinds = schema.get("type", [])
        parts = [self._of_kind(kind, schema, prefix) for kind in ([kinds] if isinstance(kinds, str) else kinds)]
        return " | ".join(parts) or "unknown"

    def resolved(self, schema: Schema) -> Schema:
        """The schema that a reference points to."""
        return self._schemas[schema["$ref"].removeprefix(_REF)] if "$ref" in schema else schema

    def item_of_page(self, schema: Schema) -> Schema | None:
        """The item of a page of a list; None when the schema is not a page."""
        properties = self.resolved(schema).get("properties", {})
        return properties["items"]["items"] if properties.keys() == {"items", "next"} else None

    def declared(self) -> str:
        """The declarations of all types that were used, and of those that they use."""
        written: dict[str, str] = {}
        while waiting := [name for name in self._used if name not in written]:
            for name in waiting:
                written[name] = self._declaration(name)
        page = "\n/** One page of a list; `next` is the cursor of the next page, null if there is none. */\n"
        page += "export interface Page<Item> {\n  items: Item[];\n  next?: string | null;\n}\n"
        return page + "".join(f"\n{text}" for _, text in sorted(written.items()))

    def fields(self, schema: Schema, prefix: str, without: frozenset[str] = frozenset()) -> list[str]:
        """The fields of an object, one `name: type` each."""
        required = schema.get("required", ())
        return [
            f"{_field(name)}{'' if name in required else '?'}: {self.of(part, prefix)}"
            for name, part in schema["properties"].items()
            if name not in without
        ]

    def _named(self, name: str, prefix: str) -> str:
        item = self.item_of_page(self._schemas[name])
        if item is not None:
            return f"{prefix}Page<{self.of(item, prefix)}>"
        self._used.setdefault(name, _type_name(name))
        return prefix + self._used[name]

    def _declaration(self, name: str) -> str:
        schema = self._schemas[name]
        text = re.sub(r"\s+", " ", schema.get("description", "")).replace("*/", "* /").strip()
        comment = f"/** {text} */\n" if text else ""
        if "properties" not in schema:
            return f"{comment}export type {self._used[name]} = {self.of(schema, '')};\n"
        body = "".join(f"  {line};\n" for line in self.fields(schema, ""))
        return f"{comment}export interface {self._used[name]} {{\n{body}}}\n"

    def _of_kind(self, kind: str, schema: Schema, prefix: str) -> str:
        if kind == "array":
            item = self.of(schema.get("items", {}), prefix)
            return f"{item}[]" if re.fullmatch(r"[\w.]+", item) else f"Array<{item}>"
        if kind != "object":
            return _SCALARS[kind]
        if schema.get("properties"):
            return f"{{ {'; '.join(self.fields(schema, prefix))} }}"
        values = schema.get("additionalProperties", True)
        return f"Record<string, {self.of(values, prefix) if isinstance(values, dict) else 'unknown'}>"


def _type_name(name: str) -> str:
    """The name of a schema; if two modules use one name, the document distinguishes them by their modules."""
    *modules, last = name.split(".")
    return (modules[1].capitalize() if modules else "") + last


def _field(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z_$][\w$]*", name) else json.dumps(name)
