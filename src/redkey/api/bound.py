"""Routes of use cases: each parses the request, calls its use case and renders the reply."""

from __future__ import annotations

from typing import Any

from redkey.api.call import Call
from redkey.http.route import Handler, Route
from redkey.services.use_case import UseCase, use_case
from redkey.shapes.operation import ANSWERS
from redkey.shapes.operations import operations


def bound(use: UseCase[Any, Any], handler: Handler | None = None) -> Route:
    """The route of a use case. The adapter checks the caller's scopes before it reads the body.

    Pass `handler` if HTTP itself matters, for example for a streamed body; it calls the use case.
    """
    return Route(use.operation, handler or _handler(use))


def answered() -> list[Route]:
    """The routes of the use cases that are defined beside their declarations."""
    return [bound(use_case(operation)(ANSWERS[operation])) for operation in operations() if operation in ANSWERS]


def _handler(use: UseCase[Any, Any]) -> Handler:
    """Call the use case with the parameters of the path, then the body, then the query."""
    run, names = use.run, use.operation.path_names
    if use.operation.takes_body:
        if use.operation.query is not None:
            return lambda call, body: run(call, *map(call.path.__getitem__, names), body, call.query)
        if len(names) == 1:
            (name,) = names
            # The most frequent kind of request that writes.
            return lambda call, body: run(call, call.path[name], body)
        return lambda call, body: run(call, *map(call.path.__getitem__, names), body)

    def without_body(call: Call) -> Any:
        values = [call.path[name] for name in names]
        return run(call, *values, call.query) if use.operation.query is not None else run(call, *values)

    return without_body
