"""Routes: what an endpoint takes and gives, declared once. The adapter runs on these declarations and OpenAPI is
written from them, so that neither can say something else than the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

# A plain function, or a coroutine function.
Handler = Callable[..., Any]

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
    # Where it differs from the handler's.
    name: str = field(default="", kw_only=True)
    description: str = field(default="", kw_only=True)
    scopes: tuple[str, ...] = PUBLIC
    body: Any = None
    query: Any = None
    reply: Any = None
    status: int = 200
    summary: str = ""
    replies: Mapping[int, str] = field(default_factory=dict)
    idempotent: bool = True
    # How a request that is repeated under its key gets the same bytes. "records": told again from what it recorded, and
    # kept when it recorded nothing; "parts": the same for a batch, whose parts have keys of their own; "bytes": kept as
    # it was sent, because the reply shows the state of its moment.
    repeats: Literal["records", "parts", "bytes"] = "records"
    # The name of the limit in `config.Limits` that bounds the body.
    body_limit: str = "body_bytes"
    # True when the handler reads the body itself, chunk by chunk.
    streamed: bool = False
    media: tuple[str, ...] = ("application/json",)
    consumes: str = "application/json"
    # What errors look like where they are not problems.
    failure: Any = None
    # True when every error has the shape `failure`, not only those that the body or the key cause.
    fails_alike: bool = False
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
        return self.name or self.handler.__name__


class Table:
    """Finds the endpoint of a path: literal segments before parameters, so `/queues/x/tasks/batch` is what it says.

    Paths of one shape (the same length, parameters at the same places) share a dictionary by their literal
    segments: to find one costs a lookup for each shape that a path of its length could have.
    """

    def __init__(self, endpoints: Iterable[tuple[Route, Any]]) -> None:
        # length -> for each shape, those with the most literals first: where they stand, what they lead to.
        self._shapes: dict[int, list[tuple[tuple[int, ...], dict[tuple[str, ...], Methods]]]] = {}
        for route, endpoint in endpoints:
            self._add(route, endpoint)
        for shapes in self._shapes.values():
            shapes.sort(key=lambda shape: (-len(shape[0]), shape[0]))

    def _add(self, route: Route, endpoint: Any) -> None:
        segments = route.path.split("/")
        literal = tuple(index for index, segment in enumerate(segments) if not segment.startswith("{"))
        shapes = self._shapes.setdefault(len(segments), [])
        named = next((named for places, named in shapes if places == literal), None)
        if named is None:
            named = {}
            shapes.append((literal, named))
        methods = named.setdefault(tuple(segments[index] for index in literal), {})
        if route.method in methods:
            raise ValueError(f"{route.method} {route.path} is declared twice")
        names = tuple((segments[index][1:-1], index) for index in range(len(segments)) if index not in literal)
        methods[route.method] = endpoint, names

    def find(self, path: str) -> tuple[Methods, list[str]] | None:
        """The methods of a path with their endpoints, and its segments; None when there is none."""
        segments = path.split("/")
        for places, named in self._shapes.get(len(segments), ()):
            methods = named.get(tuple([segments[index] for index in places]))
            # A parameter is never empty.
            if methods is not None and segments.count("") == 1:
                return methods, segments
        return None


# method -> its endpoint, and the names of the path's parameters with the segments that they are.
Methods = dict[str, tuple[Any, tuple[tuple[str, int], ...]]]
