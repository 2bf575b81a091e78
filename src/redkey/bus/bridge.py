"""The bridge from a workspace's ledger to the bus; the other way is `recording`.

A session that is bound hears what is recorded in its workspace from then on; how far it has heard is kept with what
it was told, in one commit, so that a crash repeats nothing and leaves nothing out.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

import msgspec
import structlog

from redkey.bus.bus import Bus
from redkey.bus.envelope import EVERYBODY, Envelope
from redkey.bus.ledger_words import concerns, receiver, told
from redkey.bus.state import Session, Write
from redkey.commands.decision import Refused
from redkey.errors import BusRefused, RedKeyError
from redkey.services.notices import Batch, Following, Notices

_log = structlog.get_logger("redkey.bus.bridge")
_AGAIN_SECONDS = 1.0


class Bridge:
    """Every bound session of a bus."""

    def __init__(self, bus: Bus, notices: Notices) -> None:
        self._bus, self._notices = bus, notices
        self._telling: dict[str, asyncio.Task[None]] = {}

    def start(self) -> None:
        """Go on telling the sessions that were bound before."""
        self._bus.on_session(lambda _: None, self._closed)
        for session_id, cursor in self._bus.log.bound_sessions():
            try:
                session = self._bus.session(session_id)
                self._begin(session, self._follow(session, cursor))
            except RedKeyError as refused:
                _log.error("a session cannot be told of its ledger", session=session_id, code=refused.code)

    async def stop(self) -> None:
        for task in self._telling.values():
            task.cancel()
        for task in tuple(self._telling.values()):
            with suppress(asyncio.CancelledError):
                await task

    def is_bound(self, session: Session) -> bool:
        return session.key in self._telling

    async def bind(self, session: Session) -> None:
        """Tell a session what is recorded in its workspace from now on."""
        if self.is_bound(session):
            return
        following = self._follow(session)
        try:
            await self._write(("put_cursor", (following.position, session.number)))
        except BaseException:
            following.leave()
            raise
        if self.is_bound(session):
            # Another request bound it while this one waited.
            following.leave()
        else:
            self._begin(session, following)

    async def unbind(self, session: Session) -> None:
        task = self._telling.pop(session.key, None)
        if task is not None:
            task.cancel()
            await self._write(("put_cursor", (None, session.number)))

    def _closed(self, session: Session) -> None:
        task = self._telling.pop(session.key, None)
        if task is not None:
            task.cancel()

    def _follow(self, session: Session, after: int | None = None) -> Following:
        try:
            return self._notices.follow(session.workspace, after)
        except Refused as refused:
            raise BusRefused("this session belongs to no workspace", code="no_ledger") from refused

    def _begin(self, session: Session, following: Following) -> None:
        task = asyncio.get_running_loop().create_task(self._tell(session.key, following))
        self._telling[session.key] = task
        task.add_done_callback(lambda done: _ended(done, following))

    async def _tell(self, session_id: str, following: Following) -> None:
        while True:
            batch = await following.next()
            try:
                await self._tell_batch(session_id, batch)
            except BusRefused as refused:
                if refused.code != "unavailable":
                    raise
                # The bus cannot write now. The same events are sent again later, under the same ids.
                await asyncio.sleep(_AGAIN_SECONDS)
            else:
                following.position = batch.reached

    async def _tell_batch(self, session_id: str, batch: Batch) -> None:
        session = self._bus.open_session(session_id)
        # Without agents there is no one to tell, and no text to read.
        for notice in batch.notices(concerns) if session.agents else ():
            to = receiver(notice, session)
            if to is not None:
                self._send(session, told(notice, session, to, self._bus.now()))
        # After the messages in the same order: never durable before them.
        await self._write(("put_cursor", (batch.reached, session.number)))

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

    async def _write(self, write: Write) -> None:
        future: asyncio.Future[BusRefused | None] = asyncio.get_running_loop().create_future()
        self._bus.commits.add([write], lambda refused: None if future.done() else future.set_result(refused))
        refused = await future
        if refused is not None:
            raise refused


def _told(refused: BusRefused | None) -> None:
    if refused is not None:
        _log.warning("a session was not told of an event", code=refused.code)


def _ended(task: asyncio.Task[None], following: Following) -> None:
    following.leave()
    if not task.cancelled() and (cause := task.exception()) is not None:
        code = cause.code if isinstance(cause, RedKeyError) else type(cause).__name__
        _log.error("a session is not told of its ledger any more", code=code, reason=str(cause))
