"""The bridge from a workspace's ledger to the bus; `recording` is the other direction.

A bound session receives the events recorded in its workspace from then on. Its position in the ledger is committed
after the messages that were sent for it, in order, so a crash neither repeats nor omits an event.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

import msgspec
import structlog

from redkey.bus.bus import Bus
from redkey.bus.envelope import ALL_AGENTS, Envelope
from redkey.bus.ledger_messages import concerns, event_message, receiver
from redkey.bus.model import SessionState, Write
from redkey.commands.decision import Refused
from redkey.errors import BusRefused, RedKeyError, StoreError, StorePoisoned
from redkey.services.notices import Batch, Following, Notices

_log = structlog.get_logger("redkey.bus.bridge")
_AGAIN_SECONDS = 1.0


class Bridge:
    """All sessions of a bus that are bound to a ledger."""

    def __init__(self, bus: Bus, notices: Notices) -> None:
        self._bus, self._notices = bus, notices
        self._followers: dict[str, asyncio.Task[None]] = {}

    def start(self) -> None:
        """Resume the sessions that were bound before."""
        self._bus.on_session(lambda _: None, self._closed)
        for session_id, cursor in self._bus.log.bound_sessions():
            try:
                session = self._bus.session(session_id)
                self._begin(session, self._follow(session, cursor))
            except RedKeyError as refused:
                _log.error("a bound session cannot be resumed", session=session_id, code=refused.code)

    async def stop(self) -> None:
        """Stop following; the positions stay in the log."""
        for task in self._followers.values():
            task.cancel()
        for task in tuple(self._followers.values()):
            with suppress(asyncio.CancelledError):
                await task

    def is_bound(self, session: SessionState) -> bool:
        """Whether a session receives the events of its workspace."""
        return session.key in self._followers

    async def bind(self, session: SessionState) -> None:
        """Send a session the events recorded in its workspace from now on."""
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

    async def unbind(self, session: SessionState) -> None:
        """Send a session no more events of its workspace."""
        task = self._followers.pop(session.key, None)
        if task is not None:
            task.cancel()
            await self._write(("put_cursor", (None, session.number)))

    def _closed(self, session: SessionState) -> None:
        task = self._followers.pop(session.key, None)
        if task is not None:
            task.cancel()

    def _follow(self, session: SessionState, after: int | None = None) -> Following:
        try:
            return self._notices.follow(session.workspace, after)
        except Refused as refused:
            raise BusRefused("this session belongs to no workspace, so it has no ledger", code="no_ledger") from refused

    def _begin(self, session: SessionState, following: Following) -> None:
        task = asyncio.get_running_loop().create_task(self._tell(session.key, following))
        self._followers[session.key] = task
        task.add_done_callback(lambda done: _ended(done, following))

    async def _tell(self, session_id: str, following: Following) -> None:
        while True:
            try:
                batch = await following.next()
                await self._tell_batch(session_id, batch)
            except StoreError as failure:
                if isinstance(failure, StorePoisoned):
                    raise
                # The ledger cannot be read now, as while a database is away.
                await asyncio.sleep(_AGAIN_SECONDS)
            except BusRefused as refused:
                if refused.code != "unavailable":
                    raise
                # The bus cannot write now. The same events are sent again later, with the same ids.
                await asyncio.sleep(_AGAIN_SECONDS)
            else:
                following.position = batch.reached

    async def _tell_batch(self, session_id: str, batch: Batch) -> None:
        session = self._bus.open_session(session_id)
        # Without agents there is no receiver, so the texts need not be read.
        for notice in batch.notices(concerns) if session.agents else ():
            to = receiver(notice, session)
            if to is not None:
                self._send(session, event_message(notice, session, to, self._bus.now()))
        # Added after the messages, so it is never durable before them.
        await self._write(("put_cursor", (batch.reached, session.number)))

    def _send(self, session: SessionState, envelope: Envelope) -> None:
        try:
            self._bus.send(session.key, envelope, _log_refusal)
        except BusRefused as refused:
            if refused.code != "mailbox_full" or envelope.topic != ALL_AGENTS:
                _log.warning("a session did not get an event of its ledger", session=session.key, code=refused.code)
                return
            # One mailbox is full; send to the other agents one by one.
            for key in session.agents:
                single = msgspec.structs.replace(envelope, id=f"{envelope.id}:{key}"[:128], topic=None, dst=key)
                with suppress(BusRefused):
                    self._bus.send(session.key, single, _log_refusal)

    async def _write(self, write: Write) -> None:
        future: asyncio.Future[BusRefused | None] = asyncio.get_running_loop().create_future()
        self._bus.commits.add([write], lambda refused: None if future.done() else future.set_result(refused))
        refused = await future
        if refused is not None:
            raise refused


def _log_refusal(refused: BusRefused | None) -> None:
    if refused is not None:
        _log.warning("a session did not get an event of its ledger", code=refused.code)


def _ended(task: asyncio.Task[None], following: Following) -> None:
    following.leave()
    if not task.cancelled() and (cause := task.exception()) is not None:
        code = cause.code if isinstance(cause, RedKeyError) else type(cause).__name__
        _log.error("a session no longer gets the events of its ledger", code=code, reason=str(cause))
