"""The documentation that the server shows: the OpenAPI document, and a page made from it that loads nothing else."""

from __future__ import annotations

from functools import lru_cache
from html import escape
from itertools import groupby
from typing import Any

import msgspec

from redkey.api.openapi import document, response_of
from redkey.api.page import listing, page
from redkey.http.files import File, make_file
from redkey.services.problems import ADVICE, ADVICE_BY_STATUS
from redkey.shapes.operation import Operation


# Both depend only on the operations and the address, and need no key, so they are built once.
@lru_cache(maxsize=4)
def openapi_file(operations: tuple[Operation, ...], url: str) -> File:
    """The OpenAPI document."""
    return make_file(document(operations, url), "application/json")


@lru_cache(maxsize=2)
def docs_page(operations: tuple[Operation, ...], url: str) -> File:
    """The documentation as a web page."""
    described = msgspec.json.decode(document(operations, url))
    rendered = page("RedKey API", [_head(url), *_operations(described), *_problems()])
    return make_file(rendered.body, rendered.media, headers=rendered.headers)


def _head(base_url: str) -> str:
    return (
        "<h1>RedKey Coordination API</h1><p>RedKey gives parallel agents a shared verified queue. "
        'For programs: <a href="/openapi.json">/openapi.json</a>.</p>'
        f'<pre>curl -H "Authorization: Bearer $REDKEY_API_KEY" {escape(base_url)}/workspaces</pre>'
    )


def _operations(described: dict[str, Any]) -> list[str]:
    entries = [
        (operation["tags"][0], method, path, operation)
        for path, methods in described["paths"].items()
        for method, operation in methods.items()
    ]
    order = [tag["name"] for tag in described["tags"]]
    parts: list[str] = []
    for family, group in groupby(sorted(entries, key=lambda entry: order.index(entry[0])), key=lambda entry: entry[0]):
        parts.append(f'<h2 id="{escape(family)}">{escape(family)}</h2>')
        parts += [_operation(method, path, operation, described) for _, method, path, operation in group]
    return parts


def _operation(method: str, path: str, operation: dict[str, Any], described: dict[str, Any]) -> str:
    scopes = ", ".join(operation.get("x-scopes", ["no key needed"]))
    inside = [f"<p>{escape(operation.get('description', operation['summary']))}</p><p>Scopes: {escape(scopes)}</p>"]
    for parameter in operation["parameters"]:
        text = parameter.get("description", "")
        inside.append(f"<p><code>{escape(parameter['name'])}</code> ({parameter['in']}) {escape(text)}</p>")
    for content in operation.get("requestBody", {}).get("content", {}).values():
        inside.append("<h3>Body</h3>" + _content(content, described))
    for status, answer in operation["responses"].items():
        response = response_of(described, answer)
        inside.append(f"<h3>{escape(status)}</h3><p>{escape(response['description'])}</p>")
        if status.startswith("2"):
            inside += [_content(content, described) for content in response["content"].values()]
    summary = f'<span class="method">{method.upper()}</span> <code>{escape(path)}</code> {escape(operation["summary"])}'
    return f'<details id="{escape(operation["operationId"])}"><summary>{summary}</summary>{"".join(inside)}</details>'


def _content(content: dict[str, Any], described: dict[str, Any]) -> str:
    if "example" in content:
        return listing(content["example"])
    name = content["schema"].get("$ref", "").rpartition("/")[2]
    return listing(described["components"]["schemas"].get(name, content["schema"]))


def _problems() -> list[str]:
    rows = [*ADVICE.items(), *((str(status), advice) for status, advice in ADVICE_BY_STATUS.items())]
    cells = "".join(
        f'<tr id="{escape(code)}"><th><code>{escape(code)}</code></th><td>{escape(advice)}</td></tr>'
        for code, advice in rows
    )
    return [
        '<h2 id="problems">Problems</h2><p>What to do about a refusal, by its code or else by its status.</p>',
        f"<table>{cells}</table>",
    ]
