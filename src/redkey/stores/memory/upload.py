"""A body that is being uploaded to the memory store."""

from __future__ import annotations

from hashlib import sha256

from redkey.errors import StoreMisused


class MemoryUpload:
    """The bytes received so far."""

    def __init__(self) -> None:
        self._data = bytearray()
        self.finished = False

    @property
    def size(self) -> int:
        return len(self._data)

    @property
    def data(self) -> bytes:
        return bytes(self._data)

    @property
    def sha256(self) -> str:
        return sha256(self._data).hexdigest()

    def write(self, chunk: bytes) -> None:
        if self.finished:
            raise StoreMisused("the body is complete", code="upload_ended")
        self._data += chunk

    def finish(self) -> str:
        self.finished = True
        return self.sha256

    def discard(self) -> None:
        self.finished = True
        self._data.clear()
