"""Reading a request: its body within bounds of size and time, its query, both into structs with every error named."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
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
    """The chunks of a body, as long as it is not larger than `limit`."""
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
    """The body of a request that has not come whole yet. That it comes in time is the connection's business."""
    declared_size(exchange.headers, limit)
    return b"".join([chunk async for chunk in chunks(exchange.receive, limit)])


def declared_size(headers: Mapping[bytes, bytes], limit: int) -> int | None:
    """The size a request says its body has; None when it is chunked."""
    if b"transfer-encoding" in headers:
        return None
    text = headers.get(b"content-length", b"0")
    size = int(text) if text.isdigit() else 0
    if size > limit:
        raise too_large(limit)
    return size


def too_large(limit: int) -> Declined:
    return Declined(413, "body_too_large", f"The body is larger than {limit:,} bytes.", headers=_CLOSE)


def check_media(headers: Mapping[bytes, bytes]) -> None:
    """Refuse a body that does not say it is JSON, or is packed."""
    if headers.get(b"content-type") == b"application/json" and b"content-encoding" not in headers:
        return
    media = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    if media != b"application/json":
        shown = media.decode("ascii", "replace")[:64] or "none"
        raise Declined(415, "media_type_unsupported", f"The body's content-type is {shown}, not application/json.")
    packing = headers.get(b"content-encoding", b"identity").strip().lower()
    if packing != b"identity":
        raise Declined(415, "content_encoding_unsupported", "Bodies are taken as they are, without compression.")


class BodyReader:
    """Turns bytes into one kind of struct."""

    def __init__(self, kind: Any) -> None:
        self._kind = kind
        self._checker: Checker | None = None

    def read(self, data: bytes, limit: int) -> Any:
        """The struct; JsonRefused (400) when it is not JSON, Declined (422) with everything that is wrong."""
        value = decode(data, size_limit=limit) if data else {}
        try:
            return msgspec.convert(value, self._kind)
        except msgspec.ValidationError as cause:
            if self._checker is None:
                self._checker = checker_of(msgspec.json.schema(self._kind))
            raise invalid(self._checker.findings(value) or [finding_of(cause)]) from None


class QueryReader:
    """Turns a query string into one kind of struct; without a kind, no parameter is known."""

    def __init__(self, kind: Any) -> None:
        self._kind = kind or Empty
        self._fields = {field.encode_name: field for field in msgspec.structs.fields(self._kind)}
        # Most requests have no query, and all of those the same one.
        needs_some = any(field.required for field in self._fields.values())
        self._without = None if needs_some else self._kind()

    def read(self, text: bytes) -> Any:
        if not text and self._without is not None:
            return self._without
        given = self._given(text) if text else {}
        try:
            return msgspec.convert(given, self._kind, strict=False)
        except msgspec.ValidationError as cause:
            raise invalid(self._findings(given) or [finding_of(cause)]) from None

    def _given(self, text: bytes) -> dict[str, str]:
        try:
            pairs = parse_qsl(text.decode("ascii"), keep_blank_values=True, max_num_fields=_PARAMETERS, errors="strict")
        except (ValueError, UnicodeDecodeError):
            raise Declined(400, "query_malformed", "The query string cannot be read.") from None
        given: dict[str, str] = {}
        for name, value in pairs:
            if name in given:
                raise invalid([Finding("parameter_repeated", pointer([name]), f"the parameter {name!r} stands twice")])
            given[name] = value
        return given

    def _findings(self, given: Mapping[str, str]) -> list[Finding]:
        found: list[Finding] = []
        for name, value in given.items():
            field = self._fields.get(name)
            if field is None:
                found.append(Finding("parameter_unknown", pointer([name]), f"there is no parameter {name[:64]!r} here"))
                continue
            try:
                msgspec.convert(value, field.type, strict=False)
            except msgspec.ValidationError as cause:
                found.append(Finding("parameter_invalid", pointer([name]), str(cause)))
        for name, field in self._fields.items():
            if field.required and name not in given:
                found.append(Finding("parameter_missing", pointer([name]), f"the parameter {name!r} is missing"))
        return found


def finding_of(cause: msgspec.ValidationError) -> Finding:
    """What msgspec found, with its place as a JSON pointer."""
    text, _, path = str(cause).partition(" - at `$")
    place = path.rstrip("`").replace("[", "/").replace("]", "").replace(".", "/")
    return Finding("invalid_value", place, text)
