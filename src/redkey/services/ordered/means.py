"""The dependencies of an ordered workspace at one server."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from typing import Protocol, TypeVar

import msgspec

from redkey.commands.actor import Actor
from redkey.commands.draft import Draft
from redkey.ledger.ports import Clock, SequencedStore, StoreUnit, Unit
from redkey.reducers.world import World
from redkey.services.network_fees import FeeLimits
from redkey.services.ordered.messages import ProjectMessages
from redkey.services.outcome import Outcome
from redkey.services.submission import Submission

# How often to look for messages without a notification; and after a message of this server.
POLL_SECONDS, OWN_SECONDS = 2.0, 0.25
T = TypeVar("T")
# Returns the body with this hash, if another server has it; called in a thread.
Fetch = Callable[[str], bytes | None]
# Returns what the log must record of itself on a local topic: who signs its checkpoints.
Facts = Callable[[str], Sequence[Draft]]


class WritePath(Protocol):
    """What the driver needs of the coordinator."""

    async def submit(self, topic: str, caller: Actor, command: ProjectMessages) -> Outcome: ...

    async def act(self, topic: str, work: Callable[[Unit], T]) -> T: ...

    async def act_on_store(self, work: Callable[[StoreUnit], T]) -> T: ...

    async def create_topic(self, fact: str, topic: str | None = None) -> str: ...

    def resume(self, submission: Submission) -> None: ...

    def peek(self, topic: str) -> World: ...


class OrderMeans(msgspec.Struct, frozen=True, kw_only=True):
    """The dependencies of drivers. `fetch` asks other servers for bodies; `facts` returns the log's own facts.

    A message may be in doubt for minutes and keep its thread: `readers` are threads of their own, so that reading goes
    on meanwhile, which answers all others.
    """

    path: WritePath
    store: SequencedStore
    clock: Clock
    threads: Executor
    readers: Executor
    fetch: Fetch
    facts: Facts
    # The budgets for messages, per hour and per day.
    limits: FeeLimits
    poll_seconds: float = POLL_SECONDS
    own_seconds: float = OWN_SECONDS
