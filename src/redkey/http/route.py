"""Routes: which handler answers an operation. What the operation takes and gives is its declaration
(`redkey.shapes.operation`), on which the adapter runs and from which OpenAPI is written.
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
        # length -> where the literals of each shape stand -> what they lead to.
        shapes: dict[int, dict[tuple[int, ...], dict[Any, Methods]]] = {}
        for route, endpoint in endpoints:
            _add(shapes, route, endpoint)
        # length -> how to take the literals of a path, what they lead to; shapes with the most literals first.
        self._shapes = {
            length: [
                (itemgetter(*places), named)
                for places, named in sorted(by_places.items(), key=lambda shape: (-len(shape[0]), shape[0]))
            ]
            for length, by_places in shapes.items()
        }

    def find(self, path: str) -> tuple[Methods, list[str]] | None:
        """The methods of a path with their endpoints, and its segments; None when there is none."""
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


# method -> its endpoint, and the names of the path's parameters with the segments that they are.
Methods = dict[str, tuple[Any, tuple[tuple[str, int], ...]]]
