"""Routes: what an endpoint takes and gives, declared once. The adapter runs on these declarations and OpenAPI is
written from them, so that neither can say something else than the other.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

Handler = Callable[..., Awaitable[Any]]

# Who may call: any one of a route's scopes is enough, and admin keys may do everything in their workspace.
READ = ("read", "produce", "agent", "runner")
PRODUCE = ("produce",)
AGENT = ("agent", "runner")
ADMIN = ("admin",)
OPERATOR = ("operator",)
PUBLIC = ()


@dataclass(frozen=True, slots=True, eq=False)
class Route:
    """One operation. `body`, `query` and `reply` are structs; the handler gets `(call)` or `(call, body)`.

    `replies` documents statuses beyond those that follow from the declaration: status -> when it is given.
    A request that writes may carry an Idempotency-Key, unless `idempotent` says otherwise. A handler may return a
    `Raw` or a stream in place of the reply struct; `media` then names what it sends.
    """

    method: str
    path: str
    handler: Handler
    scopes: tuple[str, ...] = PUBLIC
    body: Any = None
    query: Any = None
    reply: Any = None
    status: int = 200
    summary: str = ""
    replies: Mapping[int, str] = field(default_factory=dict)
    idempotent: bool = True
    # The name of the limit in `config.Limits` that bounds the body.
    body_limit: str = "body_bytes"
    # True when the handler reads the body itself, chunk by chunk.
    streamed: bool = False
    media: tuple[str, ...] = ("application/json",)
    consumes: str = "application/json"
    # What errors look like where they are not problems.
    failure: Any = None
    # JSON shown in the documentation; tests hold them against the schemas.
    example: Any = None
    reply_example: Any = None

    @property
    def family(self) -> str:
        """The first word of the path, which groups the documentation."""
        return self.path.split("/")[1] or "redkey"

    @property
    def writes(self) -> bool:
        return self.method in ("POST", "PUT", "PATCH", "DELETE")

    @property
    def takes_key(self) -> bool:
        """Whether an Idempotency-Key means something here; a streamed body is its own key."""
        return self.writes and self.idempotent and not self.streamed

    @property
    def operation_id(self) -> str:
        return self.handler.__name__


class _Node:
    __slots__ = ("literal", "methods", "parameter")

    def __init__(self) -> None:
        self.literal: dict[str, _Node] = {}
        self.parameter: _Node | None = None
        self.methods: dict[str, tuple[Any, tuple[str, ...]]] = {}


class Table:
    """Finds the endpoint of a path: literal segments before parameters, so `/queues/x/tasks/batch` is what it says."""

    def __init__(self, endpoints: Iterable[tuple[Route, Any]]) -> None:
        self._root = _Node()
        for route, endpoint in endpoints:
            self._add(route, endpoint)

    def _add(self, route: Route, endpoint: Any) -> None:
        node, names = self._root, []
        for segment in route.path.split("/")[1:]:
            if segment.startswith("{"):
                names.append(segment[1:-1])
                node.parameter = node = node.parameter or _Node()
            else:
                node = node.literal.setdefault(segment, _Node())
        if route.method in node.methods:
            raise ValueError(f"{route.method} {route.path} is declared twice")
        node.methods[route.method] = endpoint, tuple(names)

    def find(self, path: str) -> tuple[Mapping[str, tuple[Any, tuple[str, ...]]], list[str]] | None:
        """The methods of a path with their endpoints, and the values of its parameters; None when there is none."""
        values: list[str] = []
        node = _walk(self._root, path.split("/"), 1, values)
        return (node.methods, values) if node is not None else None


def _walk(node: _Node, segments: list[str], index: int, values: list[str]) -> _Node | None:
    if index == len(segments):
        return node if node.methods else None
    segment = segments[index]
    below = node.literal.get(segment)
    if below is not None:
        found = _walk(below, segments, index + 1, values)
        if found is not None:
            return found
    if node.parameter is None or not segment:
        return None
    depth = len(values)
    values.append(segment)
    found = _walk(node.parameter, segments, index + 1, values)
    if found is None:
        del values[depth:]
    return found
