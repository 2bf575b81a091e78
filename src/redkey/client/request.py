"""Requests: one call of the API as a value, before it is sent; and how replies are decoded.

A method of a resource only builds such a value. `flow` sends, retries and waits.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Generic, TypeVar
from urllib.parse import quote

import msgspec

from redkey.errors import CallMisused, ReplyRefused
from redkey.shapes.fields import camel

T = TypeVar("T")

JSON = "application/json"
EVENT_STREAM = "text/event-stream"
_WORD = re.compile(r"[\w-]+", re.ASCII)


class Request(msgspec.Struct, Generic[T], frozen=True):
    """One call: the request, and how to decode its answer.

    A `keyed` call carries one idempotency key over all its retries. `wait_seconds` is how long the server itself may
    wait before it answers; the timeout is extended by it.
    """

    method: str
    path: str
    read: Callable[[bytes], T]
    query: Mapping[str, str] = msgspec.field(default_factory=dict)
    body: bytes | Path | None = None
    media: str = JSON
    accept: str = JSON
    wait_seconds: float = 0
    keyed: bool = False
    headers: Mapping[str, str] = msgspec.field(default_factory=dict)
    # Send without the client's key.
    public: bool = False

    def after(self, cursor: str) -> Request[T]:
        """Return the same list request from this cursor on."""
        return msgspec.structs.replace(self, query={**self.query, "after": cursor})


def get(path: str, reply: Any, /, *, accept: str = JSON, wait_seconds: float = 0, **query: Any) -> Request[Any]:
    """Build a reading request; parameters that are None are left out."""
    return Request("GET", path, reader(reply), parameters(query), accept=accept, wait_seconds=wait_seconds)


def post(path: str, reply: Any, /, *, wait_seconds: float = 0, **body: Any) -> Request[Any]:
    """Build a writing request; fields that are None or UNSET are left out."""
    return Request("POST", path, reader(reply), body=_encode(body), wait_seconds=wait_seconds, keyed=True)


def beat(path: str, reply: Any, /, **body: Any) -> Request[Any]:
    """Build a heartbeat. It needs no idempotency key, because an extra heartbeat does no harm."""
    return msgspec.structs.replace(post(path, reply, **body), keyed=False)


def patch(path: str, reply: Any, /, **body: Any) -> Request[Any]:
    """Build a request that changes the resource at the path."""
    return Request("PATCH", path, reader(reply), body=_encode(body), keyed=True)


def delete(path: str, reply: Any, /, **body: Any) -> Request[Any]:
    """Build a request that deletes; it has a body only if there are fields."""
    return Request("DELETE", path, reader(reply), body=_encode(body) if given(body) else None, keyed=True)


def without_key(request: Request[T]) -> Request[T]:
    """Return the same request without the client's key, for endpoints that are open to everyone."""
    return msgspec.structs.replace(request, public=True)


def as_object(value: Any) -> Any:
    """Convert an object of a body: a shape stays as it is; a dict gets the field names of the API."""
    return given(value) if isinstance(value, Mapping) else value


def at(*segments: str) -> str:
    """Join segments to a path; refuse an id that is empty, `.` or `..`, because it would name another resource."""
    for segment in segments:
        if not isinstance(segment, str) or segment in ("", ".", ".."):
            raise CallMisused(f"{segment!r} is not an id", code="id_invalid")
    # Nearly every segment is a word or an id, which needs no encoding.
    return "".join(["/" + (segment if _WORD.fullmatch(segment) else quote(segment, safe="")) for segment in segments])


@cache
def reader(kind: Any) -> Callable[[bytes], Any]:
    """Return the decoder for a type of reply: JSON into a struct, text, or bytes. Decoders are built on first use."""
    if kind is bytes:
        return _as_it_is
    if kind is str:
        return _text
    decode = msgspec.json.Decoder(kind).decode

    def read(body: bytes) -> Any:
        try:
            return decode(body)
        except msgspec.DecodeError as cause:
            name = getattr(kind, "__name__", str(kind))
            raise ReplyRefused(f"the answer is not a {name}: {cause}") from None

    return read


def parameters(query: Mapping[str, Any]) -> dict[str, str]:
    """Return the query parameters by their names in the API."""
    return {camel(name): _parameter(value) for name, value in query.items() if value is not None}


def given(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that have a value, by their names in the API."""
    return {camel(name): value for name, value in fields.items() if value is not None and value is not msgspec.UNSET}


def _parameter(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple | set | frozenset):
        return ",".join(map(str, value))
    return str(value)


def _encode(body: Mapping[str, Any]) -> bytes:
    try:
        return msgspec.json.encode(given(body))
    except (TypeError, ValueError, OverflowError, RecursionError) as cause:
        raise CallMisused(f"the request is not JSON: {cause}", code="not_json") from None


def _as_it_is(body: bytes) -> bytes:
    return body


def _text(body: bytes) -> str:
    try:
        return body.decode()
    except UnicodeDecodeError:
        raise ReplyRefused("the answer is not text in UTF-8") from None
