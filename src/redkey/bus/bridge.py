"""The bridge between the bus and a workspace's ledger, in both directions.

A session that is bound hears what is recorded in its workspace from then on; how far it has heard is kept with what
it was told, in one commit, so that a crash repeats nothing and leaves nothing out. A message can be recorded as an
Inbox Wire: its words become content, the ledger gets their hash. Nothing else said on the bus reaches the ledger.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import datetime
from typing import Protocol

import msgspec
import orjson
import structlog

from redkey.bus.bus import Bus
from redkey.bus.envelope import EVERYBODY, Envelope
from redkey.bus.ledger_words import concerns, receiver, told
from redkey.bus.runtime.events import message_of
from redkey.bus.state import MESSAGE, Session, Write
from redkey.commands.actor import Actor
from redkey.commands.decision import Refused
from redkey.commands.registry import SendMessage
from redkey.errors import BusRefused, RedKeyError
from redkey.ledger import content
from redkey.ledger.ports import SequencedStore
from redkey.ledger.secrets import find_secret
from redkey.reducers.world import World
from redkey.services.coordinator import Coordinator
from redkey.services.outcome import Settled, settled
from redkey.services.subscriptions import Filter, Subscriptions
from redkey.services.workspaces import topic_of
from redkey.wire.ids import derived_ulid, event_id
from redkey.wire.names import role_id

_log = structlog.get_logger("redkey.bus.bridge")
_PAGE = 100
_WAIT_SECONDS = 60.0
_AGAIN_SECONDS = 1.0
_SUBJECT = 200


class Nonces(Protocol):
    """Where the random part of documents comes from."""

    def nonce(self) -> bytes: ...


class Mail(msgspec.Struct, frozen=True):
    """What became of a message that was recorded."""

    message_id: str
    to: str
    event_id: str


class Bridge:
    """Every bound session of a bus."""

    def __init__(
        self, bus: Bus, store: SequencedStore, coordinator: Coordinator, subscriptions: Subscriptions, nonces: Nonces
    ) -> None:
        self._bus, self._store, self._coordinator = bus, store, coordinator
        self._subscriptions, self._nonces = subscriptions, nonces
        self._telling: dict[str, asyncio.Task[None]] = {}

    def start(self) -> None:
        """Go on telling the sessions that were bound before."""
        self._bus.on_session(lambda _: None, self._closed)
        for session_id, cursor in self._bus.log.bound_sessions():
            try:
                self._begin(self._bus.session(session_id), cursor)
            except BusRefused as refused:
                _log.error("a session cannot be told of its ledger", session=session_id, code=refused.code)

    async def stop(self) -> None:
        for task in self._telling.values():
            task.cancel()
        for task in tuple(self._telling.values()):
            with suppress(asyncio.CancelledError):
                await task

    # From the ledger to the bus.

    def is_bound(self, session: Session) -> bool:
        return session.key in self._telling

    async def bind(self, session: Session) -> None:
        """Tell a session what is recorded in its workspace from now on."""
        if self.is_bound(session):
            return
        cursor = self._store.head(self._topic(session)).sequence
        await self._write(("put_cursor", (cursor, session.number)))
        self._begin(session, cursor)

    async def unbind(self, session: Session) -> None:
        task = self._telling.pop(session.key, None)
        if task is not None:
            task.cancel()
            await self._write(("put_cursor", (None, session.number)))

    def _closed(self, session: Session) -> None:
        task = self._telling.pop(session.key, None)
        if task is not None:
            task.cancel()

    def _begin(self, session: Session, cursor: int) -> None:
        task = asyncio.get_running_loop().create_task(self._tell(session.key, self._topic(session), cursor))
        self._telling[session.key] = task
        task.add_done_callback(_ended)

    async def _tell(self, session_id: str, topic: str, cursor: int) -> None:
        # A follower of the workspace, so that it is woken by what this and other processes record.
        subscription = self._subscriptions.open(topic, cursor, Filter())
        try:
            while True:
                records = self._store.read(topic, cursor, _PAGE)
                if not records:
                    await subscription.wait(_WAIT_SECONDS)
                    continue
                try:
                    await self._tell_page(session_id, topic, [settled(record) for record in records])
                except BusRefused as refused:
                    if refused.code != "unavailable":
                        raise
                    # The bus cannot write now; what it was told is told again, by the same ids.
                    await asyncio.sleep(_AGAIN_SECONDS)
                else:
                    cursor = subscription.position = records[-1].sequence
        finally:
            subscription.leave()

    async def _tell_page(self, session_id: str, topic: str, records: list[Settled]) -> None:
        session = self._bus.open_session(session_id)
        world = self._coordinator.peek(topic)
        envelopes = []
        for record in records:
            to = receiver(record, world, session) if concerns(record) else None
            if to is not None and (to != EVERYBODY or session.agents):
                envelopes.append(told(record, self._store, topic, session, to, self._bus.now()))
        for envelope in envelopes:
            self._send(session, envelope)
        # After the messages in the same order: never durable before them.
        await self._write(("put_cursor", (records[-1].sequence, session.number)))

    def _send(self, session: Session, envelope: Envelope) -> None:
        try:
            self._bus.send(session.key, envelope, _told)
        except BusRefused as refused:
            if refused.code != "mailbox_full" or envelope.topic != EVERYBODY:
                _log.warning("a session was not told of an event", session=session.key, code=refused.code)
                return
            # Somebody does not take its mail; the others still get theirs.
            for key in session.agents:
                one = msgspec.structs.replace(envelope, id=f"{envelope.id}:{key}"[:128], topic=None, dst=key)
                with suppress(BusRefused):
                    self._bus.send(session.key, one, _told)

    # From the bus to the ledger.

    async def record(self, session: Session, caller: Actor, bus_message: str, to: str | None, priority: int) -> Mail:
        """Record a message of a session as an Inbox Wire; once, however often it is asked for."""
        found = self._bus.log.find(session.number, bus_message)
        if found is None or found.type != MESSAGE:
            raise BusRefused("there is no such message in this session", code="message_not_found")
        topic, message = self._topic(session), message_of(orjson.loads(found.envelope))
        world = self._coordinator.peek(topic)
        recipient = _recipient(world, to or message.dst or "human", fallback=to is None)
        said = {"subject": message.text.strip().split("\n")[0][:_SUBJECT] or "(no words)", "body": message.text}
        if find_secret(said) is not None:
            raise BusRefused("the message looks like it holds a secret; it is not recorded", code="secret_detected")
        document = content.document(said, self._nonces.nonce())
        key = "msg_" + derived_ulid(_millis(found.ts), session.key, found.id, recipient)
        command = SendMessage(key, recipient, priority, "info", content.ref(document))
        try:
            outcome = await self._coordinator.submit(topic, caller, command, (document,))
        except Refused as refused:
            if refused.code != "message_exists":
                raise BusRefused(refused.message, code=refused.code) from refused
            return Mail(key, recipient, "")
        recorded = outcome.first("inbox.sent")
        return Mail(key, recipient, event_id(recorded.event.wire_id) if recorded is not None else "")

    def _topic(self, session: Session) -> str:
        topic = topic_of(self._store, session.workspace) if session.workspace else None
        if topic is None:
            raise BusRefused("this session belongs to no workspace", code="no_ledger")
        return topic

    async def _write(self, write: Write) -> None:
        future: asyncio.Future[BusRefused | None] = asyncio.get_running_loop().create_future()
        self._bus.commits.add([write], lambda refused: None if future.done() else future.set_result(refused))
        refused = await future
        if refused is not None:
            raise refused


def _recipient(world: World, name: str, *, fallback: bool) -> str:
    """Whom a name means on the ledger; somebody it does not know is the humans' when nobody else was asked for."""
    plain = name.removeprefix("agent:")
    agent_id = plain if plain in world.agents else world.slugs.get(plain)
    if agent_id is not None:
        return f"agent:{agent_id}"
    if name == "human" or fallback:
        return "human"
    role = role_id(name.removeprefix("role:"))
    if role in world.roles:
        return f"role:{role}"
    raise BusRefused("there is no such agent or role in this workspace", code="recipient_unknown", pointer="/to")


def _millis(ts: str) -> int:
    return int(datetime.fromisoformat(ts).timestamp() * 1000)


def _told(refused: BusRefused | None) -> None:
    if refused is not None:
        _log.warning("a session was not told of an event", code=refused.code)


def _ended(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (cause := task.exception()) is not None:
        code = cause.code if isinstance(cause, RedKeyError) else type(cause).__name__
        _log.error("a session is not told of its ledger any more", code=code, reason=str(cause))
