"""Fetch JSON from a URL of an untrusted caller, without letting the caller reach private hosts through this server.

The name is resolved once, every address is checked, and the connection goes to a checked address, with the name kept
for TLS and Host: a DNS server cannot return one address to the check and another to the request. There are no
redirects, no compression, and limits on bytes and total time. Failures at a public address are explained, because the
caller could call it directly. All other failures get one plain refusal, so that it does not reveal what is open, closed
or reachable behind this server.
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
# Names of this machine wherever they are resolved (RFC 6761), and other names that systems use for it.
_OF_THIS_MACHINE = frozenset({"localhost", "localhost.localdomain", "ip6-localhost", "ip6-loopback"})
_HEAD_LIMIT = 16 * 1024
_CHUNK = 16 * 1024
_NOT_HTTP = (httptools.HttpParserError, httptools.HttpParserUpgrade)

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]


class FetchPolicy(msgspec.Struct, frozen=True):
    """Which URLs may be called. With `private`, also hosts of this machine and network, also by plain http."""

    private: bool = False
    ports: frozenset[int] = frozenset({443})
    seconds: float = 3.0
    bytes: int = 64 * 1024


class Fetched(msgspec.Struct, frozen=True):
    """The JSON that was found, and the URL where it was found."""

    url: str
    value: Any


async def resolve(host: str, port: int) -> Sequence[str]:
    """Resolve a name as this machine does."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=SOCK_STREAM)
    return list(dict.fromkeys(str(place[0]) for *_, place in found))


async def safe_fetch(
    url: str, policy: FetchPolicy, *, lookup: Resolve = resolve, tls: ssl.SSLContext | None = None
) -> Fetched:
    """Return the JSON at a URL, or at the well-known paths of an origin; FetchRefused if there is none."""
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
    """Describe a network failure in words."""
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
    """Return a refusal that explains failures at public addresses; of others, and unknown names, it reveals nothing."""
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
    """Send a body to a URL; return the status of the response, of which nothing else is read. FetchRefused if none
    came.
    """
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
    detail = "its host has no public address, or none that is known here"
    return FetchRefused(f"No JSON document could be fetched from this URL: {detail}.", code="fetch_failed")


def check_static(target: Target, policy: FetchPolicy) -> None:
    """FetchRefused if the URL alone shows that it may not be called; its sender may see the reason."""
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
        # Requests may use http and any port inside a private network; outside of it only https to the listed ports.
        return target.scheme == "https" and target.port in policy.ports
    return policy.private and not address.is_multicast and not address.is_unspecified


async def _addresses(target: Target, policy: FetchPolicy, lookup: Resolve) -> list[Address]:
    """Resolve the addresses to call. A name with one forbidden address is not called at all."""
    if target.address is not None:
        return [target.address]
    # An address with a zone (fe80::1%eth0) is not accepted.
    found = [ip_address(text) for text in await lookup(target.host, target.port) if "%" not in text]
    if not found or not all(_allowed(target, address, policy) for address in found):
        raise _flat()
    return found


async def _get(
    target: Target, addresses: Sequence[Address], policy: FetchPolicy, tls: ssl.SSLContext | None
) -> bytes | str:
    """Return the body of a JSON response; if there is none, the reason."""
    reader, writer = await _connect(target, addresses, tls)
    try:
        writer.write(
            f"GET {target.resource} HTTP/1.1\r\nHost: {target.authority}\r\nAccept: application/json\r\n"
            "Accept-Encoding: identity\r\nUser-Agent: redkey\r\nConnection: close\r\n\r\n".encode("ascii")
        )
        return await _read(reader, policy.bytes)
    finally:
        # Closed without a TLS goodbye: a peer that never answers it would hold the connection.
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
    """The callbacks of httptools for one response."""

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
        # The limit is on bytes read, so that endless headers or empty chunks cannot pass it.
        if taken > limit + _HEAD_LIMIT or len(answer.body) > limit:
            raise EOFError(f"it has more than {limit:,} bytes")
        parser.feed_data(chunk)
        if answer.has_head and (parser.get_status_code() != 200 or not _is_json(answer.headers)):
            return _instead(parser.get_status_code(), answer.headers)
    if len(answer.body) > limit:
        raise EOFError(f"it has more than {limit:,} bytes")
    return bytes(answer.body)


def _instead(status: int, headers: dict[bytes, bytes]) -> str:
    """Describe what a URL without JSON returns."""
    if 300 <= status < 400:
        return f"it answers with a redirect ({status}), which is not followed"
    if status != 200:
        return f"it answers with status {status}"
    media = headers.get(b"content-type", b"")[:64].decode("latin-1")
    return f"its content type is {media!r}, not JSON" if media else "it states no content type"


def _check_ended(answer: _Answer) -> None:
    """EOFError if the response was cut off; without a stated length the body ends with the connection."""
    if not answer.has_head or b"content-length" in answer.headers or b"transfer-encoding" in answer.headers:
        raise EOFError("its answer was cut off")


def _is_json(headers: dict[bytes, bytes]) -> bool:
    media = headers.get(b"content-type", b"").split(b";")[0].strip().lower()
    plain = headers.get(b"content-encoding", b"identity").lower() == b"identity"
    return plain and (media == b"application/json" or (media.startswith(b"application/") and media.endswith(b"+json")))
