"""Fetch JSON from a URL that a stranger gave, without becoming the stranger's tool.

The name is looked up once, every address it has is checked, and the connection goes to a checked address, with the
name kept for TLS and Host: nobody can answer one thing to the check and another to the call. No redirects, no
compression, a bound on bytes and on time over all. What goes wrong at a public address is told, because anybody can
call it. Everywhere else it is one flat refusal, so that an answer tells nothing about what is open, closed or there at
all behind this server.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cache
from ipaddress import ip_address
from socket import SOCK_STREAM
from typing import Any

import httptools
import msgspec

from redkey.errors import FetchRefused, JsonRefused
from redkey.services.addresses import Address, Target, is_public, read_target
from redkey.wire.decode import decode

# Where A2A 1.0 and the versions before it put the card of a site.
WELL_KNOWN = ("/.well-known/agent-card.json", "/.well-known/agent.json")
# Names that are this machine wherever they are looked up (RFC 6761), and what systems call it beside them.
_OF_THIS_MACHINE = frozenset({"localhost", "localhost.localdomain", "ip6-localhost", "ip6-loopback"})
_HEAD_LIMIT = 16 * 1024
_CHUNK = 16 * 1024
_NOT_HTTP = (httptools.HttpParserError, httptools.HttpParserUpgrade)

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]


class FetchPolicy(msgspec.Struct, frozen=True):
    """What may be called. With `private`, hosts of this machine and network too, there also by plain http."""

    private: bool = False
    ports: frozenset[int] = frozenset({443})
    seconds: float = 3.0
    bytes: int = 64 * 1024


class Fetched(msgspec.Struct, frozen=True):
    """The JSON that was found, and the URL that it was found at."""

    url: str
    value: Any


async def resolve(host: str, port: int) -> Sequence[str]:
    """The addresses of a name, as this machine looks it up."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=SOCK_STREAM)
    return list(dict.fromkeys(str(place[0]) for *_, place in found))


async def safe_fetch(
    url: str, policy: FetchPolicy, *, lookup: Resolve = resolve, tls: ssl.SSLContext | None = None
) -> Fetched:
    """The JSON at a URL, or at the well-known places of an origin; FetchRefused when there is none to be had."""
    target = read_target(url)
    check_static(target, policy)
    addresses: list[Address] = []
    why = ""
    try:
        async with asyncio.timeout(policy.seconds):
            addresses = await _addresses(target, policy, lookup)
            paths = WELL_KNOWN if target.is_origin else (target.path,)
            for path in paths:
                place = msgspec.structs.replace(target, path=path)
                body = await _get(place, addresses, policy, tls)
                if isinstance(body, bytes):
                    return Fetched(place.url, decode(body))
                why = body
    except (OSError, EOFError, TimeoutError, UnicodeError, JsonRefused, *_NOT_HTTP) as cause:
        raise _refusal(addresses, _reason(cause, policy)) from cause
    raise _refusal(addresses, why)


def _reason(cause: Exception, policy: FetchPolicy) -> str:
    """What went wrong on the way, in words."""
    if isinstance(cause, TimeoutError):
        return f"it did not answer within {policy.seconds:g} seconds"
    if isinstance(cause, JsonRefused):
        return f"it is not valid JSON ({cause.message})"
    if isinstance(cause, EOFError):
        return str(cause)
    if isinstance(cause, ssl.SSLError):
        return "its TLS certificate or handshake is not accepted"
    return "it could not be reached" if isinstance(cause, OSError) else "it does not speak HTTP"


def _refusal(addresses: Sequence[Address], why: str) -> FetchRefused:
    """Tell what is wrong at public addresses; of all others, and of names that lead nowhere, nothing."""
    if not why or not addresses or not all(map(is_public, addresses)):
        return _flat()
    return FetchRefused(f"No JSON document could be fetched from this URL: {why}.", code="fetch_failed")


async def safe_post(
    url: str,
    body: bytes,
    headers: Mapping[str, str],
    policy: FetchPolicy,
    *,
    lookup: Resolve = resolve,
    tls: ssl.SSLContext | None = None,
) -> int:
    """Send a body to a URL; the status of the answer, of which nothing else is read. FetchRefused when none came."""
    target = read_target(url)
    check_static(target, policy)
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    head = (
        f"POST {target.resource} HTTP/1.1\r\nHost: {target.authority}\r\nContent-Length: {len(body)}\r\n"
        f"User-Agent: redkey\r\nConnection: close\r\n{lines}\r\n"
    )
    try:
        async with asyncio.timeout(policy.seconds):
            reader, writer = await _connect(target, await _addresses(target, policy, lookup), tls)
            try:
                writer.write(head.encode("latin-1") + body)
                return await _read_status(reader)
            finally:
                writer.transport.abort()
    except (OSError, EOFError, TimeoutError, UnicodeError, *_NOT_HTTP) as cause:
        raise FetchRefused("No answer came from this URL.", code="fetch_failed") from cause


async def _read_status(reader: asyncio.StreamReader) -> int:
    answer = _Answer()
    parser = httptools.HttpResponseParser(answer)
    taken = 0
    while not answer.has_head:
        chunk = await reader.read(_CHUNK)
        taken += len(chunk)
        if not chunk or taken > _HEAD_LIMIT:
            raise EOFError("no answer")
        parser.feed_data(chunk)
    return int(parser.get_status_code())


def _flat() -> FetchRefused:
    return FetchRefused("No JSON document could be fetched from this URL.", code="fetch_failed")


def check_static(target: Target, policy: FetchPolicy) -> None:
    """What the URL alone decides may be told plainly: its sender knows it already."""
    if target.scheme != "https" and not policy.private:
        raise FetchRefused("The URL is refused: only https URLs are fetched.", code="url_refused")
    if target.port not in policy.ports and not policy.private:
        raise FetchRefused(f"The URL is refused: port {target.port} is not one that is called.", code="url_refused")
    if not policy.private and (target.host in _OF_THIS_MACHINE or target.host.endswith(".localhost")):
        raise FetchRefused("The URL is refused: the host is this machine.", code="url_refused")
    if target.address is not None and not _allowed(target, target.address, policy):
        raise FetchRefused("The URL is refused: the address is not a public one.", code="url_refused")


def _allowed(target: Target, address: Address, policy: FetchPolicy) -> bool:
    if is_public(address):
        # The ways of a private network stay in it: out of it only https goes, to the listed ports.
        return target.scheme == "https" and target.port in policy.ports
    return policy.private and not address.is_multicast and not address.is_unspecified


async def _addresses(target: Target, policy: FetchPolicy, lookup: Resolve) -> list[Address]:
    """The addresses to call. A name with one address that may not be called is not called at all."""
    if target.address is not None:
        return [target.address]
    # An address with a zone (fe80::1%eth0) is not an address here.
    found = [ip_address(text) for text in await lookup(target.host, target.port) if "%" not in text]
    if not found or not all(_allowed(target, address, policy) for address in found):
        raise _flat()
    return found


async def _get(
    target: Target, addresses: Sequence[Address], policy: FetchPolicy, tls: ssl.SSLContext | None
) -> bytes | str:
    """The body of a JSON answer; what is there instead when there is none."""
    reader, writer = await _connect(target, addresses, tls)
    try:
        writer.write(
            f"GET {target.resource} HTTP/1.1\r\nHost: {target.authority}\r\nAccept: application/json\r\n"
            "Accept-Encoding: identity\r\nUser-Agent: redkey\r\nConnection: close\r\n\r\n".encode("ascii")
        )
        return await _read(reader, policy.bytes)
    finally:
        # Not closed politely: a peer that never answers the goodbye would hold the connection.
        writer.transport.abort()


async def _connect(
    target: Target, addresses: Sequence[Address], tls: ssl.SSLContext | None
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    context = (tls or _trust()) if target.scheme == "https" else None
    name = target.host if context is not None else None
    for address in addresses[:-1]:
        try:
            return await asyncio.open_connection(str(address), target.port, ssl=context, server_hostname=name)
        except OSError:
            continue
    return await asyncio.open_connection(str(addresses[-1]), target.port, ssl=context, server_hostname=name)


@cache
def _trust() -> ssl.SSLContext:
    return ssl.create_default_context()


class _Answer:
    """What httptools tells of an answer."""

    def __init__(self) -> None:
        self.headers: dict[bytes, bytes] = {}
        self.body = bytearray()
        self.has_head = self.complete = False

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers[name.lower()] = value.strip()

    def on_headers_complete(self) -> None:
        self.has_head = True

    def on_body(self, body: bytes) -> None:
        self.body += body

    def on_message_complete(self) -> None:
        self.complete = True


async def _read(reader: asyncio.StreamReader, limit: int) -> bytes | str:
    answer = _Answer()
    parser = httptools.HttpResponseParser(answer)
    taken = 0
    while not answer.complete:
        chunk = await reader.read(_CHUNK)
        if not chunk:
            _check_ended(answer)
            break
        taken += len(chunk)
        # The bound is on what is read, so that neither endless headers nor chunks of nothing get past it.
        if taken > limit + _HEAD_LIMIT or len(answer.body) > limit:
            raise EOFError(f"it has more than {limit:,} bytes")
        parser.feed_data(chunk)
        if answer.has_head and (parser.get_status_code() != 200 or not _is_json(answer.headers)):
            return _instead(parser.get_status_code(), answer.headers)
    if len(answer.body) > limit:
        raise EOFError(f"it has more than {limit:,} bytes")
    return bytes(answer.body)


def _instead(status: int, headers: dict[bytes, bytes]) -> str:
    """What is at a place that has no JSON."""
    if 300 <= status < 400:
        return f"it answers with a redirect ({status}), which is not followed"
    if status != 200:
        return f"it answers with status {status}"
    media = headers.get(b"content-type", b"")[:64].decode("latin-1")
    return f"its content type is {media!r}, not JSON" if media else "it states no content type"


def _check_ended(answer: _Answer) -> None:
    """A body without a stated length ends with the connection; one with a length was cut off."""
    if not answer.has_head or b"content-length" in answer.headers or b"transfer-encoding" in answer.headers:
        raise EOFError("its answer was cut off")


def _is_json(headers: dict[bytes, bytes]) -> bool:
    media = headers.get(b"content-type", b"").split(b";")[0].strip().lower()
    plain = headers.get(b"content-encoding", b"identity").lower() == b"identity"
    return plain and (media == b"application/json" or (media.startswith(b"application/") and media.endswith(b"+json")))
