"""The declaration of `@rk.worker`: a handler, and how to claim its tasks."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from redkey.errors import CallMisused

Handler = Callable[..., Any]
ClaimMode = Literal["next", "race"]
# The API's limits.
_SHORTEST_LEASE, _LONGEST_LEASE = 5, 86_400


@dataclass(frozen=True, slots=True)
class Worker:
    """A handler for the tasks of one queue."""

    handler: Handler
    queue: str
    roles: tuple[str, ...]
    agent: str | dict[str, Any] | None
    concurrency: int
    lease_seconds: int
    claim: ClaimMode
    # Returns the seconds to wait before the next claim; called before each one.
    pause: Callable[[], float] = lambda: 0.0

    def __post_init__(self) -> None:
        if self.concurrency < 1:
            raise CallMisused("a worker has a concurrency of at least 1", code="concurrency_invalid")
        if not _SHORTEST_LEASE <= self.lease_seconds <= _LONGEST_LEASE:
            raise CallMisused(
                f"a lease has {_SHORTEST_LEASE} to {_LONGEST_LEASE} seconds; heartbeats extend it", code="invalid_lease"
            )
        if self.claim not in ("next", "race"):
            raise CallMisused(f"a worker claims by 'next' or by 'race', not {self.claim!r}", code="claim_invalid")

    @property
    def name(self) -> str:
        return getattr(self.handler, "__name__", type(self.handler).__name__)

    @property
    def is_async(self) -> bool:
        return inspect.iscoroutinefunction(self.handler) or inspect.iscoroutinefunction(
            getattr(self.handler, "__call__", None)  # noqa: B004
        )
