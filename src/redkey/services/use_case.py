"""Use cases: what RedKey does, one function for each operation, the same for every interface (API, A2A, MCP, bus).

A use case takes the caller first, then the parameters of the path, the body, the query. `UseCase.judge` is the one rule
of scopes: the API applies it before it reads a body, every other interface by calling the use case. A use case returns
its reply at once, or `Pending`, or a coroutine of either: a plain function costs no task of the event loop.
`Caller.reply` awaits all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Concatenate, Generic, ParamSpec, TypeVar

from redkey.commands.decision import Refused
from redkey.services.caller import Caller
from redkey.shapes.operation import Operation

P = ParamSpec("P")
Result = TypeVar("Result")


class UseCase(Generic[P, Result]):
    """The function of an operation. `run` is the function itself, for an interface that has checked the caller."""

    def __init__(self, operation: Operation, run: Callable[Concatenate[Caller, P], Result]) -> None:
        self.operation, self.run = operation, run
        self.__doc__ = run.__doc__
        self.scopes = operation.allowed_scopes

    def __call__(self, caller: Caller, *arguments: P.args, **named: P.kwargs) -> Result:
        self.judge(caller)
        return self.run(caller, *arguments, **named)

    def judge(self, caller: Caller) -> None:
        """Refuse a caller that has none of the scopes. An operation without scopes is open to all; a shared one checks
        callers without a key itself.
        """
        if self.operation.shared and not caller.actor.key_id:
            return
        if self.operation.scopes and self.scopes.isdisjoint(caller.actor.scopes):
            raise InsufficientScope(self.operation.scopes)


class InsufficientScope(Refused):
    """The key lacks the needed scope."""

    def __init__(self, scopes: tuple[str, ...]) -> None:
        super().__init__(403, "insufficient_scope", f"This needs a key with the scope {' or '.join(scopes)}.")
        self.scopes = scopes


def use_case(
    operation: Operation,
) -> Callable[[Callable[Concatenate[Caller, P], Result]], UseCase[P, Result]]:
    """Declare the function of an operation."""

    def declare(run: Callable[Concatenate[Caller, P], Result]) -> UseCase[P, Result]:
        return UseCase(operation, run)

    return declare
