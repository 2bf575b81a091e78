"""The durable log of the bus: its own SQLite file, written by one thread and read by the event loop.

A commit is durable when it returns (WAL, synced each time). Reads use a second connection and see the last commit. A
failure is raised as a StoreError; after a failed fsync (StorePoisoned) the file must not be used any more.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib import resources
from itertools import groupby
from pathlib import Path
from typing import Any

import orjson

from redkey.bus.envelope import USER
from redkey.bus.model import AgentState, SessionRecord, SessionState, Write
from redkey.errors import StoreError, StoreFailed, StoreFull, StorePoisoned, StoreRefused

FILE = "bus.db"
# "RKbs" in ASCII.
APPLICATION_ID = 0x524B6273
VERSION = 2
_SEQ_MASK = (1 << 40) - 1
_SETTINGS = {"journal_mode": "wal", "synchronous": 2, "fullfsync": 1, "temp_store": 2, "wal_autocheckpoint": 0}
_SAFE: dict[str, str | int] = {"journal_mode": "wal", "synchronous": 2, "wal_autocheckpoint": 0}
# From this many rows on, one statement with JSON is faster than one step for each row.
_BULK_ROWS = 8
# The write-ahead log is checkpointed after this many commits. SQLite's automatic checkpoint is off, because it does
# not report a failed fsync.
_COMMITS = 256
_FSYNC_FAILED = frozenset({sqlite3.SQLITE_IOERR_FSYNC, sqlite3.SQLITE_IOERR_DIR_FSYNC})


def _sql(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def _read_statements() -> dict[str, str]:
    parts = (part.split("\n", 2) for part in _sql("statements.sql").split("-- name: ")[1:])
    return {name: sql.strip() for name, _purpose, sql in parts}


SQL = _read_statements()


class BusLog:
    """The file of one bus."""

    def __init__(self, directory: Path) -> None:
        path = directory / FILE
        # Created private before SQLite opens it; -wal and -shm get the same mode.
        try:
            os.close(os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
        except OSError as cause:
            message = f"{path} cannot be opened (symbolic links are refused): {cause.strerror or cause}"
            raise StoreRefused(message, code="file_unsafe") from cause
        self._writer = _connect(path)
        try:
            _prepare(self._writer)
            self._reader = _connect(path)
        except BaseException:
            self._writer.close()
            raise
        self._reader.execute("PRAGMA query_only = 1")
        self._commits = 0

    def close(self) -> None:
        """Close the file."""
        self._reader.close()
        self._writer.close()

    # Writing, by one thread at a time.

    def commit(self, writes: Sequence[Write]) -> None:
        """Commit all rows or none; return once they are synced."""
        with _translated():
            self._writer.execute("BEGIN IMMEDIATE")
            try:
                for name, rows in _grouped(writes):
                    self._write(name, rows)
                self._writer.execute("COMMIT")
            except BaseException:
                if self._writer.in_transaction:
                    self._writer.execute("ROLLBACK")
                raise
        self._commits += 1
        if self._commits % _COMMITS == 0:
            self._copy_log()

    def _write(self, name: str, rows: list[Any]) -> None:
        many = SQL.get(f"{name}_many")
        if many is None or len(rows) < _BULK_ROWS:
            self._writer.executemany(SQL[name], rows)
        else:
            # One step instead of one for each row: every step must get the GIL from a busy event loop.
            self._writer.execute(many, (orjson.dumps(rows, default=bytes.decode).decode(),))

    def forget(self, before: str, limit: int) -> bool:
        """Delete a batch of old records that wait for no agent; false when none is left."""
        with _translated():
            for session, over, until in self._writer.execute(SQL["aged_sessions"], {"before": before}).fetchall():
                parameters = {"session": session, "until": until, "before": before, "limit": limit}
                if self._writer.execute(SQL["forget_records"], parameters).rowcount == limit:
                    return True
                self._writer.execute(SQL["forget_session_records"], parameters)
                self._writer.execute(SQL["forget_conversations"], {**parameters, "over": over})
                if over:
                    self._writer.execute(SQL["forget_agents"], parameters)
                    self._writer.execute(SQL["forget_session"], parameters)
        return False

    def forget_answers(self, before: str) -> None:
        """Delete stored HTTP answers that are older than a time."""
        with _translated():
            self._writer.execute(SQL["delete_answers"], (before,))

    def _copy_log(self) -> None:
        try:
            with _translated():
                self._writer.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
        except StoreFull:
            # On a full disk the write-ahead log only grows for now.
            return

    # Reading.

    def load(self) -> tuple[list[SessionState], int, int]:
        """Load every open session with its agents, and the highest numbers in use."""
        sessions = {row[0]: SessionState(*row) for row in self._fetch("open_sessions")}
        waiting = dict(self._fetch("pending_counts"))
        for number, *row in self._fetch("agents"):
            agent = AgentState(*row)
            agent.lead, agent.online = bool(agent.lead), bool(agent.online)
            agent.waiting = waiting.get(agent.number, 0)
            if agent.id == USER:
                sessions[number].user = agent
            else:
                sessions[number].agents[agent.id] = agent
        for session in sessions.values():
            session.seq = self.last_seq(session.number)
        ((session_numbers, agent_numbers),) = self._fetch("numbers")
        return list(sessions.values()), session_numbers, agent_numbers

    def session(self, session_id: str) -> SessionState | None:
        """A session, open or closed, without its agents."""
        for row in self._fetch("session", session_id):
            return _session(row)
        return None

    def cursor(self, session_id: str) -> int | None:
        """The position of a bound session in its ledger; None if it is not bound."""
        for row in self._fetch("session", session_id):
            position: int | None = row[-1]
            return position
        return None

    def sessions(self, workspace: str, after: str, limit: int, status: str | None) -> list[SessionState]:
        """List the sessions of a workspace by id, open and closed."""
        return [_session(row) for row in self._fetch("sessions", workspace, after, status, status, limit)]

    def bound_sessions(self) -> list[tuple[str, int]]:
        """List the open sessions that are bound to a ledger, with their positions."""
        return self._fetch("bound_sessions")

    def pending(self, agent: int) -> Iterator[int]:
        """The sequence numbers of the messages that wait for an agent."""
        return (seq for (seq,) in self._fetch("pending", agent))

    def records(self, session: int, after: int, limit: int) -> list[SessionRecord]:
        """The next records after a position."""
        base = session << 40
        return _records(self._fetch("records_after", base + after, base | _SEQ_MASK, limit))

    def last_records(self, session: int, before: int, limit: int) -> Iterable[SessionRecord]:
        """The records before a place, newest first."""
        base = session << 40
        return _records(self._fetch("records_before", base, base + min(before, _SEQ_MASK), limit))

    def record(self, session: int, seq: int) -> SessionRecord | None:
        """The record at a position."""
        return next(iter(_records(self._fetch("record", session << 40 | seq))), None)

    def find(self, session: int, message_id: str) -> SessionRecord | None:
        """The record with an id."""
        return next(iter(_records(self._fetch("record_of_message", session, message_id))), None)

    def record_ids(self, session: int) -> Iterator[str]:
        """The ids of all records of a session."""
        return (record_id for (record_id,) in self._fetch("record_ids", session))

    def session_records(self, workspace: str, after: int, limit: int) -> list[tuple[int, SessionRecord]]:
        """The next creations and closings of sessions of a workspace."""
        rows = self._fetch("session_records_after", after, workspace, limit)
        return [(row[0], _records([row[1:]])[0]) for row in rows]

    def answer(self, scope: str, key: str) -> tuple[bytes, int, bytes] | None:
        """The stored HTTP answer for an idempotency key: request hash, status, body."""
        return next(iter(self._fetch("answer", scope, key)), None)

    def conversation_owner(self, session: int, conversation_id: str) -> str | None:
        """The stored owner of a conversation."""
        return next((owner for (owner,) in self._fetch("conversation_owner", session, conversation_id)), None)

    def last_seq(self, session: int) -> int:
        """The sequence number of a session's last record."""
        base = session << 40
        ((position,),) = self._fetch("last_seq", base, base | _SEQ_MASK)
        return int(position) & _SEQ_MASK

    def _fetch(self, name: str, *parameters: Any) -> list[Any]:
        try:
            return self._reader.execute(SQL[name], parameters).fetchall()
        except sqlite3.Error as cause:
            raise _translate(cause) from cause


def _grouped(writes: Sequence[Write]) -> Iterable[tuple[str, list[Any]]]:
    """Group rows by statement. Bulk rows are collected until a mailbox is deleted."""
    bulk: dict[str, list[Any]] = {}
    for name, rows in groupby(writes, key=_statement):
        if f"{name}_many" in SQL:
            bulk.setdefault(name, []).extend(row for _, row in rows)
            continue
        if name == "delete_mailbox":
            # Rows for an agent must be written before its mailbox is deleted, not after.
            yield from bulk.items()
            bulk = {}
        yield name, [row for _, row in rows]
    yield from bulk.items()


def _statement(write: Write) -> str:
    return write[0]


def _session(row: Sequence[Any]) -> SessionState:
    return SessionState(*row[:-1])


def _records(rows: Sequence[Any]) -> list[SessionRecord]:
    return [SessionRecord(position & _SEQ_MASK, ts, key, kind, envelope) for position, ts, key, kind, envelope in rows]


def _connect(path: Path) -> sqlite3.Connection:
    with _translated():
        connection = sqlite3.connect(path, timeout=5.0, isolation_level=None, check_same_thread=False)
        try:
            for name, value in _SETTINGS.items():
                connection.execute(f"PRAGMA {name} = {value}").fetchall()
            for name, wanted in _SAFE.items():
                (value,) = connection.execute(f"PRAGMA {name}").fetchone()
                if value != wanted:
                    message = f"{path} has {name}={value} and must have {wanted}; put it on a local file system"
                    raise StoreRefused(message, code="unsafe_settings")
        except BaseException:
            connection.close()
            raise
    return connection


def _prepare(connection: sqlite3.Connection) -> None:
    """Create the tables of a new file, or migrate an older one; refuse a foreign or newer file."""
    with _translated():
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        if application == APPLICATION_ID and version == VERSION:
            return
        if application == APPLICATION_ID and 0 < version < VERSION:
            steps = "".join(_sql(f"migrate_{step}.sql") for step in range(version, VERSION))
            connection.executescript(f"BEGIN EXCLUSIVE; {steps} PRAGMA user_version = {VERSION}; COMMIT;")
            return
        if application or version or tables:
            message = "bus.db is not a file of the bus, or was written by a newer RedKey"
            raise StoreRefused(message, code="not_redkey" if application != APPLICATION_ID else "newer_format")
        stamp = f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {VERSION};"
        connection.executescript(f"BEGIN EXCLUSIVE; {_sql('schema.sql')} {stamp} COMMIT;")


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as cause:
        raise _translate(cause) from cause


def _translate(cause: sqlite3.Error) -> StoreError:
    code = getattr(cause, "sqlite_errorcode", 0)
    if code in _FSYNC_FAILED:
        return StorePoisoned(f"an fsync failed, so the content of the disk is unknown; stop the bus: {cause}")
    if code & 0xFF == sqlite3.SQLITE_FULL:
        return StoreFull(f"no space left for bus.db: {cause}")
    return StoreFailed(f"bus.db cannot be used: {cause}")
