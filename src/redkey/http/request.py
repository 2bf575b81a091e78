"""Read the body and the query of a request into structs; report every error in them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from functools import cache
from typing import Any
from urllib.parse import parse_qsl

import msgspec

from redkey.commands.decision import invalid
from redkey.errors import Finding, pointer
from redkey.http.exchange import Exchange
from redkey.http.problems import Declined
from redkey.wire.decode import decode
from redkey.wire.schema import Checker, checker_of

Receive = Callable[[], Awaitable[Any]]

_PARAMETERS = 64
_CLOSE = {"connection": "close"}


class Empty(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A body without fields."""


async def chunks(receive: Receive, limit: int) -> AsyncIterator[bytes]:
    """Yield the chunks of a body; raise Declined if it is larger than `limit`."""
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ConnectionResetError
        chunk: bytes = message["body"]
        size += len(chunk)
        if size > limit:
            raise too_large(limit)
        if chunk:
            yield chunk
        more = message["more_body"]


async def read_body(exchange: Exchange, limit: int) -> bytes:
    """Receive the whole body of a request. The connection limits how long that may take."""
    declared_size(exchange.headers, limit)
    return b"".join([chunk async for chunk in chunks(exchange.receive, limit)])


def declared_size(headers: Mapping[bytes, bytes], limit: int) -> int | None:
    """Return the stated size of a body, None if it is chunked; raise Declined if it is above `limit`."""
    if b"transfer-encoding" in headers:
        return None
    text = headers.get(b"content-length", b"0")
    size = int(text) if text.isdigit() else 0
    if size > limit:
        raise too_large(limit)
    return size


def too_large(limit: int) -> Declined:
    """Return the refusal of a body above the limit."""
    return Declined(413, "body_too_large", f"The body is larger than {limit:,} bytes.", headers=_CLOSE)


def check_media(headers: Mapping[bytes, bytes]) -> None:
    """Refuse a body whose content type is not JSON, or that is compressed."""
    if headers.get(b"content-type") == b"application/json" and b"content-encoding" not in headers:
        return
    media = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    if media != b"application/json":
        shown = media.decode("ascii", "replace")[:64] or "none"
        raise Declined(415, "media_type_unsupported", f"The body's content-type is {shown}, not application/json.")
    packing = headers.get(b"content-encoding", b"identity").strip().lower()
    if packing != b"identity":
        raise Declined(
            415, "content_encoding_unsupported", "The body is compressed; send it without a content-encoding."
        )


class BodyReader:
    """Reads JSON bodies into one struct type."""

    def __init__(self, kind: Any, explain: Callable[[Any], list[Finding]] | None = None) -> None:
        self._kind = kind
        self._checker: Checker | None = None
        # What is said before the other findings about a body that is refused.
        self._explain = explain or (lambda value: [])

    def read(self, data: bytes, limit: int) -> Any:
        """Return the struct; raise JsonRefused (400) if the body is not JSON, Declined (422) with all that is wrong."""
        value = decode(data, size_limit=limit) if data else {}
        try:
            return msgspec.convert(value, self._kind)
        except msgspec.ValidationError as cause:
            if self._checker is None:
                self._checker = checker_of(msgspec.json.schema(self._kind))
            findings = [*self._explain(value), *self._checker.findings(value)]
            raise invalid(findings or [finding_of(cause)]) from None


class QueryReader:
    """Reads query strings into one struct type; without a type, every parameter is refused."""

    def __init__(self, kind: Any) -> None:
        self._kind = kind or Empty
        self._fields = {field.encode_name: field for field in msgspec.structs.fields(self._kind)}
        # The result for a request without a query, which most requests are.
        needs_some = any(field.required for field in self._fields.values())
        self._without = None if needs_some else self._kind()

    def read(self, text: bytes) -> Any:
        if not text and self._without is not None:
            return self._without
        parameters = self._parameters(text) if text else {}
        try:
            return msgspec.convert(parameters, self._kind, strict=False)
        except msgspec.ValidationError as cause:
            raise invalid(self._findings(parameters) or [finding_of(cause)]) from None

    def _parameters(self, text: bytes) -> dict[str, str]:
        try:
            pairs = parse_qsl(text.decode("ascii"), keep_blank_values=True, max_num_fields=_PARAMETERS, errors="strict")
        except (ValueError, UnicodeDecodeError):
            raise Declined(400, "query_malformed", "The query string cannot be read.") from None
        parameters: dict[str, str] = {}
        for name, value in pairs:
            if name in parameters:
                raise invalid([Finding("parameter_repeated", pointer([name]), f"the parameter {name!r} is repeated")])
            parameters[name] = value
        return parameters

    def _findings(self, parameters: Mapping[str, str]) -> list[Finding]:
        found: list[Finding] = []
        for name, value in parameters.items():
            field = self._fields.get(name)
            if field is None:
                found.append(Finding("parameter_unknown", pointer([name]), f"there is no parameter {name[:64]!r} here"))
                continue
            try:
                msgspec.convert(value, field.type, strict=False)
            except msgspec.ValidationError as cause:
                words = _words(field.type)
                text = f"{value[:64]!r} is not one of {words}" if words else str(cause)
                found.append(Finding("parameter_invalid", pointer([name]), text))
        for name, field in self._fields.items():
            if field.required and name not in parameters:
                words = _words(field.type)
                text = f"the parameter {name!r} is missing" + (f"; it is one of {words}" if words else "")
                found.append(Finding("parameter_missing", pointer([name]), text))
        return found


@cache
def _words(kind: Any) -> str:
    """Return the allowed values of an enumerated parameter; empty if it is not enumerated."""
    schema = msgspec.json.schema(kind)
    for choice in schema.get("anyOf", [schema]):
        if "enum" in choice:
            return ", ".join(choice["enum"])
    return ""


def finding_of(cause: msgspec.ValidationError) -> Finding:
    """Return msgspec's error as a finding, with its place as a JSON pointer."""
    text, _, path = str(cause).partition(" - at `$")
    place = path.rstrip("`").replace("[", "/").replace("]", "").replace(".", "/")
    return Finding("invalid_value", place, text)
