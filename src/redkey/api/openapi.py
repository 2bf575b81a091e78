"""OpenAPI 3.1, written from the routes that the adapter runs on, so that it cannot say anything else."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.metadata import version
from typing import Any

import msgspec

from redkey.api.schemas import REF, Schemas
from redkey.http.problems import MEDIA_TYPE as PROBLEM
from redkey.http.request import Empty
from redkey.http.route import Route
from redkey.readmodel.events import camel
from redkey.shapes.problem import Problem

_JSON = "application/json"
_WHEN = {
    400: "The request cannot be read: bad JSON, a bad query string.",
    401: "No key or token, or not a valid one.",
    402: "The credits of the workspace are used up.",
    403: "The key lacks the needed scope.",
    404: "There is no such thing in this workspace.",
    408: "The body came too slowly.",
    409: "The state does not allow it; sending it again will not help.",
    410: "This request was answered before, and its answer was erased or is no longer kept.",
    413: "The body is too large.",
    415: "The body is not of the right media type.",
    422: "Something in the request is invalid; errors names all of it.",
    429: "The key makes too many requests, or too many logins failed.",
    503: "The server cannot take the request now; send it again after Retry-After.",
}
_RETRY = {"Retry-After": {"description": "Seconds to wait.", "schema": {"type": "integer"}}}
_SCOPES = {
    "operator": "The whole server: workspaces, credits, prices.",
    "admin": "Everything in one workspace, as any of its agents.",
    "produce": "Queues, tasks and workflows.",
    "agent": "Claim and report, as one agent.",
    "runner": "Claim and report, as any agent of the workspace.",
    "read": "Look, and nothing more.",
}
_SECURITY = {
    "apiKey": {"type": "http", "scheme": "bearer", "description": "An API key: rk_<public id>_<secret>."},
    "oauth2": {
        "type": "oauth2",
        "flows": {"clientCredentials": {"tokenUrl": "/oauth/token", "scopes": _SCOPES}},
    },
}


@cache
def document(routes: tuple[Route, ...], base_url: str) -> bytes:
    """The whole document."""
    kinds = [kind for route in routes for kind in (route.body, route.reply, route.failure) if kind is not None]
    schemas = Schemas([Problem, Empty, *kinds])
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        path = "/".join(_segment(part) for part in route.path.split("/"))
        paths.setdefault(path, {})[route.method.lower()] = _operation(route, schemas)
    return msgspec.json.encode(
        {
            "openapi": "3.1.0",
            "info": {
                "title": "RedKey Coordination API",
                "version": version("redkey"),
                "summary": "A shared verified queue for parallel agents.",
                "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
            },
            "servers": [{"url": base_url or "/"}],
            "tags": [{"name": family} for family in dict.fromkeys(route.family for route in routes)],
            "paths": paths,
            "components": {"schemas": schemas.components, "securitySchemes": _SECURITY},
        }
    )


def statuses(route: Route) -> dict[int, str]:
    """Every status beside success that an operation may answer with, and when."""
    found = {400, 422, 503}
    if route.scopes:
        found |= {401, 403, 429}
    if "{" in route.path:
        found.add(404)
    if route.method in ("POST", "PUT", "PATCH"):
        found |= {408, 413, 415}
    if route.takes_key:
        found.add(410)
    return {status: _WHEN[status] for status in sorted(found)} | dict(route.replies)


def _operation(route: Route, schemas: Schemas) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": camel(route.operation_id),
        "summary": route.summary,
        "tags": [route.family],
        "parameters": [*_path_parameters(route), *_query_parameters(route), *_headers(route)],
        "responses": _responses(route, schemas),
    }
    described = (route.description or route.handler.__doc__ or "").strip()
    if described and described != route.summary:
        operation["description"] = described
    if route.scopes:
        operation["security"] = [{"apiKey": []}, {"oauth2": list(route.scopes)}]
        operation["x-scopes"] = list(route.scopes)
    else:
        operation["security"] = []
    body = _request_body(route, schemas)
    if body is not None:
        operation["requestBody"] = body
    return operation


def _segment(part: str) -> str:
    return f"{{{camel(part[1:-1])}}}" if part.startswith("{") else part


def _path_parameters(route: Route) -> list[dict[str, Any]]:
    names = [part[1:-1] for part in route.path.split("/") if part.startswith("{")]
    return [
        {"name": camel(name), "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        for name in names
    ]


def _query_parameters(route: Route) -> list[dict[str, Any]]:
    if route.query is None:
        return []
    _, components = msgspec.json.schema_components([route.query], ref_template=REF)
    schema = components[route.query.__name__]
    required = schema.get("required", ())
    return [
        {"name": name, "in": "query", "required": name in required, "schema": part}
        for name, part in schema["properties"].items()
    ]


def _headers(route: Route) -> list[dict[str, Any]]:
    found = []
    if route.takes_key:
        found.append(
            {
                "name": "Idempotency-Key",
                "in": "header",
                "required": False,
                "description": "Sent again with the same key and body, the request is answered with the same bytes.",
                "schema": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[ -~]+$"},
            }
        )
    if "text/event-stream" in route.media:
        found.append(
            {
                "name": "Last-Event-ID",
                "in": "header",
                "required": False,
                "description": "The id of the last event that was seen; the stream goes on after it.",
                "schema": {"type": "string", "pattern": "^[0-9]{1,12}$"},
            }
        )
    return found


def _request_body(route: Route, schemas: Schemas) -> dict[str, Any] | None:
    if route.method not in ("POST", "PUT", "PATCH"):
        return None
    if route.body is None and route.streamed:
        return {"required": True, "content": {"application/octet-stream": {"schema": {}}}}
    kind = route.body or Empty
    content: dict[str, Any] = {"schema": schemas.of(kind)}
    if route.example is not None:
        content["example"] = route.example
    required = any(field.required for field in msgspec.structs.fields(kind)) if isinstance(kind, type) else True
    return {"required": required, "content": {route.consumes: content}}


def _responses(route: Route, schemas: Schemas) -> dict[str, Any]:
    responses = {str(route.status): _success(route, schemas)}
    for status, when in statuses(route).items():
        if status == route.status:
            continue
        content: dict[str, Any] = {PROBLEM: {"schema": schemas.of(Problem)}}
        if 200 <= status < 300 and route.reply is not None:
            content = {_JSON: {"schema": schemas.of(route.reply)}}
        elif route.failure is not None and (status < 402 or route.fails_alike):
            content = {_JSON: {"schema": schemas.of(route.failure)}}
        answer: dict[str, Any] = {"description": when, "content": content}
        if status in (429, 503):
            answer["headers"] = _RETRY
        responses[str(status)] = answer
    return responses


def _success(route: Route, schemas: Schemas) -> dict[str, Any]:
    content: dict[str, Any] = {}
    for media in route.media:
        if media == _JSON and route.reply is not None:
            content[media] = {"schema": schemas.of(route.reply)}
            if route.reply_example is not None:
                content[media]["example"] = route.reply_example
        else:
            content[media] = {"schema": {} if media == _JSON else {"type": "string"}}
    described: Mapping[str, Any] = {"description": route.summary or "Success.", "content": content}
    return dict(described)
