"""The bus: sessions, agents and messages, each change durable before anybody learns of it.

Both faces (Unix sockets and HTTP) call the methods of this class and nothing below it, so they cannot differ. A method
raises BusRefused, or calls `done` once the change is durable (with None) or cannot become so (with why).
"""

from __future__ import annotations

from collections.abc import Callable

from redkey.bus.envelope import BUS
from redkey.bus.guarding import Guard
from redkey.bus.limits import BusLimits
from redkey.bus.log import Log
from redkey.bus.messages import Messages
from redkey.bus.presence import Presence
from redkey.bus.sessions import Sessions
from redkey.bus.state import Record, Route, Session

_FORGET_AT_ONCE = 500
_DAY = 86_400


class Bus(Sessions, Messages):
    """One bus on one log."""

    def __init__(
        self,
        log: Log,
        limits: BusLimits,
        *,
        wall: Callable[[], int],
        ids: Callable[[], str],
        route: Route,
        on_fatal: Callable[[BaseException], None],
        home: str = "",
    ) -> None:
        """`home` is the workspace of this machine's owner, whose sessions have sockets under their ids."""
        super().__init__(log, limits, wall=wall, ids=ids, on_fatal=on_fatal)
        self._home, self._route, self._owned = home, route, {}
        self._presence = Presence(limits, self._went_away)
        self._guard = Guard(self._find_message, self._find_owner, self._tell_refusal)
        self._load()

    def on_session(self, opened: Callable[[Session], None], closed: Callable[[Session], None]) -> None:
        """Call these when a session has begun or is over, durably; `opened` at once for those that are there."""
        self._opened.append(opened)
        self._closed.append(closed)
        for session in self._state.sessions.values():
            opened(session)

    def on_post(self, heard: Callable[[Session, Record], None]) -> None:
        """Call this with every record once it is durable."""
        self._posted.append(heard)

    def remove_dead(self) -> None:
        """Remove agents that are away for long: they have crashed, or nobody starts them any more."""
        since, long_since = (self._ago(days * _DAY) for days in (self.limits.away_days, self.limits.retention_days))
        for session in tuple(self.open_sessions()):
            for agent in tuple(session.agents.values()):
                seen = agent.seen_at
                if not agent.online and seen is not None and seen < (long_since if agent.waiting else since):
                    self.remove_agent(session.key, agent.id, lambda _: None, src=BUS, reason="away")

    async def forget_old(self) -> None:
        """Forget agents that died, records beyond the retention that wait for nobody, and answers older than a day."""
        self.remove_dead()
        old, answers = self._ago(self.limits.retention_days * _DAY), self._ago(_DAY)
        while await self.commits.aside(lambda: self.log.forget(old, _FORGET_AT_ONCE)):
            pass
        await self.commits.aside(lambda: self.log.forget_answers(answers))

    async def stop(self) -> None:
        """Make durable what was taken, then take nothing more."""
        self._presence.stop()
        self._deliveries.stop()
        await self.commits.stop()
        self.log.close()
