"""The bus: sessions, agents and messages. Each change is durable before it is published.

Both faces (Unix sockets and HTTP) call the methods of this class and nothing below it, so they behave the same. A
method raises BusRefused, or calls `done`: with None once the change is durable, or with the error if it failed.
"""

from __future__ import annotations

from collections.abc import Callable

from redkey.bus.envelope import BUS
from redkey.bus.guard import Guard
from redkey.bus.limits import BusLimits
from redkey.bus.log import BusLog
from redkey.bus.messages import MessageOperations
from redkey.bus.model import Route, SessionRecord, SessionState
from redkey.bus.presence import Presence
from redkey.bus.sessions import SessionOperations

_FORGET_BATCH = 500
_DAY = 86_400


class Bus(SessionOperations, MessageOperations):
    """One bus on one log."""

    def __init__(
        self,
        log: BusLog,
        limits: BusLimits,
        *,
        wall: Callable[[], int],
        ids: Callable[[], str],
        route: Route,
        on_fatal: Callable[[BaseException], None],
        home: str = "",
    ) -> None:
        """`home` is the workspace of this machine's owner; its sessions are known by their bare ids."""
        super().__init__(log, limits, wall=wall, ids=ids, on_fatal=on_fatal)
        self._home, self._route, self._owned = home, route, {}
        self._presence = Presence(limits, self._went_away)
        self._guard = Guard(self._find_message, self._find_owner, self._report_refusal)
        self._load()

    def on_session(self, opened: Callable[[SessionState], None], closed: Callable[[SessionState], None]) -> None:
        """Call back when a session is durably created or closed; `opened` also now for each open session."""
        self._opened.append(opened)
        self._closed.append(closed)
        for session in self._state.sessions.values():
            opened(session)

    def on_post(self, posted: Callable[[SessionState, SessionRecord], None]) -> None:
        """Call back with every record once it is durable."""
        self._posted.append(posted)

    def remove_dead(self) -> None:
        """Remove agents that have been away for days: they crashed, or are no longer started."""
        since, long_since = (self._ago(days * _DAY) for days in (self.limits.away_days, self.limits.retention_days))
        for session in tuple(self.open_sessions()):
            for agent in tuple(session.agents.values()):
                seen = agent.seen_at
                if not agent.online and seen is not None and seen < (long_since if agent.waiting else since):
                    self.remove_agent(session.key, agent.id, lambda _: None, src=BUS, reason="away")

    async def forget_old(self) -> None:
        """Delete dead agents, expired records that wait for no agent, and HTTP answers older than a day."""
        self.remove_dead()
        old, answers = self._ago(self.limits.retention_days * _DAY), self._ago(_DAY)
        while await self.commits.aside(lambda: self.log.forget(old, _FORGET_BATCH)):
            pass
        await self.commits.aside(lambda: self.log.forget_answers(answers))

    async def stop(self) -> None:
        """Commit what was accepted, then accept nothing more."""
        self._presence.stop()
        self._deliveries.stop()
        await self.commits.stop()
        self.log.close()
