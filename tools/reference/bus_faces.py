"""The page about the two interfaces of the bus: every operation, how each interface calls it, and their differences.

The fields of the HTTP interface are read from its routes, those of the socket from the bus's own table, so a field that
only one interface accepts is found here. `tests/bus/test_faces.py` compares what both answer.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from redkey.bus.commands import COMMANDS, FIELDS
from redkey.bus.http.routes import PREFIX, ROUTES
from redkey.shapes import operation as shapes
from tools.reference.markdown import table

_INTRO = """# The two faces of the bus

Unix sockets and HTTP are two faces of one protocol ([bus.md](../bus.md)). Every operation of one is an operation of the
other, takes the same, and gives the same.
"""
_REST = """
`GET /api/health` and the routes under `/ledger` and `/record` belong to the server that hosts the face: a socket that
takes connections answers, and the ledger is reached with an API key.

Two things are outside this table. The commands of Weave v1 (`action.submit`, `action.result`, `message.created`,
`task.updated`, `task.done`, `relay.submit`) are a dialect of the socket: an agent by HTTP reads what they send as
messages, and cannot submit actions or relays. Presence follows the connection on the socket, and the requests of an
agent by HTTP, so `online` and its events differ with the way an agent comes, not with the face that is asked.
"""
# Commands of Weave v1, which is the socket's own dialect.
NEWER = ("action.", "relay.", "task.", "message.created")
_SESSION = "/sessions/{session_id}"
_OPERATIONS = tuple(route.operation for route in ROUTES)


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation: its command (the second one is for `user`, who acts for others), and its route."""

    name: str
    commands: tuple[str, ...]
    method: str
    path: str
    # Body fields that are in another place of the envelope, and fields that are in the path over HTTP.
    elsewhere: frozenset[str] = frozenset()


OPERATIONS = (
    Operation("list sessions", ("session.list",), "GET", "/sessions"),
    Operation("show a session", ("session.get",), "GET", _SESSION),
    Operation("create a session", ("session.create",), "POST", "/sessions"),
    Operation("close a session", ("session.close",), "POST", f"{_SESSION}/close"),
    Operation("follow sessions", ("sessions.stream",), "GET", "/sessions/stream"),
    Operation("list agents", ("agent.list",), "GET", f"{_SESSION}/agents"),
    Operation("add an agent", ("agent.add",), "POST", f"{_SESSION}/agents"),
    Operation(
        "change an agent",
        ("agent.update", "agent.change"),
        "PATCH",
        f"{_SESSION}/agents/{{agent_id}}",
        frozenset({"id"}),
    ),
    Operation("order agents", ("agent.order",), "POST", f"{_SESSION}/agents/order"),
    Operation("remove an agent", ("agent.remove",), "DELETE", f"{_SESSION}/agents/{{agent_id}}", frozenset({"id"})),
    Operation(
        "list waiting messages",
        ("message.list",),
        "GET",
        f"{_SESSION}/agents/{{agent_id}}/messages",
        frozenset({"agent"}),
    ),
    Operation(
        "send a message",
        ("message.send",),
        "POST",
        f"{_SESSION}/messages",
        # `dst`, `topic`, `src` and `ack` of the envelope, and what is under `codex` in its payload.
        frozenset(
            {
                *("agent_ids", "to", "src", "ack"),
                *("kind", "conversation_id", "conversation_owner", "parent_message_id", "reply_to"),
            }
        ),
    ),
    Operation("show a message", ("message.get",), "GET", f"{_SESSION}/messages/{{message_id}}", frozenset({"id"})),
    Operation(
        "confirm a message",
        ("message.ack",),
        "POST",
        f"{_SESSION}/messages/{{message_id}}/ack",
        frozenset({"acked", "agent_id"}),
    ),
    Operation("list events", ("events.history",), "GET", f"{_SESSION}/events"),
    Operation("follow events", ("events.stream",), "GET", f"{_SESSION}/events/stream"),
)


def differences() -> dict[str, list[str]]:
    """What only one interface has or accepts, by operation."""
    only_by_operation: dict[str, list[str]] = {}
    for operation in OPERATIONS:
        route = _route(operation)
        http = _fields(route.body) | _fields(route.query) if route is not None else set()
        for command in operation.commands:
            socket = set(FIELDS[command])
            only = [f"`{name}` by HTTP only" for name in sorted(http - socket - operation.elsewhere)]
            only += [f"`{name}` on the socket only" for name in sorted(socket - http - operation.elsewhere)]
            if route is None:
                only.append("no route")
            only_by_operation.setdefault(operation.name, []).extend(only)
    named = {command for operation in OPERATIONS for command in operation.commands}
    routes = {(operation.method, operation.path) for operation in OPERATIONS}
    for command in sorted(_core() - named):
        only_by_operation[command] = ["on the socket only"]
    for route in _OPERATIONS:
        if (route.method, route.path.removeprefix(PREFIX)) not in routes:
            only_by_operation[f"{route.method} {route.path}"] = ["by HTTP only"]
    return {name: only for name, only in only_by_operation.items() if only}


def page() -> str:
    """The table, with the differences in its last column."""
    differ = differences()
    rows = []
    for operation in OPERATIONS:
        commands = " / ".join(f"`{command}`" for command in operation.commands)
        takes = ", ".join(f"`{name}`" for name in FIELDS[operation.commands[0]])
        rows.append(
            (
                operation.name,
                commands,
                f"`{operation.method} {operation.path}`",
                takes,
                "; ".join(differ.get(operation.name, ())) or "none",
            )
        )
    return _INTRO + "\n" + table(("operation", "socket", "HTTP (under /api)", "takes", "differences"), rows) + _REST


def _core() -> set[str]:
    """The commands of the protocol that both interfaces serve."""
    return {name for name in COMMANDS if not name.startswith(NEWER)}


def _route(operation: Operation) -> shapes.Operation | None:
    wanted = operation.method, PREFIX + operation.path
    return next((route for route in _OPERATIONS if (route.method, route.path) == wanted), None)


def _fields(kind: type[msgspec.Struct] | None) -> set[str]:
    return {field.encode_name for field in msgspec.structs.fields(kind)} if kind is not None else set()
