"""Parse the head of a request: request line and headers, as strictly as h11 does.

Parsers that disagree about where a request ends let one caller speak for another behind a proxy. So whatever is
ambiguous is refused: bare CR or LF, folded lines, two framings of one body, repeated headers that name one thing.
The parser is our own because llhttp drops the body of a request that offers an upgrade (Java's HTTP client offers
one with every first request), does not bound trailers, and cannot say how large a head was.

A caller sends the same header lines with every request. Lines that were checked are looked up the next time.
"""

from __future__ import annotations

import re
from urllib.parse import unquote

import msgspec

from redkey.http.problems import Declined

HEAD_BYTES = 32 * 1024
HEADERS = 64

# What a line may consist of: tab, printable ASCII, and bytes beyond ASCII.
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
_METHODS = {name: name.decode() for name in b"GET HEAD POST PUT PATCH DELETE OPTIONS".split()}
# Header lines that were checked -> name in lower case, value. Emptied when it is full.
_checked: dict[bytes, tuple[bytes, bytes]] = {}
_CHECKED_LINES = 4096
_CHECKED_BYTES = 256
# Other every time, so keeping it would only drive the others out.
_NEVER_KEPT = b"idempotency-key"


class Head(msgspec.Struct, frozen=True, gc=False):
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
    parts = lines[0].split(b" ")
    if len(parts) != 3 or lines[0].translate(None, _TEXT):
        raise malformed("the first line is not a method, a target and a version")
    method, target, version = parts
    chunks = version == b"HTTP/1.1"
    if not chunks and version != b"HTTP/1.0":
        _check_lines(lines)
        if not _VERSION.fullmatch(version):
            raise malformed("the first line is not a method, a target and a version")
        raise Declined(505, "http_version_unsupported", f"This server speaks HTTP/1.1, not {version.decode()}.")
    if len(lines) - 1 > HEADERS:
        _check_lines(lines)
        raise Declined(431, "headers_too_large", f"The request has more than {HEADERS} headers.")
    headers: dict[bytes, bytes] = {}
    for line in lines[1:]:
        name, value = _checked.get(line) or _check(line)
        if name in headers:
            if name in _ONCE:
                _check_lines(lines)
                raise Declined(400, "header_repeated", f"The header {name.decode()} may be sent only once.")
            value = headers[name] + b", " + value
        headers[name] = value
    if chunks and b"host" not in headers:
        raise malformed("the Host header is missing")
    path, query = _target(target)
    keep_alive = chunks
    if b"connection" in headers:
        keep_alive = chunks and b"close" not in [one.strip() for one in headers[b"connection"].lower().split(b",")]
    length: int | None = int(headers.get(b"content-length", b"0"))
    if b"transfer-encoding" in headers:
        _check_chunked(headers, chunks)
        length = None
    return Head(_METHODS.get(method) or _method(method), path, query, headers, length, keep_alive, chunks)


def malformed(reason: str) -> Declined:
    """Refuse bytes that are not a request."""
    return Declined(400, "http_malformed", f"The request is not HTTP/1.1: {reason}.")


def is_hopeless(part: bytes) -> bool:
    """True when no bytes that follow can make this part of a head valid, so there is no use in waiting for them."""
    rest = part.translate(None, _TEXT)
    # The last line may have its CR and not yet its LF.
    return rest.removesuffix(b"\r") != b"\r\n" * part.count(b"\n")


def _check_lines(lines: list[bytes]) -> None:
    """Look for forbidden characters first, whatever else is wrong: a head that is cut into segments is refused for
    them before it is whole, and cuts must not change an answer."""
    if any(line.translate(None, _TEXT) for line in lines):
        raise malformed("a control character, or a line that does not end with CR LF")


def _check(line: bytes) -> tuple[bytes, bytes]:
    """Check a header line; its name in lower case, and its value."""
    if line.translate(None, _TEXT):
        raise malformed("a control character, or a line that does not end with CR LF")
    raw, colon, value = line.partition(b":")
    if not colon or not _TOKEN.fullmatch(raw):
        raise malformed("a header is not a name, a colon and a value")
    name, value = raw.lower(), value.strip(b" \t")
    if name == b"host" and not _HOST.fullmatch(value):
        raise malformed("the Host header is not a host and port")
    if name == b"content-length" and not (value.isdigit() and len(value) <= 18):
        raise malformed("the Content-Length is not a number")
    if name != _NEVER_KEPT and len(line) <= _CHECKED_BYTES:
        if len(_checked) >= _CHECKED_LINES:
            _checked.clear()
        _checked[line] = name, value
    return name, value


def _method(method: bytes) -> str:
    if not _TOKEN.fullmatch(method):
        raise malformed("the method is not a token")
    return method.decode()


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


def _check_chunked(headers: dict[bytes, bytes], chunks: bool) -> None:
    """Check that a body with a Transfer-Encoding is chunked, and nothing else."""
    if b"content-length" in headers:
        raise malformed("a body has a Content-Length or a Transfer-Encoding, not both")
    if not chunks:
        raise malformed("HTTP/1.0 has no Transfer-Encoding")
    if headers[b"transfer-encoding"].lower() != b"chunked":
        raise Declined(501, "transfer_encoding_unsupported", "Bodies are sent as they are, or chunked.")
