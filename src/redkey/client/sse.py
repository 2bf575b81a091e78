"""A parser for server-sent events, without I/O."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from redkey.errors import ReplyRefused

# An event is a wire of at most 1,024 bytes plus its envelope; a longer one is not from RedKey.
_LONGEST_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Message:
    """One event: its data, and the stream's id after it. An id without data is a cursor."""

    id: str
    event: str
    data: str


class Parser:
    """Feed it bytes and read messages. Lines may end with LF, CR LF or CR."""

    def __init__(self) -> None:
        self._rest = b""
        self._id = self._event = ""
        self._data: list[str] = []
        self._size = 0
        self._begun = False

    def feed(self, chunk: bytes) -> Iterator[Message]:
        """Return the messages that this chunk completes."""
        text = self._rest + chunk
        # A CR at the end may be the first half of a CR LF.
        held = text.endswith(b"\r")
        lines = (text[:-1] if held else text).replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        self._rest = lines.pop() + (b"\r" if held else b"")
        if len(self._rest) + self._size > _LONGEST_BYTES:
            raise ReplyRefused("an event of the stream has no end")
        for line in lines:
            message = self._line(line)
            if message is not None:
                yield message

    def _line(self, line: bytes) -> Message | None:
        if not line:
            return self._dispatch()
        name, _, value = line.partition(b":")
        text = value.removeprefix(b" ").decode("utf-8", "replace")
        if name == b"data":
            self._data.append(text)
            self._size += len(value)
        elif name == b"id":
            # The standard says to ignore an id that contains NUL.
            if "\0" not in text:
                self._id, self._begun = text, True
        elif name == b"event":
            self._event = text
        return None

    def _dispatch(self) -> Message | None:
        data, event, begun = "\n".join(self._data), self._event, self._begun
        self._data, self._event, self._size, self._begun = [], "", 0, False
        return Message(self._id, event, data) if data or begun else None
