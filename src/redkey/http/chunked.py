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
        # Chunks may be of one byte: a place in the data moves on, the data is not copied for each.
        place, size = 0, len(data)
        while place < size and not self.done:
            place = self._read(data, place, pieces)
        return pieces, data[place:]

    def _size_line(self, data: bytes, place: int, pieces: list[bytes]) -> int:
        line, place = self._line(data, place, _SIZE_LINE_BYTES)
        if line is None:
            return place
        found = _SIZE_LINE.fullmatch(line)
        if found is None:
            raise malformed("the size of a chunk is not a hexadecimal number")
        self._left = int(found[1], 16)
        self._read = self._data if self._left else self._trailer
        return place

    def _data(self, data: bytes, place: int, pieces: list[bytes]) -> int:
        piece = data[place : place + self._left]
        pieces.append(piece)
        self._left -= len(piece)
        if not self._left:
            self._read = self._end_of_chunk
        return place + len(piece)

    def _end_of_chunk(self, data: bytes, place: int, pieces: list[bytes]) -> int:
        taken = data[place : place + 2 - len(self._buffer)]
        self._buffer += taken
        if not b"\r\n".startswith(self._buffer):
            raise malformed("a chunk is longer than it says")
        if len(self._buffer) == 2:
            self._buffer, self._read = b"", self._size_line
        return place + len(taken)

    def _trailer(self, data: bytes, place: int, pieces: list[bytes]) -> int:
        line, place = self._line(data, place, TRAILER_BYTES - self._trailer_bytes)
        if line is None:
            return place
        if line and not _TRAILER.fullmatch(line):
            raise malformed("a trailer is not a header")
        self._trailer_bytes += len(line) + 2
        self.done = not line
        return place

    def _line(self, data: bytes, place: int, limit: int) -> tuple[bytes | None, int]:
        """Read a line up to its CR LF: the line, None when it has not come whole, and the place behind it."""
        known = len(self._buffer)
        if known:
            # No line is longer than its limit, so no more than that has to be joined to what is there.
            text = self._buffer + data[place : place + limit + 2]
            end = text.find(b"\r\n", known - 1)
            following = place + end + 2 - known
            line = text[:end] if end >= 0 else text
        else:
            end = data.find(b"\r\n", place, place + limit + 2)
            following = end + 2
            line = data[place:end] if end >= 0 else data[place : place + limit + 2]
        whole = end >= 0
        if len(line if whole else line.removesuffix(b"\r")) > limit:
            raise Declined(431, "trailers_too_large", "The chunk extensions or trailers of the body are too large.")
        if b"\r" in line[: None if whole else -1] or b"\n" in line:
            raise malformed("a line of a chunked body does not end with CR LF")
        if not whole:
            self._buffer = line
            return None, len(data)
        self._buffer = b""
        return line, following
