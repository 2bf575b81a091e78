"""Ask a human from inside a framework: block the task at once, and return the answer when the work starts again.

Frameworks catch the exceptions of tools and tell them to the model, so `Block` would not end the work. `Stopped` is no
`Exception`: it ends the framework's run, and `stoppable` turns it back.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from redkey.client.worker import Block, Context
from redkey.errors import WorkInterrupted

_context: ContextVar[Context] = ContextVar("context")


class Stopped(BaseException):
    """Ends the run of a framework; `reason` is what the worker reports."""

    def __init__(self, reason: Exception) -> None:
        super().__init__(str(reason))
        self.reason = reason


@contextmanager
def stoppable(ctx: Context) -> Iterator[None]:
    """Run a framework for a task: `ask` works inside, and `Stopped` raises its reason."""
    token = _context.set(ctx)
    try:
        yield
    except Stopped as stopped:
        raise stopped.reason from None
    finally:
        _context.reset(token)


def ask(question: str) -> str:
    """In a tool: return the answer of a human. Until there is one, block the task with the question."""
    answer = _context.get().answer
    if not answer:
        raise Stopped(Block(question))
    return answer


def check(ctx: Context) -> None:
    """Check the lease inside a framework, which may ignore exceptions and call its model again."""
    try:
        ctx.check()
    except WorkInterrupted as lost:
        raise Stopped(lost) from lost
