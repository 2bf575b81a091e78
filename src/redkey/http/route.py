"""Routes: which handler answers an operation. What the operation takes and gives is its declaration
(`redkey.shapes.operation`), on which the adapter runs and from which OpenAPI is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from redkey.shapes.operation import Operation

# A plain function, or a coroutine function; it gets `(call)` or `(call, body)`.
Handler = Callable[..., Any]


@dataclass(frozen=True, slots=True, eq=False)
class Route:
    """An operation, and the handler that answers it.

    A handler may return a `Raw` or a stream in place of the reply struct; `media` of the operation then names what it
    sends.
    """

    operation: Operation
    handler: Handler


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
        operation = route.operation
        segments = operation.path.split("/")
        literal = tuple(index for index, segment in enumerate(segments) if not segment.startswith("{"))
        shapes = self._shapes.setdefault(len(segments), [])
        named = next((named for places, named in shapes if places == literal), None)
        if named is None:
            named = {}
            shapes.append((literal, named))
        methods = named.setdefault(tuple(segments[index] for index in literal), {})
        if operation.method in methods:
            raise ValueError(f"{operation.method} {operation.path} is declared twice")
        names = tuple((segments[index][1:-1], index) for index in range(len(segments)) if index not in literal)
        methods[operation.method] = endpoint, names

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
