"""Requests: one call of the API as a value, before anybody sends it; and how replies are read.

A method of a resource only builds such a value. Sending, retrying and waiting are `flow`'s.
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
    """One call: what is asked for, and how its answer is read.

    `keyed` calls carry one idempotency key over all their retries. `wait_seconds` is how long the server itself may
    take before it answers, on top of the timeout.
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
    # Sent without the key of the client.
    public: bool = False

    def after(self, cursor: str) -> Request[T]:
        """The same list from this cursor on."""
        return msgspec.structs.replace(self, query={**self.query, "after": cursor})


def get(path: str, reply: Any, /, *, accept: str = JSON, wait_seconds: float = 0, **query: Any) -> Request[Any]:
    """A request that reads; parameters that are None are left out."""
    return Request("GET", path, reader(reply), parameters(query), accept=accept, wait_seconds=wait_seconds)


def post(path: str, reply: Any, /, *, wait_seconds: float = 0, **body: Any) -> Request[Any]:
    """A request that writes; fields that are None or UNSET are left out."""
    return Request("POST", path, reader(reply), body=_encode(body), wait_seconds=wait_seconds, keyed=True)


def beat(path: str, reply: Any, /, **body: Any) -> Request[Any]:
    """A heartbeat: one too many does no harm, so no key makes the server keep its answer."""
    return msgspec.structs.replace(post(path, reply, **body), keyed=False)


def patch(path: str, reply: Any, /, **body: Any) -> Request[Any]:
    """A request that changes what is named."""
    return Request("PATCH", path, reader(reply), body=_encode(body), keyed=True)


def delete(path: str, reply: Any, /) -> Request[Any]:
    """A request that takes away."""
    return Request("DELETE", path, reader(reply), keyed=True)


def without_key(request: Request[T]) -> Request[T]:
    """The same request without the key of the client, for what everybody may ask."""
    return msgspec.structs.replace(request, public=True)


def as_object(value: Any) -> Any:
    """An object of a body: a shape as it is, a dict with its fields by the names of the API."""
    return given(value) if isinstance(value, Mapping) else value


def at(*segments: str) -> str:
    """A path of these segments; an id that is empty or walks up the path would name something else."""
    for segment in segments:
        if not isinstance(segment, str) or segment in ("", ".", ".."):
            raise CallMisused(f"{segment!r} is not an id", code="id_invalid")
    # Nearly every segment is a word or an id, and stays as it is.
    return "".join(["/" + (segment if _WORD.fullmatch(segment) else quote(segment, safe="")) for segment in segments])


@cache
def reader(kind: Any) -> Callable[[bytes], Any]:
    """How a reply of a kind is read: JSON into a struct, or as text or bytes; built when a kind is first asked for."""
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
    """A query string's parts, by their names in the API."""
    return {camel(name): _parameter(value) for name, value in query.items() if value is not None}


def given(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that were given, by their names in the API."""
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
