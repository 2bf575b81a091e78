"""Serve static files, each with its headers, an ETag and a gzip form that is computed in advance.

The files are small and few (pages, scripts, documents), so they are kept in memory: an answer reads no disk, and all
answers share the same bytes.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Mapping
from hashlib import sha256
from importlib.resources.abc import Traversable
from mimetypes import guess_type

import msgspec

from redkey.http.exchange import Exchange, header_lines
from redkey.http.security import SECURITY

# A smaller file fits into one packet, so compression saves nothing.
_COMPRESSED_FROM = 1024
_TEXT_TYPES = ("text/", "application/json", "application/javascript", "application/manifest+json", "image/svg+xml")
Pairs = Iterable[tuple[bytes, bytes]]
# Caches may keep a file, and must check each time whether it has changed.
_REVALIDATE = (b"cache-control", b"no-cache")
INDEX = "index.html"


class File(msgspec.Struct, frozen=True):
    """One file, ready to send. `packed` is its gzip form; empty if that is not smaller."""

    body: bytes
    etag: bytes
    head: bytes
    packed: bytes = b""

    def send(self, exchange: Exchange) -> int:
        """Answer a GET or HEAD with this file, or with 304 if the client's copy is current; return the status."""
        if _matches(exchange.headers.get(b"if-none-match", b""), self.etag):
            exchange.reply(304, self.head, b"")
            return 304
        if self.packed and _accepts_gzip(exchange.headers.get(b"accept-encoding", b"")):
            exchange.reply(200, self.head + b"content-encoding: gzip\r\n", self.packed)
        else:
            exchange.reply(200, self.head, self.body)
        return 200


def make_file(body: bytes, media: str, *, headers: Pairs = (), packed: bytes | None = None) -> File:
    """Prepare a file; `headers` replace defaults of the same name, `packed` is a gzip form that already exists."""
    if packed is None:
        packed = b""
        if len(body) >= _COMPRESSED_FROM and media.startswith(_TEXT_TYPES):
            packed = gzip.compress(body, 9, mtime=0)
    if len(packed) >= len(body):
        packed = b""
    etag = b'"%b"' % sha256(body).hexdigest()[:32].encode()
    own = dict(headers)
    lines = dict([*SECURITY, _REVALIDATE]) | own
    # Both forms have the same ETag: they are the same file in different encodings.
    lines |= {b"content-type": media.encode(), b"etag": etag, b"vary": b"accept-encoding"}
    return File(body, etag, header_lines(lines.items()), packed)


class Files:
    """The files of a folder by path; a path that ends with a slash gets the index.html below it."""

    def __init__(
        self, root: Traversable, *, headers: Mapping[str, Iterable[tuple[bytes, bytes]]] | None = None
    ) -> None:
        """Load the files; `headers` maps path prefixes to additional headers, and the longest prefix wins."""
        self._rules = sorted((headers or {}).items(), key=lambda rule: -len(rule[0]))
        self._files: dict[str, File] = {}
        self._read(root, "")

    def find(self, path: str) -> File | None:
        """Return the file at a path below the folder; None if there is none."""
        name = path.removeprefix("/")
        return self._files.get(f"{name}{INDEX}" if not name or name.endswith("/") else name)

    def _read(self, folder: Traversable, prefix: str) -> None:
        entries = {entry.name: entry for entry in folder.iterdir()}
        for name, entry in sorted(entries.items()):
            path = prefix + name
            if entry.is_dir():
                self._read(entry, f"{path}/")
            elif not name.endswith(".gz") or name.removesuffix(".gz") not in entries:
                own = next((headers for start, headers in self._rules if path.startswith(start)), ())
                packed = entries[f"{name}.gz"].read_bytes() if f"{name}.gz" in entries else None
                self._files[path] = make_file(entry.read_bytes(), _media(name), headers=own, packed=packed)


def _media(name: str) -> str:
    media = guess_type(name)[0] or "application/octet-stream"
    return f"{media}; charset=utf-8" if media.startswith("text/") else media


def _matches(stated: bytes, etag: bytes) -> bool:
    return bool(stated) and any(tag.strip().removeprefix(b"W/") in (etag, b"*") for tag in stated.split(b","))


def _accepts_gzip(stated: bytes) -> bool:
    """Return whether gzip is accepted, by name or by `*`, with a weight above zero."""
    weights: dict[bytes, bytes] = {}
    for entry in stated.lower().split(b","):
        coding, _, parameters = entry.partition(b";")
        weights[coding.strip()] = parameters.replace(b" ", b"").removeprefix(b"q=") or b"1"
    weight = weights.get(b"gzip", weights.get(b"*", b"0"))
    return weight.strip(b"0.") != b""
