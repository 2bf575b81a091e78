"""Operations: what the document says of each, under the name that the Python SDK gives it."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
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
# What the Python SDK leaves to clients of their own: tag -> family, and the word that their operationIds begin with.
_FAMILIES = {"api": ("bus", "bus")}
# Until the document says what a stream sends: the path that lists the same events.
_LISTED_AT = {
    "/stream": "/ledger/query",
    "/api/sessions/stream": "/api/sessions/{sessionId}/events",
    "/api/sessions/{sessionId}/events/stream": "/api/sessions/{sessionId}/events",
}
_NO_FIELDS: Schema = {"type": "object", "properties": {}}
# Stands for a required argument that is not text; no argument of an operation is this by itself.
_ANYTHING: dict[str, Any] = {}


@dataclass(frozen=True)
class Operation:
    """One operation: where it is called in the SDK, how it is sent, and the document's word on it."""

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
    # What lists the events of a stream, where another operation does.
    listing: Schema | None = None

    @property
    def summary(self) -> str:
        return str(self.described["summary"])

    def words(self) -> str:
        """The line of the operation in the table."""
        said = [self.method, re.sub(r"\{\w+\}", "{}", self.path)]
        if self.kind != "call":
            said.append(self.kind)
        elif self.accept != JSON:
            said.append(self.accept)
        if self.keyed != (self.method in _KEYED):
            said.append("keyed" if self.keyed else "unkeyed")
        said += ["public"] * self.public
        said += {_FORM: ["form"], _OCTETS: ["octets"]}.get(self._media(), [])
        said += ["-"] * (not self._takes_input())
        return " ".join([*said, *(f"{name}={value}" for name, value in self.fixed.items())])

    def signature(self, types: Types) -> str:
        """The operation as a method of an interface."""
        taken = [f"{name}: string" for name in re.findall(r"\{(\w+)\}", self.path)]
        if self._takes_input():
            taken += self._input(types)
        return f"{self.name}({', '.join([*taken, 'options?: CallOptions'])}): {self._reply(types)}"

    def _media(self) -> str:
        content = self.described.get("requestBody", {}).get("content", {})
        return next(iter(content), "")

    def _body(self) -> Schema | None:
        content = self.described.get("requestBody", {}).get("content", {})
        found: Schema | None = next((one["schema"] for one in content.values()), None)
        return found

    def _query(self) -> list[Schema]:
        found = [one for one in self.described["parameters"] if one["in"] == "query"]
        # A stream resumes by its cursor, and pages of a list are not for it.
        paging = ("limit", "order") if self.kind == "stream" else ()
        return [one for one in found if one["name"] not in (*self.fixed, *paging)]

    def _takes_input(self) -> bool:
        # A body without fields is written by the core.
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
        for one in self._query():
            kind = types.of(one["schema"]) + (" | readonly string[]" if one["name"] in self.lists else "")
            parts.append(f"{one['name']}{'' if one['required'] else '?'}: {kind}")
        needed = any(one["required"] for one in self._query())
        return f"query{'' if needed else '?'}: {{ {'; '.join(parts)} }}"

    def _reply(self, types: Types) -> str:
        answers = [one for status, one in self.described["responses"].items() if status.startswith("2")]
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
            assert item is not None, f"{self.name} does not answer with pages"
            return f"Pages<{types.of(item)}>"
        return f"Promise<{types.of(schema)}>"

    def _event(self, content: Schema, types: Types) -> str:
        """The type of one event of a stream: what the document says, or what the same path or another one lists."""
        streamed = content[EVENT_STREAM]
        said = streamed.get("x-event") or streamed.get("schema", {}).get("x-event")
        if said is not None:
            return types.of(said if isinstance(said, dict) else {"$ref": said})
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
    known = {(one.method, one.path) for one in named}
    found = [*named, *(_unnamed(*place, said) for place, said in described.items() if place not in known)]
    return [replace(one, listing=described.get(("GET", _LISTED_AT.get(one.path, "")))) for one in found]


def _whole(operation: Schema, components: Schema) -> Schema:
    """An operation with its parameters, body and responses in place of references; a body without fields is marked."""

    def found(part: Schema) -> Schema:
        if "$ref" not in part:
            return part
        kind, name = part["$ref"].removeprefix("#/components/").split("/")
        target: Schema = components[kind][name]
        return target

    whole = {
        **operation,
        "parameters": [found(one) for one in operation.get("parameters", ())],
        "responses": {status: found(one) for status, one in operation["responses"].items()},
    }
    if "requestBody" in operation:
        content = found(operation["requestBody"])["content"]
        schemas = {media: found(one["schema"]) for media, one in content.items()}
        fieldless = {media for media, schema in schemas.items() if schema.get("properties") == {}}
        kept = {
            media: {"schema": _NO_FIELDS if media in fieldless else one["schema"]} for media, one in content.items()
        }
        whole["requestBody"] = {"content": kept}
    return whole


class _Recorder:
    """Stands where a client sends: hands back what the call built, and as what."""

    def send(self, built: Any) -> tuple[Kind, Any]:
        return "call", built

    def pages(self, built: Any) -> tuple[Kind, Any]:
        return "list", built

    def stream(self, built: Any) -> tuple[Kind, Any]:
        return "stream", built.begin.args[0]


def _named_by_the_sdk(described: dict[tuple[str, str], Schema]) -> Iterator[Operation]:
    client = object.__new__(RedKey)
    client._open(_Recorder())  # type: ignore[arg-type]
    for family, resource in vars(client).items():
        if not isinstance(resource, Resource):
            continue
        # What is written by hand stands in a class above what is generated.
        kinds = [kind for kind in reversed(type(resource).__mro__) if issubclass(kind, Resource)]
        for name in dict.fromkeys(name for kind in kinds for name in vars(kind)):
            if not name.startswith("_"):
                found = _recorded(family, name, getattr(resource, name), described)
                if found is not None:
                    yield found


def _recorded(family: str, name: str, call: Any, described: dict[tuple[str, str], Schema]) -> Operation | None:
    """An operation by what its method in the Python SDK builds from arguments that only mark their places."""
    needed = {
        one.name: f"arg-{one.name}" if one.annotation == "str" else _ANYTHING
        for one in inspect.signature(call).parameters.values()
        if one.default is one.empty and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)
    }
    kind, request = call(**needed)
    assert isinstance(request, Request)
    if kind == "stream" and request.accept != EVENT_STREAM:
        # Bodies in pieces: WebCrypto cannot hash as they come, so that nothing could be checked.
        return None
    path = _matching(request, described)
    form = parse_qsl(request.body.decode()) if isinstance(request.body, bytes) and request.media == _FORM else ()
    fixed = {
        key: value for key, value in (*request.query.items(), *form) if value not in (str(_ANYTHING), *needed.values())
    }
    parameters = inspect.signature(call).parameters.values()
    lists = frozenset(camel(one.name) for one in parameters if "str | Sequence[str]" in str(one.annotation))
    said, method = described[request.method, path], request.method
    return Operation(
        family, camel(name), method, path, said, kind, request.accept, request.keyed, request.public, fixed, lists
    )


def _matching(request: Request[Any], described: dict[tuple[str, str], Schema]) -> str:
    """The path in the document that a request is for; a path without places comes before one with them."""
    paths = sorted((path for method, path in described if method == request.method), key=lambda one: one.count("{"))
    return next(path for path in paths if re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", path), request.path))


def _unnamed(method: str, path: str, said: Schema) -> Operation:
    """An operation that the Python SDK does not have, by its tag and operationId."""
    tag, name = said["tags"][0], said["operationId"]
    family, prefix = _FAMILIES.get(tag, (camel(re.sub(r"\W+", "_", tag)), ""))
    short = name.removeprefix(prefix)
    media = [key for status, one in said["responses"].items() if status[0] == "2" for key in one.get("content", {})]
    kind: Kind = "stream" if media == [EVENT_STREAM] else "call"
    accept = JSON if kind == "stream" or JSON in media or not media else media[0]
    keyed = any(one["name"] == "Idempotency-Key" for one in said["parameters"])
    return Operation(
        family, short[0].lower() + short[1:], method, path, said, kind, accept, keyed, not said["security"]
    )
