"""Operations: the content of the OpenAPI document under the names of the Python SDK."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal
from urllib.parse import parse_qsl

from redkey.client import RedKey
from redkey.client.operation import Resource
from redkey.client.request import EVENT_STREAM, JSON, Request, camel
from tools.typescript.schemas import Schema, Types

Kind = Literal["call", "list", "stream"]
_FORM = "application/x-www-form-urlencoded"
_OCTETS = "application/octet-stream"
_KEYED = ("POST", "PATCH", "DELETE")
# Tags that the Python SDK leaves to other clients: tag -> family, and the prefix of their operationIds.
_FAMILIES = {"api": ("bus", "bus")}
# For streams whose events the document does not describe: the path that lists the same events.
_LISTED_AT = {
    "/stream": "/ledger/query",
    "/api/sessions/stream": "/api/sessions/{sessionId}/events",
    "/api/sessions/{sessionId}/events/stream": "/api/sessions/{sessionId}/events",
}
_NO_FIELDS: Schema = {"type": "object", "properties": {}}
# The value of a required argument that is not text; no real argument is this very object.
_ANYTHING: dict[str, Any] = {}


@dataclass(frozen=True)
class Operation:
    """One operation: its name in the SDK, how it is sent, and its entry in the document."""

    family: str
    name: str
    method: str
    path: str
    described: Schema
    kind: Kind
    accept: str
    keyed: bool
    public: bool
    # Query or form fields that always have this value.
    fixed: dict[str, str] = field(default_factory=dict)
    # Query parameters that may be lists.
    lists: frozenset[str] = frozenset()
    # The operation that lists the events of a stream, if that is another one.
    listing: Schema | None = None

    @property
    def summary(self) -> str:
        return str(self.described["summary"])

    def words(self) -> str:
        """The entry of the operation in the table."""
        words = [self.method, re.sub(r"\{\w+\}", "{}", self.path)]
        if self.kind != "call":
            words.append(self.kind)
        elif self.accept != JSON:
            words.append(self.accept)
        if self.keyed != (self.method in _KEYED):
            words.append("keyed" if self.keyed else "unkeyed")
        words += ["public"] * self.public
        words += {_FORM: ["form"], _OCTETS: ["octets"]}.get(self._media(), [])
        words += ["-"] * (not self._takes_input())
        return " ".join([*words, *(f"{name}={value}" for name, value in self.fixed.items())])

    def signature(self, types: Types) -> str:
        """The operation as a method of an interface."""
        arguments = [f"{name}: string" for name in re.findall(r"\{(\w+)\}", self.path)]
        if self._takes_input():
            arguments += self._input(types)
        return f"{self.name}({', '.join([*arguments, 'options?: CallOptions'])}): {self._reply(types)}"

    def _media(self) -> str:
        content = self.described.get("requestBody", {}).get("content", {})
        return next(iter(content), "")

    def _body(self) -> Schema | None:
        content = self.described.get("requestBody", {}).get("content", {})
        schema: Schema | None = next((media["schema"] for media in content.values()), None)
        return schema

    def _query(self) -> list[Schema]:
        query = [parameter for parameter in self.described["parameters"] if parameter["in"] == "query"]
        # A stream resumes by its cursor, so it has no paging parameters.
        paging = ("limit", "order") if self.kind == "stream" else ()
        return [parameter for parameter in query if parameter["name"] not in (*self.fixed, *paging)]

    def _takes_input(self) -> bool:
        # The SDK's core writes a body without fields.
        return self._media() == _OCTETS or self._body() not in (None, _NO_FIELDS) or bool(self._query())

    def _input(self, types: Types) -> list[str]:
        query, body = self._query_type(types), self._body()
        if self._media() == _OCTETS:
            return ["data: Uint8Array<ArrayBuffer> | string | Blob", query]
        if body is None:
            return [query]
        schema = types.resolved(body)
        required = set(schema.get("required", ())) - set(self.fixed)
        kind = types.of(body)
        if self.fixed:
            kind = f"{{ {'; '.join(types.fields(schema, 'T.', frozenset(self.fixed)))} }}"
        return [f"body{'' if required else '?'}: {kind}"]

    def _query_type(self, types: Types) -> str:
        parts = []
        for parameter in self._query():
            name, required = parameter["name"], parameter["required"]
            kind = types.of(parameter["schema"]) + (" | readonly string[]" if name in self.lists else "")
            parts.append(f"{name}{'' if required else '?'}: {kind}")
        needed = any(parameter["required"] for parameter in self._query())
        return f"query{'' if needed else '?'}: {{ {'; '.join(parts)} }}"

    def _reply(self, types: Types) -> str:
        answers = [answer for status, answer in self.described["responses"].items() if status.startswith("2")]
        content: Schema = answers[0].get("content", {})
        if self.kind == "stream":
            return f"AsyncGenerator<{self._event(content, types)}, void, undefined>"
        if not content:
            return "Promise<void>"
        if self.accept != JSON:
            return f"Promise<{'Uint8Array<ArrayBuffer>' if self.accept == _OCTETS else 'string'}>"
        schema = content[JSON]["schema"]
        if self.kind == "list":
            item = types.item_of_page(schema)
            assert item is not None, f"{self.name} does not return pages"
            return f"Pages<{types.of(item)}>"
        return f"Promise<{types.of(schema)}>"

    def _event(self, content: Schema, types: Types) -> str:
        """The type of one event of a stream: as described, or as listed by the same path or another one."""
        streamed = content[EVENT_STREAM]
        described = streamed.get("x-event") or streamed.get("schema", {}).get("x-event")
        if described is not None:
            return types.of(described if isinstance(described, dict) else {"$ref": described})
        listed = content if JSON in content else (self.listing or {})["responses"]["200"]["content"]
        schema = types.resolved(listed[JSON]["schema"])
        return types.of(types.item_of_page(schema) or schema["items"])


def find_operations(document: Schema) -> list[Operation]:
    """All operations of the document: those of the Python SDK in its order, then the others."""
    described = {
        (method.upper(), path): _whole(operation, document["components"])
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    }
    named = list(_named_by_the_sdk(described))
    known = {(operation.method, operation.path) for operation in named}
    every = [*named, *(_unnamed(*place, entry) for place, entry in described.items() if place not in known)]
    return [
        replace(operation, listing=described.get(("GET", _LISTED_AT.get(operation.path, "")))) for operation in every
    ]


def _whole(operation: Schema, components: Schema) -> Schema:
    """An operation with references replaced by parameters, body and responses; a body without fields is marked."""

    def resolve(part: Schema) -> Schema:
        if "$ref" not in part:
            return part
        kind, name = part["$ref"].removeprefix("#/components/").split("/")
        target: Schema = components[kind][name]
        return target

    whole = {
        **operation,
        "parameters": [resolve(parameter) for parameter in operation.get("parameters", ())],
        "responses": {status: resolve(answer) for status, answer in operation["responses"].items()},
    }
    if "requestBody" in operation:
        content = resolve(operation["requestBody"])["content"]
        schemas = {media: resolve(body["schema"]) for media, body in content.items()}
        fieldless = {media for media, schema in schemas.items() if schema.get("properties") == {}}
        kept = {
            media: {"schema": _NO_FIELDS if media in fieldless else body["schema"]} for media, body in content.items()
        }
        whole["requestBody"] = {"content": kept}
    return whole


class _Recorder:
    """A replacement for a sender: it returns the request that a call built, and its kind."""

    def send(self, built: Any) -> tuple[Kind, Any]:
        return "call", built

    def pages(self, built: Any) -> tuple[Kind, Any]:
        return "list", built

    def take(self, steps: Any) -> tuple[Kind, Any]:
        return "call", next(steps)

    def stream(self, built: Any) -> tuple[Kind, Any]:
        # Calls that combine several operations are written by hand in each SDK.
        return "stream", built.begin.args[0] if isinstance(built.begin, partial) else None

    def wait(self, task_ids: Any, timeout: Any) -> tuple[Kind, Any]:
        return "call", None


def _named_by_the_sdk(described: dict[tuple[str, str], Schema]) -> Iterator[Operation]:
    client = object.__new__(RedKey)
    client._open(_Recorder())  # type: ignore[arg-type]
    for family, resource in vars(client).items():
        if not isinstance(resource, Resource):
            continue
        # Hand-written methods are in a subclass of the generated class.
        kinds = [kind for kind in reversed(type(resource).__mro__) if issubclass(kind, Resource)]
        for name in dict.fromkeys(name for kind in kinds for name in vars(kind)):
            if not name.startswith("_"):
                operation = _recorded(family, name, getattr(resource, name), described)
                if operation is not None:
                    yield operation


def _recorded(family: str, name: str, call: Any, described: dict[tuple[str, str], Schema]) -> Operation | None:
    """The operation of a method of the Python SDK, found from the request that it builds from marker arguments."""
    needed = {
        parameter.name: f"arg-{parameter.name}" if parameter.annotation == "str" else _ANYTHING
        for parameter in inspect.signature(call).parameters.values()
        if parameter.default is parameter.empty
        and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    }
    kind, request = call(**needed)
    if request is None:
        return None
    assert isinstance(request, Request)
    if kind == "stream" and request.accept != EVENT_STREAM:
        # Streamed bodies are left out: WebCrypto cannot hash incrementally, so nothing could be checked.
        return None
    path = _matching(request, described)
    form = parse_qsl(request.body.decode()) if isinstance(request.body, bytes) and request.media == _FORM else ()
    fixed = {
        key: value for key, value in (*request.query.items(), *form) if value not in (str(_ANYTHING), *needed.values())
    }
    parameters = inspect.signature(call).parameters.values()
    lists = frozenset(
        camel(parameter.name) for parameter in parameters if "str | Sequence[str]" in str(parameter.annotation)
    )
    entry, method = described[request.method, path], request.method
    return Operation(
        family, camel(name), method, path, entry, kind, request.accept, request.keyed, request.public, fixed, lists
    )


def _matching(request: Request[Any], described: dict[tuple[str, str], Schema]) -> str:
    """The path in the document that matches a request; paths without parameters come first."""
    paths = sorted((path for method, path in described if method == request.method), key=lambda path: path.count("{"))
    return next(path for path in paths if re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", path), request.path))


def _unnamed(method: str, path: str, entry: Schema) -> Operation:
    """An operation that the Python SDK does not have, named by its tag and operationId."""
    tag, name = entry["tags"][0], entry["operationId"]
    family, prefix = _FAMILIES.get(tag, (camel(re.sub(r"\W+", "_", tag)), ""))
    short = name.removeprefix(prefix)
    answers = [answer for status, answer in entry["responses"].items() if status[0] == "2"]
    media = [key for answer in answers for key in answer.get("content", {})]
    kind: Kind = "stream" if media == [EVENT_STREAM] else "call"
    accept = JSON if kind == "stream" or JSON in media or not media else media[0]
    keyed = any(parameter["name"] == "Idempotency-Key" for parameter in entry["parameters"])
    return Operation(
        family, short[0].lower() + short[1:], method, path, entry, kind, accept, keyed, not entry["security"]
    )
