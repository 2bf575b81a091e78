"""Decode chunked bodies. Chunk extensions and trailers are bounded and dropped: neither says anything here, and a
trailer must never count as a header, because a proxy that checks headers has not seen it."""

from __future__ import annotations

import re

from redkey.http.head import malformed
from redkey.http.problems import Declined

# The line that gives the size of a chunk, with its extensions.
_SIZE_LINE_BYTES = 1024
TRAILER_BYTES = 8 * 1024
_SIZE_LINE = re.compile(rb"([0-9A-Fa-f]{1,15})(?:[ \t]*;[\t -~\x80-\xff]*)?")
_TRAILER = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+:[\t -~\x80-\xff]*")


class ChunkedBody:
    """The decoder of one body; `done` once its end has been read."""

    __slots__ = ("_buffer", "_left", "_read", "_trailer_bytes", "done")

    def __init__(self) -> None:
        # The part that comes next: a size line, data, the CR LF behind data, or trailers.
        self._read = self._size_line
        # An unfinished line.
        self._buffer = b""
        # Bytes of the current chunk still to come.
        self._left = 0
        self._trailer_bytes = 0
        self.done = False

    def feed(self, data: bytes) -> tuple[list[bytes], bytes]:
        """Decode more bytes: the pieces of the body in them, and what follows its end."""
        pieces: list[bytes] = []
        while data and not self.done:
            data = self._read(data, pieces)
        return pieces, data

    def _size_line(self, data: bytes, pieces: list[bytes]) -> bytes:
        line, data = self._line(data, _SIZE_LINE_BYTES)
        if line is None:
            return data
        found = _SIZE_LINE.fullmatch(line)
        if found is None:
            raise malformed("the size of a chunk is not a hexadecimal number")
        self._left = int(found[1], 16)
        self._read = self._data if self._left else self._trailer
        return data

    def _data(self, data: bytes, pieces: list[bytes]) -> bytes:
        piece = data[: self._left]
        pieces.append(piece)
        self._left -= len(piece)
        if not self._left:
            self._read = self._end_of_chunk
        return data[len(piece) :]

    def _end_of_chunk(self, data: bytes, pieces: list[bytes]) -> bytes:
        ending = (self._buffer + data)[:2]
        if not b"\r\n".startswith(ending):
            raise malformed("a chunk is longer than it says")
        data = data[len(ending) - len(self._buffer) :]
        self._buffer = ending
        if len(ending) == 2:
            self._buffer, self._read = b"", self._size_line
        return data

    def _trailer(self, data: bytes, pieces: list[bytes]) -> bytes:
        line, data = self._line(data, TRAILER_BYTES - self._trailer_bytes)
        if line is None:
            return data
        if line and not _TRAILER.fullmatch(line):
            raise malformed("a trailer is not a header")
        self._trailer_bytes += len(line) + 2
        self.done = not line
        return data

    def _line(self, data: bytes, limit: int) -> tuple[bytes | None, bytes]:
        """Read a line up to its CR LF: the line, None when it has not come whole, and what follows it."""
        text = self._buffer + data
        end = text.find(b"\r\n", max(0, len(self._buffer) - 1))
        line = text[:end] if end >= 0 else text.removesuffix(b"\r")
        if len(line) > limit:
            raise Declined(431, "trailers_too_large", "The chunk extensions or trailers of the body are too large.")
        if b"\r" in line or b"\n" in line:
            raise malformed("a line of a chunked body does not end with CR LF")
        if end < 0:
            self._buffer = text
            return None, b""
        self._buffer = b""
        return line, text[end + 2 :]
