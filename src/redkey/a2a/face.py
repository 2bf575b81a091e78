"""What both HTTP bindings of A2A share: authentication, version, body, replies and event streams."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Mapping
from functools import cache, lru_cache
from typing import Any, TypeVar
from urllib.parse import parse_qs

import msgspec
import structlog

from redkey.a2a.call import EXTENSIONS, Call, Event
from redkey.a2a.errors import A2aError, invalid, refused, translated
from redkey.api.auth import Authenticator
from redkey.errors import RedKeyError
from redkey.http.event_stream import event_frame, send_frames
from redkey.http.exchange import Exchange, header_lines
from redkey.http.request import finding_of, read_body
from redkey.http.security import SECURITY
from redkey.services.caller import LARGE_BYTES, Caller, Pending
from redkey.services.costs import cost_of_bytes
from redkey.services.means import Means
from redkey.services.outcome import Outcome
from redkey.wire.decode import decode

Headers = list[tuple[bytes, bytes]]
Request = TypeVar("Request")

VERSION = "1.0"
_VERSION = re.compile(r"([0-9]{1,3}\.[0-9]{1,3})(?:\.[0-9]{1,6})?")
_ANSWERS = (b"application/json", b"application/a2a+json")
_log = structlog.get_logger("redkey.a2a")
_encode = msgspec.json.Encoder().encode


class Face:
    """Authenticates callers and reads their requests."""

    def __init__(self, means: Means, authenticator: Authenticator) -> None:
        self.means, self._authenticator = means, authenticator

    def admit(self, headers: Mapping[bytes, bytes], address: str, tenant: str = "") -> Call:
        """Authenticate the caller from headers or metadata; Declined without a valid key."""
        principal, _ = self._authenticator.admit(headers, address, reads=False)
        caller, beside = Caller(self.means), Caller(self.means)
        caller.authenticated(principal)
        beside.authenticated(principal)
        requested = _text(headers, b"a2a-extensions") or _text(headers, b"x-a2a-extensions")
        return Call(
            caller,
            beside,
            tenant,
            _idempotency_key(headers),
            _text(headers, b"last-event-id")[:64],
            frozenset(uri for uri in map(str.strip, requested.split(",")) if uri in EXTENSIONS),
        )

    def call(self, exchange: Exchange, tenant: str = "") -> Call:
        """Authenticate the caller of an HTTP request."""
        call = self.admit(exchange.headers, exchange.connection.address, tenant)
        exchange.connection.authenticated()
        return call

    async def body(self, exchange: Exchange, caller: Caller, *, optional: bool = False) -> Any:
        """Read and decode the JSON body, up to the server's size limit; an optional body may be empty."""
        data, limit = await self.received(exchange), self.means.config.limits.body_bytes
        if optional and not data:
            return {}
        check_media(exchange)
        caller.body_bytes = len(data)
        if not caller.is_large:
            return decode(data, size_limit=limit)
        caller.charge(cost_of_bytes(len(data)))
        return await caller.beside(lambda: decode(data, size_limit=limit))

    async def received(self, exchange: Exchange) -> bytes:
        """Read the raw body, up to the server's size limit."""
        limit = self.means.config.limits.body_bytes
        data = exchange.take_whole(limit)
        return await read_body(exchange, limit) if data is None else data

    def begin(self, exchange: Exchange, tenant: str) -> tuple[Call, Any] | None:
        """Return caller and JSON of a small request that has arrived completely; None for any other request."""
        size = exchange.headers.get(b"content-length", b"")
        if not size.isdigit() or int(size) > LARGE_BYTES or exchange.more:
            return None
        call = self.call(exchange, tenant)
        data = exchange.take_whole(LARGE_BYTES) or b""
        check_media(exchange)
        call.caller.body_bytes = len(data)
        return call, decode(data, size_limit=LARGE_BYTES)

    def send(
        self,
        exchange: Exchange,
        call: Call,
        pending: Pending[Any],
        answer: Callable[[Any], None],
        fail: Callable[[Exception], None],
    ) -> None:
        """Submit a command; call `answer` with its reply once it is durable, or `fail` with the error."""

        def done(outcome: Outcome | RedKeyError) -> None:
            try:
                if not isinstance(outcome, Outcome):
                    raise outcome
                answer(call.caller.take(outcome).reply)
            except Exception as error:
                fail(error)

        call.caller.enqueue(pending, done)


def check_media(exchange: Exchange) -> None:
    """Refuse a body that is not JSON."""
    media = exchange.headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    if media not in _ANSWERS or b"content-encoding" in exchange.headers:
        shown = media.decode("ascii", "replace")[:64] or "none"
        raise refused("ContentTypeNotSupportedError", f"The body's content-type is {shown}, not application/json.")


def version_of(headers: Mapping[bytes, bytes], query: bytes = b"") -> str:
    """Return the A2A version of a request; `0.3` if it names none."""
    stated = _text(headers, b"a2a-version")
    if not stated and query:
        stated = parse_qs(query.decode("latin-1")).get("A2A-Version", [""])[0]
    return stated.strip() or "0.3"


def is_older(version: str) -> bool:
    """Return whether the version is 0.3; the patch number is ignored."""
    return _minor_of(version) == "0.3"


def check_version(version: str) -> None:
    """Refuse versions other than 1.0; a different minor number is a different version."""
    if _minor_of(version) != VERSION:
        text = f"A2A {version[:16]} is not spoken here: send A2A-Version: {VERSION}, or 0.3 where the card offers it."
        raise refused("VersionNotSupportedError", text)


def check_older(version: str) -> None:
    """Refuse versions other than 0.3."""
    if not is_older(version):
        raise refused("VersionNotSupportedError", f"A2A {version[:16]} is not spoken here; 0.3 is.")


@lru_cache(64)
def _minor_of(version: str) -> str:
    """Return major and minor number of a version; empty if the text is not a version."""
    found = _VERSION.fullmatch(version)
    return found[1] if found is not None else ""


def converted(value: Any, kind: type[Request]) -> Request:
    """Convert JSON values to a request struct; InvalidParams names the wrong field."""
    try:
        return msgspec.convert(value, kind, strict=False)
    except msgspec.ValidationError as cause:
        finding = finding_of(cause)
        problem = (finding.pointer.lstrip("/").replace("/", "."), finding.message)
        raise refused("InvalidParamsError", "The parameters of the request are not valid.", problem) from None


def extension_headers(call: Call | None) -> Headers:
    """Return the header that lists the extensions used by the answer."""
    return [(b"a2a-extensions", ", ".join(sorted(call.extensions)).encode())] if call and call.extensions else []


def reply(exchange: Exchange, status: int, value: Any, media: str, headers: Headers) -> None:
    """Answer with JSON."""
    head = _common_head(media)
    exchange.reply(status, head + header_lines(headers) if headers else head, _encode(value))


@cache
def _common_head(media: str) -> bytes:
    """Return the header lines that every answer with this media type has."""
    return header_lines([(b"content-type", media.encode()), *SECURITY])


async def stream(
    exchange: Exchange,
    events: AsyncIterator[Event],
    wrap: Callable[[dict[str, Any]], Any],
    fail: Callable[[A2aError], Any],
    headers: Headers,
    quiet_seconds: float,
) -> None:
    """Stream events as they arrive. An error before the first event is raised; a later one is sent as an event."""
    first = await anext(aiter(events))

    def frame(event: Event) -> bytes:
        return event_frame(event.id, _encode(wrap(event.found)))

    async def frames() -> AsyncIterator[bytes]:
        yield frame(first)
        try:
            async for event in events:
                yield frame(event)
        except Exception as error:
            failure = translated(error)
            if failure.kind.http >= 500:
                _log.error("a stream failed", path=exchange.path, exc_info=error)
            yield event_frame("", _encode(fail(failure)), "error")

    await send_frames(exchange, frames(), headers=headers, quiet_seconds=quiet_seconds)


def report(exchange: Exchange, error: Exception, failure: A2aError) -> None:
    """Log errors of the server itself."""
    if failure.kind.http >= 500 and failure.kind.http != 503:
        _log.error("request failed", path=exchange.path, exc_info=error)


def _text(headers: Mapping[bytes, bytes], name: bytes) -> str:
    return headers.get(name, b"").decode("latin-1").strip()


def _idempotency_key(headers: Mapping[bytes, bytes]) -> str:
    key = _text(headers, b"idempotency-key")
    if len(key) > 255 or not (key.isascii() and key.isprintable()):
        raise invalid("The idempotency key cannot be used.", "Idempotency-Key", "1 to 255 printable ASCII characters")
    return key
