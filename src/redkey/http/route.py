"""Routes: the handler of each operation, and the lookup of routes by path.

An operation declares its path, request and reply (`redkey.shapes.operation`). The adapter follows that declaration, and
OpenAPI is generated from it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from redkey.shapes.operation import Operation

# A plain function, or a coroutine function; it gets `(call)` or `(call, body)`.
Handler = Callable[..., Any]


@dataclass(frozen=True, slots=True, eq=False)
class Route:
    """An operation and its handler.

    A handler may return a `Raw` or a stream instead of the reply struct; `media` of the operation then has its media
    type.
    """

    operation: Operation
    handler: Handler


class Table:
    """Finds the endpoint of a path. Literal segments win over parameters: `/queues/x/tasks/batch` is the batch route.

    Paths of one shape (the same length, parameters at the same places) share a dictionary keyed by their literal
    segments. So a search takes one lookup for each shape of the path's length.
    """

    def __init__(self, endpoints: Iterable[tuple[Route, Any]]) -> None:
        # length -> indexes of the literal segments of a shape -> literal segments -> methods.
        shapes: dict[int, dict[tuple[int, ...], dict[Any, Methods]]] = {}
        for route, endpoint in endpoints:
            _add(shapes, route, endpoint)
        # length -> (getter of the literal segments, methods by these segments); shapes with the most literals first.
        self._shapes = {
            length: [
                (itemgetter(*places), named)
                for places, named in sorted(by_places.items(), key=lambda shape: (-len(shape[0]), shape[0]))
            ]
            for length, by_places in shapes.items()
        }

    def find(self, path: str) -> tuple[Methods, list[str]] | None:
        """Return the methods of a path with their endpoints, and its segments; None if no route matches."""
        segments = path.split("/")
        for literals, named in self._shapes.get(len(segments), ()):
            methods = named.get(literals(segments))
            # A parameter is never empty.
            if methods is not None and segments.count("") == 1:
                return methods, segments
        return None


def _add(shapes: dict[int, dict[tuple[int, ...], dict[Any, Methods]]], route: Route, endpoint: Any) -> None:
    operation = route.operation
    segments = operation.path.split("/")
    # Every path begins with an empty segment, so there is always a literal.
    literal = tuple(index for index, segment in enumerate(segments) if not segment.startswith("{"))
    named = shapes.setdefault(len(segments), {}).setdefault(literal, {})
    methods = named.setdefault(itemgetter(*literal)(segments), {})
    if operation.method in methods:
        raise ValueError(f"{operation.method} {operation.path} is declared twice")
    names = tuple((segments[index][1:-1], index) for index in range(len(segments)) if index not in literal)
    methods[operation.method] = endpoint, names


# method -> its endpoint, and the path parameters as (name, index of the segment).
Methods = dict[str, tuple[Any, tuple[tuple[str, int], ...]]]
