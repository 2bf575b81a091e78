"""Decode chunked bodies.

Chunk extensions and trailers are limited in size and dropped: RedKey uses neither, and a trailer must never count as a
header, because a proxy in front has not checked it.
"""

from __future__ import annotations

import re

from redkey.http.head import malformed
from redkey.http.problems import Declined

# The maximum length of the line with the size of a chunk, extensions included.
_SIZE_LINE_BYTES = 1024
TRAILER_BYTES = 8 * 1024
_SIZE_LINE = re.compile(rb"([0-9A-Fa-f]{1,15})(?:[ \t]*;[\t -~\x80-\xff]*)?")
_TRAILER = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+:[\t -~\x80-\xff]*")


class ChunkedBody:
    """The decoder of one body; `done` once its end has been read."""

    __slots__ = ("_buffer", "_left", "_read", "_trailer_bytes", "done")

    def __init__(self) -> None:
        # The method for the next part: a size line, data, the CR LF after data, or trailers.
        self._read = self._size_line
        # An unfinished line.
        self._buffer = b""
        # Bytes of the current chunk still to come.
        self._left = 0
        self._trailer_bytes = 0
        self.done = False

    def feed(self, data: bytes) -> tuple[list[bytes], bytes]:
        """Decode more bytes; return the pieces of the body in them, and the bytes after its end."""
        pieces: list[bytes] = []
        # Chunks can be as small as one byte, so an offset advances and the data is not copied for each chunk.
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
            raise malformed("a chunk is longer than its stated size")
        if len(self._buffer) == 2:
            self._buffer, self._read = b"", self._size_line
        return place + len(taken)

    def _trailer(self, data: bytes, place: int, pieces: list[bytes]) -> int:
        line, place = self._line(data, place, TRAILER_BYTES - self._trailer_bytes)
        if line is None:
            return place
        if line and not _TRAILER.fullmatch(line):
            raise malformed("a trailer line is not a valid header")
        self._trailer_bytes += len(line) + 2
        self.done = not line
        return place

    def _line(self, data: bytes, place: int, limit: int) -> tuple[bytes | None, int]:
        """Return the next line without its CR LF and the offset after it; the line is None while it is incomplete."""
        known = len(self._buffer)
        if known:
            # A line never exceeds its limit, so at most that many bytes are joined to the buffer.
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
