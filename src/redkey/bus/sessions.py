"""Sessions of the bus: find, list, create and close them."""

from __future__ import annotations

from collections.abc import Iterator

from redkey.bus.commits import Done
from redkey.bus.core import Also, BusCore
from redkey.bus.feed import SessionFeed
from redkey.bus.model import KEY_MARK, SessionPolicy, SessionState
from redkey.errors import BusRefused


class SessionOperations(BusCore):
    """The operations on sessions; both faces call these."""

    # The workspace of this machine's owner, whose sessions have sockets under their ids.
    _home: str

    def session(self, session_id: str) -> SessionState:
        """Find a session, open or closed."""
        session = self._state.sessions.get(session_id) or self.log.session(session_id)
        if session is None:
            raise BusRefused("session not found", code="session_not_found", pointer="/session")
        return session

    def open_session(self, session_id: str) -> SessionState:
        """Find a session that must be open."""
        session = self._state.sessions.get(session_id)
        if session is not None and session.status == "open":
            return session
        if self.session(session_id).status == "closed":
            raise BusRefused("the session is closed", code="session_closed", pointer="/session")
        return self._state.open(session_id)

    def open_sessions(self) -> Iterator[SessionState]:
        """The open sessions."""
        return (session for session in self._state.sessions.values() if session.status == "open")

    def open_session_named(self, name: str | None, workspace: str) -> SessionState | None:
        """Find the first open session of a workspace with a name."""
        for session in self.open_sessions():
            if session.name == name and session.workspace == workspace:
                return session
        return None

    def key_of(self, session_id: str, workspace: str) -> str:
        """The key of a session: its id, with the workspace in front, because two workspaces may use the same id."""
        return session_id if workspace in ("", self._home) else f"{workspace}{KEY_MARK}{session_id}"

    def session_of_id(self, session_id: str, workspace: str) -> SessionState | None:
        """Find the session of a workspace by its id, open or closed."""
        # Sessions created before keys had a workspace are known by their id alone.
        for key in dict.fromkeys((self.key_of(session_id, workspace), session_id)):
            session = self._state.sessions.get(key) or self.log.session(key)
            if session is not None and session.workspace == workspace:
                return session
        return None

    def sessions(self, workspace: str, after: str, limit: int, status: str | None) -> list[SessionState]:
        """List sessions of a workspace by id, open and closed."""
        return self.log.sessions(workspace, self.key_of(after, workspace) if after else "", limit, status)

    def create_session(
        self,
        src: str,
        name: str | None,
        done: Done,
        *,
        session_id: str | None = None,
        workspace: str = "",
        policy: SessionPolicy = "open",
        also: Also = None,
    ) -> SessionState:
        """Create a session; refuse an id that exists."""
        key = self.key_of(session_id, workspace) if session_id is not None else ""
        if key and (key in self._state.sessions or self.log.session(key) is not None):
            raise BusRefused(
                "a session with this id exists already; use another id", code="session_exists", pointer="/id"
            )
        decided = self._state.create(self.now(), src, session_id, name, workspace, policy, self.key_of)
        self._feeds[decided.session.key] = SessionFeed(self.log, decided.session.number, 0)
        self._known.cover(decided.session.number)
        self._commit(decided, done, also=also)
        return decided.session

    def close_session(self, session_id: str, src: str, done: Done, *, also: Also = None) -> SessionState:
        """Close a session; its agents are disconnected and their messages deleted."""
        session = self._state.open(session_id)
        self._commit(self._state.close(session, self.now(), src), done, also=also)
        return session
