"""OpenAPI 3.1, generated from the operations that the server runs, so that it always matches them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import msgspec

from redkey import __version__
from redkey.api.schemas import REF, Schemas, tidy
from redkey.http.problems import MEDIA_TYPE as PROBLEM
from redkey.http.request import Empty
from redkey.shapes.events import EVENT_STREAM
from redkey.shapes.fields import camel
from redkey.shapes.operation import Operation
from redkey.shapes.problem import Accepted, Problem
from redkey.shapes.workspaces import SCOPES

_JSON = "application/json"
_RESPONSE_REF = "#/components/responses/"
# Refusals: the name of the shared response, and its description unless an operation has its own.
_REFUSALS = {
    400: ("BadRequest", "The request cannot be read: invalid JSON or an invalid query string."),
    401: ("Unauthorized", "The key or token is missing or invalid."),
    402: ("PaymentRequired", "The credits of the workspace, or what the ledger costs, cannot be paid."),
    403: ("Forbidden", "The key lacks the needed scope."),
    404: ("NotFound", "There is no such thing in this workspace."),
    408: ("RequestTimeout", "The body arrived too slowly."),
    409: ("Conflict", "The current state does not allow it; repeating the request will not help."),
    410: ("Gone", "This request was answered before, and its answer was erased or is no longer stored."),
    413: ("ContentTooLarge", "The body is too large."),
    415: ("UnsupportedMediaType", "The body has the wrong media type."),
    422: ("Unprocessable", "The request is invalid; `errors` lists everything that is wrong."),
    429: ("TooManyRequests", "The key sends too many requests, or too many logins failed."),
    503: ("Unavailable", "The server cannot handle the request now; retry after Retry-After."),
}
_RETRY = {"Retry-After": {"description": "Seconds to wait.", "schema": {"type": "integer"}}}
_ACCEPTED = (
    "Only to a caller that sends `Prefer: respond-async`, in a workspace that a network orders: the request has its "
    "place, and what it did is not known here yet. Send it again with its Idempotency-Key to learn it."
)
_PREFER = {
    "name": "Prefer",
    "in": "header",
    "required": False,
    "description": "`respond-async`: where a network orders the workspace, answer 202 once the request is ordered.",
    "schema": {"type": "string"},
}
_SECURITY = {
    "apiKey": {"type": "http", "scheme": "bearer", "description": "An API key: rk_<public id>_<secret>."},
    "oauth2": {
        "type": "oauth2",
        "flows": {"clientCredentials": {"tokenUrl": "/oauth/token", "scopes": SCOPES}},
    },
}


@cache
def document(operations: tuple[Operation, ...], base_url: str = "") -> bytes:
    """The whole document."""
    return msgspec.json.encode(_Document(operations).described(base_url))


def response_of(described: Mapping[str, Any], response: Mapping[str, Any]) -> dict[str, Any]:
    """A response of an operation, merged with the shared response that it refers to."""
    if "$ref" not in response:
        return dict(response)
    name = response["$ref"].removeprefix(_RESPONSE_REF)
    own = {key: value for key, value in response.items() if key != "$ref"}
    return {**described["components"]["responses"][name], **own}


def statuses(operation: Operation) -> dict[int, str]:
    """Every status except success that an operation may return, and when."""
    codes = {400, 422, 503}
    if operation.scopes:
        codes |= {401, 403, 429}
    if "{" in operation.path:
        codes.add(404)
    if operation.method in ("POST", "PUT", "PATCH"):
        codes |= {408, 413, 415}
    if operation.takes_key:
        codes.add(410)
    if is_ordered(operation):
        codes.add(402)
    return {status: _REFUSALS[status][1] for status in sorted(codes)} | dict(operation.replies)


def is_ordered(operation: Operation) -> bool:
    """Whether a request may need its place in the order of a network: what is recorded, each as one request."""
    return operation.takes_key and bool(operation.scopes) and operation.repeats == "records"


def _segment(part: str) -> str:
    return f"{{{camel(part[1:-1])}}}" if part.startswith("{") else part


def _path_parameters(operation: Operation) -> list[dict[str, Any]]:
    return [
        {"name": camel(name), "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        for name in operation.path_names
    ]


def _query_parameters(operation: Operation) -> list[dict[str, Any]]:
    if operation.query is None:
        return []
    _, components = msgspec.json.schema_components([operation.query], ref_template=REF)
    schema = components[operation.query.__name__]
    required = schema.get("required", ())
    return [
        {"name": name, "in": "query", "required": name in required, "schema": tidy(part)}
        for name, part in schema["properties"].items()
    ]


def _headers(operation: Operation) -> list[dict[str, Any]]:
    headers = []
    if operation.takes_key:
        headers.append(
            {
                "name": "Idempotency-Key",
                "in": "header",
                "required": False,
                "description": "A request that is repeated with the same key and body gets the same bytes as reply.",
                "schema": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[ -~]+$"},
            }
        )
    if is_ordered(operation):
        headers.append(_PREFER)
    if EVENT_STREAM in operation.media:
        headers.append(
            {
                "name": "Last-Event-ID",
                "in": "header",
                "required": False,
                "description": "The id of the last event that was received; the stream continues after it.",
                "schema": {"type": "string", "pattern": "^[0-9]{1,12}$"},
            }
        )
    return headers


class _Document:
    """The parts of the document while it is built."""

    def __init__(self, operations: tuple[Operation, ...]) -> None:
        self._operations = operations
        replies = [
            kind
            for operation in operations
            for kind in (operation.reply, operation.event, operation.failure)
            if kind is not None
        ]
        bodies = [operation.body for operation in operations if operation.body is not None]
        self._schemas = Schemas([Empty, *bodies], [Problem, Accepted, *replies])
        self._responses: dict[str, Any] = {}

    def described(self, base_url: str) -> dict[str, Any]:
        paths: dict[str, dict[str, Any]] = {}
        for operation in self._operations:
            path = "/".join(_segment(part) for part in operation.path.split("/"))
            paths.setdefault(path, {})[operation.method.lower()] = self._operation(operation)
        return {
            "openapi": "3.1.0",
            "info": {
                "title": "RedKey Coordination API",
                "version": __version__,
                "summary": "A shared verified queue for parallel agents.",
                "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
            },
            "servers": [{"url": base_url or "/"}],
            "tags": [{"name": family} for family in dict.fromkeys(operation.family for operation in self._operations)],
            "paths": paths,
            "components": {
                "schemas": self._schemas.components,
                "responses": self._responses,
                "securitySchemes": _SECURITY,
            },
        }

    def _operation(self, operation: Operation) -> dict[str, Any]:
        described: dict[str, Any] = {
            "operationId": camel(operation.name),
            "summary": operation.summary,
            "tags": [operation.family],
            "parameters": [*_path_parameters(operation), *_query_parameters(operation), *_headers(operation)],
            "responses": self._answers(operation),
        }
        if operation.description and operation.description != operation.summary:
            described["description"] = operation.description
        if operation.scopes:
            described["security"] = [{"apiKey": []}, {"oauth2": list(operation.scopes)}]
            if operation.shared:
                described["security"].append({})
            described["x-scopes"] = list(operation.scopes)
        else:
            described["security"] = []
        if operation.method in ("POST", "PUT", "PATCH"):
            described["requestBody"] = self._request_body(operation)
        return described

    def _request_body(self, operation: Operation) -> dict[str, Any]:
        if operation.body is None and operation.streamed:
            return {"required": True, "content": {"application/octet-stream": {"schema": {}}}}
        kind = operation.body or Empty
        content: dict[str, Any] = {"schema": self._schemas.of(kind)}
        if operation.example is not None:
            content["example"] = operation.example
        required = any(field.required for field in msgspec.structs.fields(kind)) if isinstance(kind, type) else True
        return {"required": required, "content": {operation.consumes: content}}

    def _answers(self, operation: Operation) -> dict[str, Any]:
        answers = {str(operation.status): self._success(operation)}
        if is_ordered(operation):
            answers["202"] = {"description": _ACCEPTED, "content": {_JSON: {"schema": self._schemas.of(Accepted)}}}
        for status, when in statuses(operation).items():
            if 200 <= status < 300 and status != operation.status:
                answers[str(status)] = {**self._success(operation), "description": when}
            elif status >= 400:
                answers[str(status)] = self._refusal(operation, status, when)
        return answers

    def _refusal(self, operation: Operation, status: int, when: str) -> dict[str, Any]:
        """A reference to the shared response of a status, with a description of its own if that differs."""
        name, usual = _REFUSALS[status]
        kind, media = Problem, PROBLEM
        if operation.failure is not None and (status < 402 or operation.fails_alike):
            kind, media = operation.failure, _JSON
            name = kind.__name__.removesuffix("Error") + name
        if name not in self._responses:
            shared: dict[str, Any] = {"description": usual, "content": {media: {"schema": self._schemas.of(kind)}}}
            if kind is not Problem and not operation.fails_alike:
                # What cannot be read as a request at all is refused before it is known whose shape counts.
                shared["content"][PROBLEM] = {"schema": self._schemas.of(Problem)}
            if status in (429, 503):
                shared["headers"] = _RETRY
            self._responses[name] = shared
        reference = {"$ref": _RESPONSE_REF + name}
        return reference if when == usual else {**reference, "description": when}

    def _success(self, operation: Operation) -> dict[str, Any]:
        content: dict[str, Any] = {}
        for media in operation.media:
            if media == _JSON and operation.reply is not None:
                content[media] = {"schema": self._schemas.of(operation.reply)}
                if operation.reply_example is not None:
                    content[media]["example"] = operation.reply_example
            else:
                content[media] = {"schema": {"type": "string"}}
            if media == EVENT_STREAM and operation.event is not None:
                # The type of the `data` of one event of the stream, as JSON.
                content[media]["x-event"] = self._schemas.of(operation.event)
        return {"description": operation.summary or "Success.", "content": content}
