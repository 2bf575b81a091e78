"""Sessions of the bus: find, list, create and close them."""

from __future__ import annotations

from collections.abc import Iterator

from redkey.bus.commits import Done
from redkey.bus.core import Also, Core
from redkey.bus.feed import Feed
from redkey.bus.state import KEY_MARK, Session, SessionPolicy
from redkey.errors import BusRefused


class Sessions(Core):
    """What both faces do with sessions."""

    # The workspace of this machine's owner, whose sessions have sockets under their ids.
    _home: str

    def session(self, session_id: str) -> Session:
        """A session, open or closed."""
        found = self._state.sessions.get(session_id) or self.log.session(session_id)
        if found is None:
            raise BusRefused("session not found", code="session_not_found", pointer="/session")
        return found

    def open_session(self, session_id: str) -> Session:
        """A session in which something may happen."""
        found = self._state.sessions.get(session_id)
        if found is not None and found.status == "open":
            return found
        if self.session(session_id).status == "closed":
            raise BusRefused("the session is closed", code="session_closed", pointer="/session")
        return self._state.open(session_id)

    def open_sessions(self) -> Iterator[Session]:
        return (session for session in self._state.sessions.values() if session.status == "open")

    def open_session_named(self, name: str | None, workspace: str) -> Session | None:
        """The first open session of a workspace that has a name."""
        for session in self.open_sessions():
            if session.name == name and session.workspace == workspace:
                return session
        return None

    def key_of(self, session_id: str, workspace: str) -> str:
        """What the bus knows a session by: ids belong to workspaces, and two of them may use the same."""
        return session_id if workspace in ("", self._home) else f"{workspace}{KEY_MARK}{session_id}"

    def session_of_id(self, session_id: str, workspace: str) -> Session | None:
        """The session of a workspace that has an id already, open or closed."""
        # Sessions that are older than this rule are known by their id alone.
        for key in dict.fromkeys((self.key_of(session_id, workspace), session_id)):
            found = self._state.sessions.get(key) or self.log.session(key)
            if found is not None and found.workspace == workspace:
                return found
        return None

    def sessions(self, workspace: str, after: str, limit: int, status: str | None) -> list[Session]:
        """Sessions of a workspace by id, open and closed."""
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
    ) -> Session:
        key = self.key_of(session_id, workspace) if session_id is not None else ""
        if key and (key in self._state.sessions or self.log.session(key) is not None):
            raise BusRefused("there is a session of this id already", code="session_exists", pointer="/id")
        decided = self._state.create(self.now(), src, session_id, name, workspace, policy, self.key_of)
        self._feeds[decided.session.key] = Feed(self.log, decided.session.number, 0)
        self._known.cover(decided.session.number)
        self._commit(decided, done, also=also)
        return decided.session

    def close_session(self, session_id: str, src: str, done: Done, *, also: Also = None) -> Session:
        session = self._state.open(session_id)
        self._commit(self._state.close(session, self.now(), src), done, also=also)
        return session
