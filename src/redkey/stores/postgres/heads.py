"""The heads that a server knows to be committed, outside the database: in its own data directory.

After a failover a server confirms that the database has all it knows of (`timeline`). What it knows must survive its
own death, or the last commits could be lost unnoticed when database and servers fail together. So each head is
written to a file before the commit is announced. The write is not synced: a killed process loses nothing, and after
a restart of the whole machine the server says that it does not know.

    heads/<hash of the server's name>    a first line, then one line of fixed length for each topic

The first line has the timeline under which the heads were committed: as soon as another one is accepted, by all servers
or by an operator, older heads mean nothing. The file is locked while its server lives. A server takes over the files of
dead ones in its data directory, such as itself before a restart or on another port.
"""

from __future__ import annotations

import fcntl
import os
import threading
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from zlib import crc32

import msgspec
import structlog

_log = structlog.get_logger("redkey.stores")
# No line crosses a page, so a process that is killed leaves none of them in halves.
_LINE_BYTES, _FIRST_LINES = 256, 4
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class KnownHead(msgspec.Struct, frozen=True):
    """A head; the running hash is empty when only the number of records was announced."""

    sequence: int
    running_hash: bytes = b""


class Remembered(msgspec.Struct):
    """What dead servers of a data directory left."""

    # Their names, as in the table of servers.
    servers: list[str] = []
    heads: dict[str, KnownHead] = {}
    # The machine was restarted since, so the last heads may not have reached the disk.
    is_incomplete: bool = False


class KeptHeads:
    """The heads of one server, in a file that only this process writes."""

    def __init__(self, home: Path, server: str, timeline: int, *, is_settled: bool) -> None:
        """`timeline` is the accepted one: heads that were committed under another one are dropped. `is_settled` is
        False while a failover is not confirmed: then the files of dead servers stay, with the names to confirm for.
        """
        self._server, self._timeline = server, timeline
        self._guard = threading.Lock()
        self._lines: dict[str, int] = {}
        self._heads: dict[str, KnownHead] = {}
        folder = home / "heads"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.remembered = Remembered()
        own = folder / sha256(server.encode()).hexdigest()[:16]
        self._file = os.open(own, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        if _lock(self._file):
            self._remember(self._file)
        else:
            # Another process with the same name is alive: this one keeps its heads in memory only.
            _log.error("another server uses this data directory and address", file=str(own))
            os.close(self._file)
            self._file = -1
        dead = [(path, file) for path in folder.iterdir() if path != own and (file := _open_dead(path)) is not None]
        for _, file in dead:
            self._remember(file)
        self.begin(timeline, self.remembered.heads, is_complete=not self.remembered.is_incomplete)
        for path, file in dead:
            if self._file >= 0 and is_settled:
                # Only now: a process that is killed in between leaves them to the next one.
                path.unlink(missing_ok=True)
            os.close(file)

    @property
    def timeline(self) -> int:
        """The timeline under which the heads were committed."""
        return self._timeline

    @property
    def heads(self) -> Mapping[str, KnownHead]:
        """The heads by topic."""
        with self._guard:
            return dict(self._heads)

    def keep(self, topic: str, head: KnownHead, timeline: int | None = None) -> None:
        """Keep a head that is committed; one of another timeline than before makes the earlier ones void."""
        if timeline is not None and timeline != self._timeline:
            self.begin(timeline, {})
        with self._guard:
            known = self._heads.get(topic)
            if (
                known is None
                or head.sequence > known.sequence
                or (head.running_hash and head.sequence == known.sequence)
            ):
                self._put(topic, head)

    def begin(self, timeline: int, heads: Mapping[str, KnownHead], *, is_complete: bool = True) -> None:
        """Begin the file anew, with the heads that are still true."""
        with self._guard:
            self._timeline = timeline
            self._lines.clear()
            self._heads.clear()
            # A process that is killed in between leaves a file that says so.
            self._write_first("-")
            if self._file >= 0:
                os.ftruncate(self._file, _LINE_BYTES * _FIRST_LINES)
            for topic, head in heads.items():
                self._put(topic, head)
            if is_complete:
                self._write_first(_boot_id())

    def close(self) -> None:
        """Release the file; it stays for the next start."""
        with self._guard:
            if self._file >= 0:
                os.close(self._file)
            self._file = -1

    def _write_first(self, boot: str) -> None:
        text = f"1 {self._timeline} {boot} {self._server}"
        self._write(text.encode(), 0, _LINE_BYTES * _FIRST_LINES)

    def _put(self, topic: str, head: KnownHead) -> None:
        self._heads[topic] = head
        number = _FIRST_LINES + self._lines.setdefault(topic, len(self._lines))
        text = f"{topic} {head.sequence} {b64encode(head.running_hash).decode()}".encode()
        self._write(b"%s %08x" % (text, crc32(text)), number * _LINE_BYTES, _LINE_BYTES)

    def _write(self, text: bytes, offset: int, size: int) -> None:
        if self._file >= 0:
            try:
                os.pwrite(self._file, text.ljust(size - 1) + b"\n", offset)
            except OSError as failure:
                # The database has the commit; what is missing is the proof against a failover that loses it.
                _log.error("a head was not kept", reason=str(failure))

    def _remember(self, file: int) -> None:
        """Read the file of a dead server."""
        content, position = bytearray(), 0
        while piece := os.pread(file, 1 << 20, position):
            content += piece
            position += len(piece)
        if not content:
            return
        first = _LINE_BYTES * _FIRST_LINES
        version, timeline, boot, server = (*content[:first].decode(errors="replace").split(None, 3), "", "", "", "")[:4]
        self.remembered.servers.append(server.strip())
        if version != "1" or boot != _boot_id():
            self.remembered.is_incomplete = True
        if version != "1" or timeline != str(self._timeline):
            # When another timeline was accepted, these heads were confirmed, or given up by an operator.
            return
        lines = (bytes(content[start : start + _LINE_BYTES]) for start in range(first, len(content), _LINE_BYTES))
        for topic, head in _parse(lines):
            known = self.remembered.heads.get(topic)
            if head is None:
                self.remembered.is_incomplete = True
            elif known is None or known.sequence < head.sequence:
                self.remembered.heads[topic] = head


def _parse(lines: Iterable[bytes]) -> Iterable[tuple[str, KnownHead | None]]:
    """The heads of a file; None for a line that is damaged."""
    for line in lines:
        text, _, checksum = line.rstrip().rpartition(b" ")
        if checksum != b"%08x" % crc32(text):
            yield "", None
            continue
        topic, sequence, running_hash = text.decode().split(" ")
        yield topic, KnownHead(int(sequence), b64decode(running_hash))


def _open_dead(path: Path) -> int | None:
    """Open and lock the file of another server; None while that one is alive."""
    with suppress(OSError):
        file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        if _lock(file):
            return file
        os.close(file)
    return None


def _lock(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _boot_id() -> str:
    """Name this run of the machine; always the same where the system does not tell."""
    try:
        return _BOOT_ID.read_text().strip() or "0"
    except OSError:
        return "0"
