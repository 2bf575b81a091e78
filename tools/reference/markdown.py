"""Markdown for the pages of the reference: tables, cells, and schemas in words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any


def table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; empty if it has no rows."""
    lines = ["| " + " | ".join(cell(value) for value in row) + " |" for row in rows]
    if not lines:
        return ""
    return "\n".join(["| " + " | ".join(titles) + " |", "|" + "---|" * len(titles), *lines]) + "\n"


def cell(text: str) -> str:
    """Text that is safe inside a table cell."""
    return text.replace("\n", " ").replace("|", "\\|")


def kind(schema: Any, link: str | None = "") -> str:
    """A JSON Schema in a few words: `string`, `integer, 1 to 999`, `list of [Wrong](#wrong)`."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2].removesuffix(".schema.json")
        return f"[{name}]({link}#{name.lower()})" if link is not None else name
    if "const" in schema:
        return f"`{schema['const']}`"
    if "enum" in schema:
        return " or ".join(f"`{value}`" for value in schema["enum"])
    for choice in ("anyOf", "oneOf"):
        if choice in schema:
            return " or ".join(dict.fromkeys(kind(part, link) for part in schema[choice]))
    named = schema.get("type", "anything")
    if isinstance(named, list):
        return " or ".join(named)
    if named == "array":
        return "list of " + kind(schema.get("items") or {}, link)
    if named == "object" and isinstance(schema.get("additionalProperties"), dict):
        return "object of " + kind(schema["additionalProperties"], link)
    return str(named) + _bounds(schema)


def _bounds(schema: Any) -> str:
    low = schema.get("minimum", schema.get("minLength", schema.get("exclusiveMinimum")))
    high = schema.get("maximum", schema.get("maxLength"))
    unit = " characters" if "minLength" in schema or "maxLength" in schema else ""
    if low is not None and low == high:
        return f", {low:,}{unit}"
    if low is not None and high is not None:
        return f", {low:,} to {high:,}{unit}"
    if high is not None:
        return f", up to {high:,}{unit}"
    return f", from {low:,}{unit}" if low else ""
