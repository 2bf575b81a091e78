"""The means of use cases: what they read from, write through and wait for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Protocol

from redkey.config import Config
from redkey.ledger.ports import Clock, SequencedStore
from redkey.services.authority import Authority
from redkey.services.coordinator import Coordinator
from redkey.services.costs import Costs
from redkey.services.keys import KeyRing
from redkey.services.login_codes import LoginCodes
from redkey.services.signing import Signing
from redkey.services.subscriptions import Subscriptions
from redkey.services.tokens import Tokens


class Ids(Protocol):
    """Where ids and nonces come from."""

    def ulid(self) -> str: ...

    def nonce(self) -> bytes: ...


@dataclass(slots=True, kw_only=True)
class Means:
    """What use cases work with; the composition root fills it. Doors hand it on and do not look inside."""

    store: SequencedStore
    coordinator: Coordinator
    clock: Clock
    ids: Ids
    config: Config
    keys: KeyRing
    tokens: Tokens
    signing: Signing
    subscriptions: Subscriptions
    authority: Authority
    costs: Costs
    login_codes: LoginCodes
    # An empty store in memory, for simulations.
    scratch_store: Callable[[Clock], SequencedStore]
    threads: Executor
    # One thread for work on large bodies: however many come, they slow the loop as one does.
    heavy: Executor
    # Who begins the next piece of a batch, while several workspaces write.
    batch_turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    # Requests under an idempotency key that are being answered, where no unit would see the second one.
    flights: dict[tuple[str, str], asyncio.Future[None]] = field(default_factory=dict)
