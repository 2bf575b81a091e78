"""The HTTP reference, generated from the OpenAPI document that the server itself returns."""

from __future__ import annotations

import json
from typing import Any

from redkey.api.openapi import document, response_of
from redkey.api.surface import routes
from redkey.app import operations_of
from tools.reference.markdown import kind, table

_INTRO = """# HTTP API

All requests and replies are JSON in camelCase. Send `Authorization: Bearer <key>`; a key's scopes say what it may do,
and `admin` keys may do everything in their workspace. A running server shows this page at `/docs` and the OpenAPI
document at `/openapi.json`.

Requests that write accept an `Idempotency-Key` header: a request that is repeated with the same key and body gets the
same bytes for a day, and is refused after that (410 `idempotency_key_expired`). Refusals are
`application/problem+json`: see [errors](errors.md). Lists are `{items, next}`; pass `next` as `after` to get the next
page.
"""
_LINE = 118
# Statuses that nearly every operation may return; the page on errors explains them.
_USUAL = {"400", "401", "403", "408", "413", "415", "422", "429", "503"}


def page() -> str:
    """The whole page: operations by family, then the schemas of bodies and replies."""
    api: dict[str, Any] = json.loads(document(operations_of(routes())))
    families: dict[str, list[str]] = {}
    for path, methods in api["paths"].items():
        for method, operation in methods.items():
            families.setdefault(operation["tags"][0], []).append(_operation(api, method.upper(), path, operation))
    parts = [_INTRO]
    for family, operations in families.items():
        parts += [f"## /{family}\n", *operations]
    parts.append("## Shapes\n")
    parts += [_shape(name, schema) for name, schema in sorted(api["components"]["schemas"].items())]
    return "\n".join(part for part in parts if part)


def _operation(api: dict[str, Any], method: str, path: str, operation: dict[str, Any]) -> str:
    scopes = operation.get("x-scopes")
    parts = [f"### `{method} {path}`\n", operation["summary"] + "\n"]
    parts.append(f"Scopes: {', '.join(dict.fromkeys(scopes))}.\n" if scopes else "No key needed.\n")
    query = [parameter for parameter in operation["parameters"] if parameter["in"] == "query"]
    rows = [(f"`{field['name']}`", kind(field["schema"]), field["schema"].get("description", "")) for field in query]
    parts.append(table(("query", "type", "meaning"), rows))
    for media, content in operation.get("requestBody", {}).get("content", {}).items():
        if content["schema"].get("$ref", "").endswith("/Empty"):
            continue
        parts.append(f"Body: {kind(content['schema'])}{_media(media)}\n")
        parts.append(_example(content))
    parts += _answers({status: response_of(api, answer) for status, answer in operation["responses"].items()})
    return "\n".join(part for part in parts if part)


def _answers(responses: dict[str, Any]) -> list[str]:
    parts = []
    for status, answer in responses.items():
        if status.startswith("2"):
            for media, content in answer["content"].items():
                parts.append(f"{status}: {kind(content['schema'])}{_media(media)}\n")
                parts.append(_example(content))
    others = [(status, answer["description"]) for status, answer in responses.items() if status[0] != "2"]
    parts.append(table(("else", "when"), [(s, when) for s, when in others if s not in _USUAL]))
    return parts


def _media(media: str) -> str:
    return "" if media == "application/json" else f" as `{media}`"


def _example(content: dict[str, Any]) -> str:
    if "example" not in content:
        return ""
    short = json.dumps(content["example"], ensure_ascii=False)
    text = short if len(short) <= _LINE else json.dumps(content["example"], ensure_ascii=False, indent=2)
    return f"```json\n{text}\n```\n"


def _shape(name: str, schema: dict[str, Any]) -> str:
    parts = [f"### {name}\n"]
    if "description" in schema:
        parts.append(schema["description"] + "\n")
    if "properties" not in schema:
        parts.append(f"{kind(schema)}\n")
    required = schema.get("required", ())
    rows = []
    for field, part in schema.get("properties", {}).items():
        default = "" if field in required else _default(part)
        rows.append((f"`{field}`", kind(part), "yes" if field in required else default, part.get("description", "")))
    parts.append(table(("field", "type", "required", "meaning"), rows))
    return "\n".join(part for part in parts if part)


def _default(part: dict[str, Any]) -> str:
    value = part.get("default")
    return f"default `{json.dumps(value)}`" if value not in (None, "", [], {}, False) else ""
