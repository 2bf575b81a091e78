"""Parse the head of a request, which is the request line and the headers, as strictly as h11 does.

If a proxy and this server disagree about where a request ends, one client can smuggle a request into the connection of
another. So everything ambiguous is refused: bare CR or LF, folded lines, a body with both Content-Length and
Transfer-Encoding, duplicates of headers that may occur once. RedKey has its own parser because llhttp drops the body of
a request that offers an upgrade (Java's HTTP client offers one with every first request), does not limit trailers, and
does not report the size of a head.

Most clients send the same headers with every request, except for the Idempotency-Key. So checked headers are cached:
the whole block of header lines, and single lines for blocks that are new.
"""

from __future__ import annotations

import re
from urllib.parse import unquote

import msgspec

from redkey.http.problems import Declined

HEAD_BYTES = 32 * 1024
HEADERS = 64

# The bytes allowed in a line: tab, printable ASCII, and bytes beyond ASCII.
_TEXT = bytes([0x09, *range(0x20, 0x7F), *range(0x80, 0x100)])
_TOKEN = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_VERSION = re.compile(rb"HTTP/[0-9]\.[0-9]")
_HOST = re.compile(rb"[A-Za-z0-9._~%!$&'()*+,;=\-]*(:[0-9]*)?|\[[0-9A-Fa-f:.]+\](:[0-9]*)?")
_ABSOLUTE = re.compile(rb"https?://[^/?#]*", re.IGNORECASE)
# Headers that may occur once: a second one could name another key, body or request.
_ONCE = frozenset(
    b"host authorization content-length transfer-encoding content-type content-encoding "
    b"idempotency-key last-event-id expect origin".split()
)
_METHODS = {name: name.decode() for name in b"GET HEAD POST PUT PATCH DELETE OPTIONS".split()}
# Checked header lines -> lower-case name and value. Cleared when full.
_checked: dict[bytes, tuple[bytes, bytes]] = {}
_CHECKED_LINES = 4096
_CHECKED_BYTES = 256
# Different in every request, so caching it would only evict other lines.
_NEVER_KEPT = b"idempotency-key"
_KEY_LINE = b"\r\nidempotency-key: "
# The characters of a path that needs no decoding, and of a query.
_PATH = b"/-._~:@ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
_QUERY = bytes(set(range(0x21, 0x7F)) - set(b"#"))


class Head(msgspec.Struct, frozen=True, gc=False):
    """The parsed head of a request. `length` is the size of the body, None if it is chunked."""

    method: str
    path: str
    query: bytes
    headers: dict[bytes, bytes]
    length: int | None
    keep_alive: bool
    # Whether the client accepts chunked answers; HTTP/1.0 does not.
    chunks: bool


class _Fields(msgspec.Struct, frozen=True, gc=False):
    """The parsed header lines of an HTTP/1.1 request, without its Idempotency-Key."""

    headers: dict[bytes, bytes]
    length: int | None
    keep_alive: bool


# Checked blocks of header lines, without the Idempotency-Key. Cleared when full.
_blocks: dict[bytes, _Fields] = {}
_BLOCKS = 4096
_BLOCK_BYTES = 1024


def parse_head(block: bytes) -> Head:
    """Parse a head, given without the empty line that ends it; raise Declined if it is invalid."""
    start = block.find(b"\r\n")
    key_at = block.find(_KEY_LINE, start)
    if key_at < 0:
        lines, key = block[start:], None
    else:
        end = block.find(b"\r\n", key_at + 2)
        lines = block[start:key_at] + block[end:] if end >= 0 else block[start:key_at]
        key = block[key_at + len(_KEY_LINE) : end if end >= 0 else None]
    fields = _blocks.get(lines)
    if fields is not None:
        parts = block[:start].split(b" ")
        if len(parts) == 3 and parts[2] == b"HTTP/1.1":
            method, (path, _, query) = _METHODS.get(parts[0]), parts[1].partition(b"?")
            plain = path.startswith(b"/") and not path.translate(None, _PATH) and not query.translate(None, _QUERY)
            if method is not None and plain and (key is None or not key.translate(None, _TEXT)):
                headers = fields.headers
                if key is not None:
                    headers = {**headers, _NEVER_KEPT: key.strip(b" \t")}
                return Head(method, path.decode(), query, headers, fields.length, fields.keep_alive, chunks=True)
    head = _parse(block)
    if head.chunks and len(lines) <= _BLOCK_BYTES and lines.count(b"\r\n") < HEADERS:
        known = head.headers
        if key is not None:
            known = {name: value for name, value in known.items() if name != _NEVER_KEPT}
        if _NEVER_KEPT not in known:
            if len(_blocks) >= _BLOCKS:
                _blocks.clear()
            _blocks[lines] = _Fields(known, head.length, head.keep_alive)
    return head


def _parse(block: bytes) -> Head:
    """Parse a head that is not cached."""
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
        keep_alive = chunks and b"close" not in [
            option.strip() for option in headers[b"connection"].lower().split(b",")
        ]
    length: int | None = int(headers.get(b"content-length", b"0"))
    if b"transfer-encoding" in headers:
        _check_chunked(headers, chunks)
        length = None
    return Head(_METHODS.get(method) or _method(method), path, query, headers, length, keep_alive, chunks)


def malformed(reason: str) -> Declined:
    """Return the refusal of bytes that are not a valid request."""
    return Declined(400, "http_malformed", f"The request is not HTTP/1.1: {reason}.")


def is_hopeless(part: bytes) -> bool:
    """Return whether this part of a head is invalid whatever bytes follow, so that waiting for more is useless."""
    rest = part.translate(None, _TEXT)
    # The CR of the last line may have arrived without its LF.
    return rest.removesuffix(b"\r") != b"\r\n" * part.count(b"\n")


def _check_lines(lines: list[bytes]) -> None:
    """Check all lines for forbidden characters before any other error is reported.

    A head that arrives in segments is refused for them before it is complete, and segmentation must not change the
    answer.
    """
    if any(line.translate(None, _TEXT) for line in lines):
        raise malformed("a control character, or a line that does not end with CR LF")


def _check(line: bytes) -> tuple[bytes, bytes]:
    """Check a header line; return its lower-case name and its value."""
    if line.translate(None, _TEXT):
        raise malformed("a control character, or a line that does not end with CR LF")
    raw, colon, value = line.partition(b":")
    if not colon or not _TOKEN.fullmatch(raw):
        raise malformed("a header line is not a name, a colon and a value")
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
    """Check that the only Transfer-Encoding is chunked."""
    if b"content-length" in headers:
        raise malformed("the request has both a Content-Length and a Transfer-Encoding")
    if not chunks:
        raise malformed("HTTP/1.0 has no Transfer-Encoding")
    if headers[b"transfer-encoding"].lower() != b"chunked":
        raise Declined(501, "transfer_encoding_unsupported", "The only supported Transfer-Encoding is chunked.")
