"""What a command reads from its envelope: its session, its sender and the fields of its payload, each checked."""

from __future__ import annotations

from redkey.bus.connection import BusConnection
from redkey.bus.envelope import USER, Envelope
from redkey.bus.model import KEY_MARK, SessionState
from redkey.errors import BusRefused

# A connection follows at most this many streams at once.
_STREAMS = 64
_STATUS_LIMIT = 100


def session_id_of(connection: BusConnection, request: Envelope) -> str:
    """The session of a command: the one it names, or the one of the socket that it came by."""
    bound = connection.bound_session
    if bound is not None:
        if request.session and request.session not in (bound, bound.rpartition(KEY_MARK)[2]):
            raise BusRefused(
                "this socket belongs to another session; use that session's socket or the main one",
                code="session_mismatch",
                pointer="/session",
            )
        return bound
    if not request.session:
        raise BusRefused("this command needs a session", code="session_missing", pointer="/session")
    return request.session


def open_session_of(connection: BusConnection, request: Envelope) -> SessionState:
    """Find the session of a command; it must be open."""
    return connection.bus.open_session(session_id_of(connection, request))


def own_id(request: Envelope, key: str) -> str:
    """Refuse an id that is not the sender's own."""
    if key != request.src:
        raise BusRefused("id must be the sender's own (src)", code="id_mismatch", pointer="/payload/id")
    return key


def check_speaker(connection: BusConnection, session: SessionState, key: str) -> None:
    """Refuse a sender that another connection added, or none; `user` may use any connection of this machine."""
    if key != USER and connection.bus.speaker(session, key) is not connection:
        message = "src is not an agent that this connection has added; send agent.add first"
        raise BusRefused(message, code="src_not_bound", pointer="/src")


def check_user(request: Envelope) -> None:
    """Refuse a command that only the person at this machine may send."""
    if request.src != USER:
        raise BusRefused(
            f"only the person at this machine may do this: send it with src {USER!r}",
            code="src_not_user",
            pointer="/src",
        )


def check_stream(connection: BusConnection, request: Envelope) -> None:
    """Refuse a stream whose id is in use, or one too many."""
    if request.id in connection.streams:
        raise BusRefused(
            "this connection follows a stream with this id already; use a new id", code="id_reused", pointer="/id"
        )
    if len(connection.streams) >= _STREAMS:
        raise BusRefused(f"a connection follows at most {_STREAMS} streams", code="too_many_streams")


def flag_field(request: Envelope, name: str) -> bool:
    """Read true or false from the payload; false if absent."""
    value = request.fields().get(name, False)
    if not isinstance(value, bool):
        raise BusRefused(f"{name} must be true or false", code="payload_invalid", pointer=f"/payload/{name}")
    return value


def text_field(request: Envelope, name: str) -> str | None:
    """Read a string from the payload; None if absent."""
    value = request.fields().get(name)
    if value is not None and not isinstance(value, str):
        raise BusRefused(f"{name} must be a string", code="payload_invalid", pointer=f"/payload/{name}")
    return value


def status_field(request: Envelope) -> str | None:
    """Read the status of an agent; None if absent."""
    status = text_field(request, "status")
    if status is not None and len(status) > _STATUS_LIMIT:
        message = f"a status has at most {_STATUS_LIMIT} characters"
        raise BusRefused(message, code="payload_invalid", pointer="/payload/status")
    return status


def wait_field(request: Envelope) -> float:
    """Read how many seconds a long poll waits; 0 if absent."""
    value = request.fields().get("wait", 0)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e6:
        raise BusRefused("wait must be a number of seconds", code="payload_invalid", pointer="/payload/wait")
    return float(value)


def count_field(request: Envelope, name: str, default: int = 0) -> int:
    """Read a whole number from the payload."""
    value = request.fields().get(name, default)
    if type(value) is not int or value < 0:
        raise BusRefused(
            f"{name} must be a whole number, 0 or greater", code="payload_invalid", pointer=f"/payload/{name}"
        )
    return value
