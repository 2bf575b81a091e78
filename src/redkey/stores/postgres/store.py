"""The store on PostgreSQL: units on writer threads, readers, followers, and the outcome of commits in doubt.

The database orders the units: the row of a topic is its lock. This module owns the life of one server's connection to
it. What a unit does is `unit`'s, how it begins `begin`'s, what others commit `announcing`'s.
"""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Literal

import psycopg

from redkey.errors import AppendRefused, StoreFailed, StoreMisused, StoreRefused, WriterBusy
from redkey.ledger.ports import Clock, Doubt
from redkey.ledger.record import FIRST_LOCAL_TOPIC, Record, entity, local_topic
from redkey.ledger.tail import Tail, check_entity, open_tail
from redkey.ledger.tiles import TileTree
from redkey.stores.follow import Commits, follow
from redkey.stores.keys import server_id
from redkey.stores.postgres.announcing import Announcer
from redkey.stores.postgres.begin import LOCK_SECONDS, Begun, begin_store, begin_topic
from redkey.stores.postgres.clock import DatabaseClock, SharedClock
from redkey.stores.postgres.connections import Connection, Connections, run
from redkey.stores.postgres.failures import translated
from redkey.stores.postgres.heads import KeptHeads, KnownHead
from redkey.stores.postgres.locks import DatabaseHolder, exclusive
from redkey.stores.postgres.queries import Queries
from redkey.stores.postgres.schema import SQL, check_server, migrate
from redkey.stores.postgres.secrets import DatabaseSecrets
from redkey.stores.postgres.seen import SeenCheckpoints
from redkey.stores.postgres.servers import Servers
from redkey.stores.postgres.timeline import check_timeline, find_lost
from redkey.stores.postgres.topics import TopicStates
from redkey.stores.postgres.unit import PostgresUnit
from redkey.stores.postgres.uploads import PostgresUpload
from redkey.stores.sql_queries import Parameters
from redkey.stores.trees import ReadTrees

_TOPIC_TRIES = 100


class PostgresStore(Queries):
    """A sequenced store in one database, which other servers use as well. Any thread may use it."""

    inline = False

    def __init__(
        self, url: str, clock: Clock | None = None, *, create: bool = True, key_file: Path | None = None
    ) -> None:
        """`clock` replaces the clock of the database, for tests; `key_file` has the key of the log's secrets."""
        self.connections = Connections(url)
        self._process = os.getpid()
        self._closed = False
        try:
            with self.connections.lend() as connection:
                check_server(connection)
                migrate(connection, create=create)
                version = connection.info.server_version
                with translated():
                    if not connection.execute(SQL["writable"]).fetchall()[0][1]:
                        connection.execute(SQL["first_timeline"])
            self.connections.find_pooler()
            now = self._read_clock()
        except BaseException:
            self.connections.close()
            raise
        self.engine = f"PostgreSQL {version // 10000}.{version % 10000}"
        if self.connections.is_pooled:
            self.engine += ", polled behind a connection pooler"
        self._database_clock = DatabaseClock(now)
        self.clock: Clock = SharedClock(clock or self._database_clock)
        self._states = TopicStates()
        self._foreign = itertools.count(1)
        self._inside = threading.local()
        self._numbers: dict[str, int] = {}
        self._trees = ReadTrees(self)
        self._commits = Commits()
        # What this server knows of the database, kept beside it once it has joined.
        self._seen: SeenCheckpoints | None = None
        self._kept: KeptHeads | None = None
        # topic -> the head that is known; the head up to which subscribers know what others committed.
        self._heads: dict[str, int] = {}
        self._told: dict[str, int] = {}
        # Units that may add to what is known: a failover is not confirmed in the middle of one.
        self._open_units = 0
        self._heads_guard = threading.Lock()
        self._subscribers: list[Callable[[str, int], None]] = []
        self.secrets = DatabaseSecrets(self._fetch, key_file)
        self._servers = Servers(self._known_heads, lambda: not self._open_units)
        self._announcer = Announcer(self.connections, self._learn, lambda: list(self._heads), self._servers)

    def close(self) -> None:
        """End followers and threads, close the connections. Closing twice is fine."""
        if self._process != os.getpid() or self._closed:
            return
        self._closed = True
        self._commits.close()
        self._announcer.close()
        for files in (self._seen, self._kept):
            if files is not None:
                files.close()
        self.connections.close()

    def __enter__(self) -> PostgresStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Units.

    @contextmanager
    def write(self, topic: str, *, wait: bool = True) -> Iterator[PostgresUnit]:
        self._refuse_second()
        state = self._states.of(topic)
        if not (state.turn.acquire(timeout=LOCK_SECONDS) if wait else state.turn.acquire(blocking=False)):
            raise WriterBusy
        try:
            with self._unit(partial(begin_topic, topic=topic, state=state, wait=wait)) as unit:
                yield unit
        except BaseException:
            state.tail, state.units = None, -1
            raise
        finally:
            state.turn.release()
        self._commits.announce()

    @contextmanager
    def write_store(self, *, wait: bool = True) -> Iterator[PostgresUnit]:
        self._refuse_second()
        with self._unit(partial(begin_store, wait=wait)) as unit:
            yield unit

    @contextmanager
    def _unit(self, begin: Callable[[Connections, Connection], Begun]) -> Iterator[PostgresUnit]:
        connection, begun = self._begin(begin)
        unit = PostgresUnit(self, connection, begun)
        with self._heads_guard:
            self._open_units += 1
        try:
            self._inside.unit = unit
            self._enter(begun, unit)
            yield unit
            self._check_open()
            unit.commit()
            self._committed(begun, unit)
        except BaseException:
            self._roll_back(connection)
            raise
        finally:
            unit.end()
            self._inside.unit = None
            with self._heads_guard:
                self._open_units -= 1
            self.connections.give_back(connection)

    def _begin(self, begin: Callable[[Connections, Connection], Begun]) -> tuple[Connection, Begun]:
        """Lock, on a connection that works: one that was lost while it was idle is replaced."""
        for last in (False, True):
            connection = self.connections.borrow()
            try:
                with translated():
                    return connection, begin(self.connections, connection)
            except BaseException as error:
                lost = connection.closed
                self._roll_back(connection)
                self.connections.give_back(connection)
                if last or not lost or not isinstance(error, StoreFailed):
                    raise
                self.connections.drop_idle()
        raise AssertionError("unreachable")

    def _enter(self, begun: Begun, unit: PostgresUnit) -> None:
        """Bring what is remembered of the topic up to the head that the lock showed."""
        state = begun.state
        if state is None or begun.number is None or begun.topic is None:
            return
        self._database_clock.read(begun.now)
        state.number = begun.number
        with self._heads_guard:
            # From now on the topic is watched, without a further round trip.
            self._heads.setdefault(begun.topic, begun.head.sequence)
            self._told.setdefault(begun.topic, begun.head.sequence)
        if state.units != begun.units:
            state.foreign = next(self._foreign)
            self._learn(begun.topic, begun.head.sequence)
        unit.others = state.foreign
        tail = state.tail
        if tail is not None:
            tail.catch_up(begun.news)
            if tail.head != begun.head:
                # Others wrote much, or the database is not the one that it was: the end of the topic is read anew.
                state.tail = None
            else:
                tail.begin()

    def tail_of(self, begun: Begun) -> Tail:
        """The tail of a unit's topic, read when it is first needed."""
        state, topic = begun.state, begun.topic
        if state is None or topic is None:
            raise StoreMisused("a unit on the whole store has no records", code="unit_of_another_topic")
        if state.tail is None:
            state.tail = open_tail(_Inside(self, topic), topic, self.clock)
        return state.tail

    def _committed(self, begun: Begun, unit: PostgresUnit) -> None:
        state, topic = begun.state, begun.topic
        if state is None or topic is None or begun.number is None:
            return
        state.units = begun.units + unit.wrote
        if unit.wrote:
            head = unit.head(topic)
            if self._kept is not None:
                # Before anyone hears of it: after a failover this server must know what it has answered.
                self._kept.keep(topic, KnownHead(head.sequence, head.running_hash), begun.timeline)
            with self._heads_guard:
                self._heads[topic] = max(self._heads[topic], head.sequence)
                state.committed = head.sequence
            self._announcer.announce(topic, head.sequence)
            if unit.signed is not None and self._seen is not None:
                self._seen.keep(topic, unit.signed)

    def _roll_back(self, connection: Connection) -> None:
        """End a transaction that failed; a connection on which that is not possible is closed."""
        if connection.closed or connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE:
            return
        try:
            run(self.connections, connection, "ROLLBACK", ())
        except psycopg.Error:
            connection.close()

    def create_topic(self, topic: str | None = None, *, fact: str = "", wait: bool = True) -> str:
        """Create a topic by unique inserts: of two that create one for the same fact, the second finds the first."""
        self._check_open()
        if topic is not None:
            check_entity(topic, "topic")
        for attempt in range(_TOPIC_TRIES):
            if fact and (found := self.setting(fact)) is not None:
                return found
            name = topic or self._next_topic(attempt)
            inserts: list[tuple[str, Parameters]] = [(SQL["insert_topic"], (name,))]
            if fact:
                inserts.insert(0, (SQL["insert_setting"], (fact, name)))
            try:
                with translated(), self.connections.lend() as connection, connection.transaction():
                    for sql, parameters in inserts:
                        run(self.connections, connection, sql, parameters)
            except psycopg.errors.UniqueViolation as taken:
                if topic is not None and not (fact and self.setting(fact) is not None):
                    raise AppendRefused(f"topic {topic} exists already", code="topic_exists") from taken
                continue
            except StoreFailed:
                # With a fact a second try finds what the first one created.
                if not fact or attempt:
                    raise
                continue
            self._commits.announce()
            return name
        raise WriterBusy("too many topics are created at once; try again")

    def _next_topic(self, attempt: int) -> str:
        found = self._fetch(SQL["last_local_topic"], ())
        last = entity(found[0][0])[2] if found else FIRST_LOCAL_TOPIC - 1
        return local_topic(max(0, last + 1 - FIRST_LOCAL_TOPIC) + attempt // 2)

    def together(self, *, wait: bool = True) -> AbstractContextManager[None]:
        raise StoreMisused("each unit of this store is committed by itself", code="not_inline")

    def hold(self) -> None:
        self._check_open()
        raise StoreMisused("units of this store wait for their own locks", code="not_inline")

    def release(self) -> None:
        self._check_open()

    def resolve(self, doubt: Doubt) -> Literal["committed", "failed"]:
        """Wait until the transaction in doubt is over, then look at the ledger."""
        self._check_open()
        with translated(), self.connections.lend() as connection, connection.transaction():
            run(self.connections, connection, SQL["lock_timeout"], (f"{LOCK_SECONDS:g}s",))
            if doubt.topic:
                # Who gets the lock knows that the unit in doubt has ended.
                run(self.connections, connection, SQL["lock_topic"], (doubt.topic,))
            if doubt.unit:
                ((status,),) = run(self.connections, connection, SQL["xact_status"], (doubt.unit,))
                if status == "in progress":
                    raise WriterBusy
                return "committed" if status == "committed" else "failed"
            found = run(self.connections, connection, SQL["running_hash"], (doubt.topic, doubt.sequence))
        return "committed" if found and found[0][0] == doubt.running_hash else "failed"

    def check_writable(self) -> None:
        self._check_open()
        read_only, replica = self._fetch(SQL["writable"], ())[0]
        if read_only or replica:
            raise StoreFailed(
                "the database is read-only (a replica?); use the address of the primary", code="store_read_only"
            )
        check_timeline(self._fetch(SQL["timeline"], ()))

    # What servers share.

    def join(self, url: str, version: str, rules: int, home: Path) -> None:
        """Register this process as a server: its row is renewed until the store closes.

        The heads that it knows, and the largest checkpoint of each topic, are kept in the data directory `home`: a
        database that is behind one of them has lost records. It is refused, or cannot be confirmed after a failover.
        """
        self._seen = SeenCheckpoints(home)
        self._seen.compare(self)
        name = f"{server_id(home)}/{url}"
        accepted, current = self._fetch(SQL["timeline"], ())[0]
        self._kept = kept = KeptHeads(home, name, accepted, is_settled=accepted == current)
        left = kept.remembered
        if accepted == current:
            with self.connections.lend() as connection, translated():
                lost = self.connections.beside(partial(find_lost, connection, left.heads))
            if lost:
                kept.close()
                raise StoreRefused(
                    f"{'; '.join(lost[:3])}, as this server knows: records are missing; restore the database, or run "
                    f"redkey ledger new-epoch on it and delete {home / 'heads'}",
                    code="head_behind_checkpoint",
                )
            left.is_incomplete = False
            kept.begin(accepted, left.heads)
        elif name not in left.servers and self._fetch(SQL["server_known"], (name,)):
            # It was here before the failover, and its file is gone.
            left.is_incomplete = True
        self._servers.join(name, url, version, rules, kept)

    def servers_behind(self, rules: int) -> Sequence[str]:
        """The registered servers that do not know some rules yet, with their versions."""
        return [f"{url} ({version})" for url, version in self._fetch(SQL["servers_behind"], (rules,))]

    def accept_timeline(self) -> None:
        """Open the ledger for writing after a failover, whatever is missing: an operator has decided so."""
        self._fetch(SQL["accept_timeline"], ())

    @property
    def servers(self) -> int:
        """How many servers are alive."""
        return self._servers.alive

    def exclusive(self, name: str) -> AbstractContextManager[None]:
        """Keep the other servers out of a block."""
        self._check_open()
        return exclusive(self.connections, name)

    def holder(self, name: str) -> DatabaseHolder:
        """A lock that one server has at a time."""
        return DatabaseHolder(self.connections, name)

    def upload(self) -> PostgresUpload:
        self._check_open()
        return PostgresUpload(self._fetch)

    # Reading.

    @contextmanager
    def snapshot(self) -> Iterator[Snapshot]:
        self._check_open()
        with self.connections.lend() as connection:
            try:
                with translated():
                    run(self.connections, connection, SQL["begin_snapshot"], ())
                    # The moment is that of the first read.
                    run(self.connections, connection, SQL["clock"], ())
                yield Snapshot(self, connection)
            finally:
                self._roll_back(connection)

    def known_head(self, topic: str) -> int:
        self._check_open()
        known = self._heads.get(topic)
        if known is None:
            self._watch(topic)
            known = self._heads[topic]
        return known

    def look(self) -> None:
        """Nothing to do: a thread of the store learns of commits by itself."""
        self._check_open()

    def subscribe(self, heard: Callable[[str, int], None]) -> Callable[[], None]:
        self._subscribers.append(heard)
        return partial(self._subscribers.remove, heard)

    def due(self, now: int, limit: int) -> Sequence[str]:
        return [topic for (topic,) in self._fetch(SQL["due"], (now, limit))]

    def follow(self, topic: str, after: int = 0) -> Iterator[Sequence[Record]]:
        self._check_open()
        self._watch(topic)
        return follow(self, self._commits, topic, after)

    def tree(self, topic: str) -> TileTree:
        return self._trees.tree(topic)

    def topic_number(self, topic: str) -> int | None:
        number = self._numbers.get(topic)
        if number is None:
            for (number,) in self._fetch(SQL["topic_number"], (topic,)):
                self._numbers[topic] = number
        return number

    def _watch(self, topic: str) -> None:
        """Learn of the commits of others to a topic from now on."""
        head = self.head(topic)
        with self._heads_guard:
            self._heads.setdefault(topic, head.sequence)
            self._told.setdefault(topic, head.sequence)
            if self._kept is not None and head.sequence:
                self._kept.keep(topic, KnownHead(head.sequence, head.running_hash))

    def _learn(self, topic: str, head: int) -> None:
        """A head was announced or found: tell of it if others brought it."""
        with self._heads_guard:
            known = self._heads.get(topic)
            if known is not None:
                self._heads[topic] = max(known, head)
                if self._kept is not None and head > known:
                    self._kept.keep(topic, KnownHead(head))
                state = self._states.known(topic)
                own = state.committed if state is not None else 0
                news = head > self._told[topic] and head != own
                if news:
                    self._told[topic] = head
        self._commits.announce()
        if known is not None and news:
            for heard in tuple(self._subscribers):
                heard(topic, head)

    def _known_heads(self) -> dict[str, KnownHead]:
        """What this server knows to be committed, also from before its start."""
        with self._heads_guard:
            known = {topic: KnownHead(head) for topic, head in self._heads.items() if head}
        for topic, kept in (self._kept.heads if self._kept is not None else {}).items():
            if topic not in known or kept.sequence >= known[topic].sequence:
                known[topic] = kept
        return known

    def _fetch(self, sql: str, parameters: Parameters) -> list[Any]:
        self._check_open()
        return self.connections.fetch(sql, parameters)

    def _read_clock(self) -> int:
        return int(self.connections.fetch(SQL["clock"], ())[0][0]) * 1000

    def _refuse_second(self) -> None:
        self._check_open()
        if getattr(self._inside, "unit", None) is not None:
            raise StoreMisused("this thread has a unit open already; end it first", code="unit_open")

    @property
    def unit_inside(self) -> PostgresUnit | None:
        """The unit that this thread has open."""
        return getattr(self._inside, "unit", None)

    def _check_open(self) -> None:
        if self._process != os.getpid():
            raise StoreMisused(
                f"the store was opened by process {self._process}; open one in this process", code="wrong_process"
            )
        if self._closed:
            raise StoreMisused("the store is closed", code="store_closed")


class Snapshot(Queries):
    """The database at one commit."""

    def __init__(self, store: PostgresStore, connection: Connection) -> None:
        self._store, self._connection = store, connection

    def _fetch(self, sql: str, parameters: Parameters) -> list[Any]:
        with translated():
            return run(self._store.connections, self._connection, sql, parameters)

    def topic_number(self, topic: str) -> int | None:
        return self._store.topic_number(topic)


class _Inside(Queries):
    """Reads as the unit of this thread does, or as the store: what a tail and its tree read through."""

    def __init__(self, store: PostgresStore, topic: str) -> None:
        self._store, self._topic = store, topic

    def _fetch(self, sql: str, parameters: Parameters) -> list[Any]:
        unit = self._store.unit_inside
        return (unit if unit is not None and unit.topic == self._topic else self._store)._fetch(sql, parameters)

    def topic_number(self, topic: str) -> int | None:
        return self._store.topic_number(topic)
