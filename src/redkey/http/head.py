"""Parse the head of a request: request line and headers, as strictly as h11 does.

Parsers that disagree about where a request ends let one caller speak for another behind a proxy. So whatever is
ambiguous is refused: bare CR or LF, folded lines, two framings of one body, repeated headers that name one thing.
The parser is our own because llhttp drops the body of a request that offers an upgrade (Java's HTTP client offers
one with every first request), does not bound trailers, and cannot say how large a head was.
"""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import unquote

from redkey.http.problems import Declined

HEAD_BYTES = 32 * 1024
HEADERS = 64

# What a head may consist of beside its line ends: tab, printable ASCII, and bytes beyond ASCII.
_TEXT = bytes([0x09, *range(0x20, 0x7F), *range(0x80, 0x100)])
_TOKEN = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_VERSION = re.compile(rb"HTTP/[0-9]\.[0-9]")
_HOST = re.compile(rb"[A-Za-z0-9._~%!$&'()*+,;=\-]*(:[0-9]*)?|\[[0-9A-Fa-f:.]+\](:[0-9]*)?")
_ABSOLUTE = re.compile(rb"https?://[^/?#]*", re.IGNORECASE)
# A second one of these could mean another caller, body or request than the first.
_ONCE = frozenset(
    b"host authorization content-length transfer-encoding content-type content-encoding "
    b"idempotency-key last-event-id expect origin".split()
)
# Header names as they come -> in lower case. Callers use few, so most are looked up and not checked again.
_names: dict[bytes, bytes] = {}
_NAMES_KEPT = 1024
_NAME_LENGTH = 64


class Head(NamedTuple):
    """What the head of a request says. `length` is the size of the body, None when it is chunked."""

    method: str
    path: str
    query: bytes
    headers: dict[bytes, bytes]
    length: int | None
    keep_alive: bool
    # False for HTTP/1.0, which does not know chunked answers.
    chunks: bool


def parse_head(block: bytes) -> Head:
    """Parse a head without the empty line that ends it; raises Declined."""
    lines = block.split(b"\r\n")
    if block.translate(None, _TEXT) != b"\r\n" * (len(lines) - 1):
        raise malformed("a control character, or a line that does not end with CR LF")
    parts = lines[0].split(b" ")
    if len(parts) != 3 or not _VERSION.fullmatch(parts[2]):
        raise malformed("the first line is not a method, a target and a version")
    method, target, version = parts
    if version not in (b"HTTP/1.1", b"HTTP/1.0"):
        shown = version.decode()
        raise Declined(505, "http_version_unsupported", f"This server speaks HTTP/1.1, not {shown}.")
    if not _TOKEN.fullmatch(method):
        raise malformed("the method is not a token")
    if len(lines) - 1 > HEADERS:
        raise Declined(431, "headers_too_large", f"The request has more than {HEADERS} headers.")
    headers = _headers(lines)
    current = version == b"HTTP/1.1"
    host = headers.get(b"host")
    if host is None and current:
        raise malformed("the Host header is missing")
    if host is not None and not _HOST.fullmatch(host):
        raise malformed("the Host header is not a host and port")
    path, query = _target(target)
    keep_alive = current
    connection = headers.get(b"connection")
    if connection is not None and b"close" in connection.lower():
        keep_alive = b"close" not in [option.strip() for option in connection.lower().split(b",")] and current
    return Head(method.decode(), path, query, headers, _length(headers, current), keep_alive, current)


def malformed(reason: str) -> Declined:
    """Refuse bytes that are not a request."""
    return Declined(400, "http_malformed", f"The request is not HTTP/1.1: {reason}.")


def is_hopeless(part: bytes) -> bool:
    """True when no bytes that follow can make this part of a head valid, so there is no use in waiting for them."""
    rest = part.translate(None, _TEXT)
    # The last line may have its CR and not yet its LF.
    return rest.removesuffix(b"\r") != b"\r\n" * part.count(b"\n")


def _headers(lines: list[bytes]) -> dict[bytes, bytes]:
    headers: dict[bytes, bytes] = {}
    for line in lines[1:]:
        raw, colon, value = line.partition(b":")
        name = _names.get(raw) or _checked(raw)
        if not colon:
            raise malformed("a header has no colon")
        value = value.strip(b" \t")
        if name in headers:
            if name in _ONCE:
                raise Declined(400, "header_repeated", f"The header {name.decode()} may be sent only once.")
            value = headers[name] + b", " + value
        headers[name] = value
    return headers


def _checked(raw: bytes) -> bytes:
    if not _TOKEN.fullmatch(raw):
        raise malformed("a header name is not a token, or has white space around it")
    name = raw.lower()
    if len(_names) < _NAMES_KEPT and len(raw) <= _NAME_LENGTH:
        _names[raw] = name
    return name


def _target(target: bytes) -> tuple[str, bytes]:
    """Split a request target into its decoded path and its raw query."""
    if not target.isascii() or b"#" in target:
        raise malformed("the target has a fragment or characters beyond ASCII")
    if not target.startswith(b"/"):
        absolute = _ABSOLUTE.match(target)
        if absolute is not None:
            target = target[absolute.end() :]
            if not target.startswith(b"/"):
                target = b"/" + target
        elif target != b"*":
            raise malformed("the target is neither a path nor an http URL")
    raw, _, query = target.partition(b"?")
    path = raw.decode("ascii")
    return unquote(path) if "%" in path else path, query


def _length(headers: dict[bytes, bytes], current: bool) -> int | None:
    length = headers.get(b"content-length")
    if b"transfer-encoding" not in headers:
        if length is None:
            return 0
        if not length.isdigit() or len(length) > 18:
            raise malformed("the Content-Length is not a number")
        return int(length)
    if length is not None:
        raise malformed("a body has a Content-Length or a Transfer-Encoding, not both")
    if not current:
        raise malformed("HTTP/1.0 has no Transfer-Encoding")
    if headers[b"transfer-encoding"].lower() != b"chunked":
        raise Declined(501, "transfer_encoding_unsupported", "Bodies are sent as they are, or chunked.")
    return None
