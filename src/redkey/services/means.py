"""The dependencies of use cases: what they read from, write through and wait for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Protocol

from redkey.config import Config
from redkey.ledger.ports import Clock, SequencedStore
from redkey.services.authority import Authority
from redkey.services.coordinator import Coordinator
from redkey.services.costs import Costs
from redkey.services.identity_provider import IdentityProvider
from redkey.services.keys import KeyRing
from redkey.services.login_codes import LoginCodes
from redkey.services.mail import Mail
from redkey.services.ordered.hosting import Orders
from redkey.services.people import LiveSessions
from redkey.services.signing import Signing
from redkey.services.signups import Signups
from redkey.services.subscriptions import Subscriptions
from redkey.services.tokens import Tokens


class Ids(Protocol):
    """The source of ids and nonces."""

    def ulid(self) -> str: ...

    def nonce(self) -> bytes: ...


@dataclass(slots=True, kw_only=True)
class Means:
    """The dependencies of use cases; the composition root fills it. Interfaces pass it on and do not look inside."""

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
    signups: Signups
    live_sessions: LiveSessions
    mail: Mail
    identity_provider: IdentityProvider
    # The workspaces that a network orders; None if the configuration names no network.
    orders: Orders | None = None
    # The registered servers that do not know some rules yet, where several servers share a store.
    servers_behind: Callable[[int], Sequence[str]] = lambda rules: ()
    # An empty store in memory, for simulations.
    scratch_store: Callable[[Clock], SequencedStore]
    threads: Executor
    # One thread for work on large bodies: however many come, they slow the loop as one does.
    heavy: Executor
    # Limits which batch starts its next piece, while several workspaces write.
    batch_turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    # Requests under an idempotency key that are being answered, where no unit would notice the second one.
    flights: dict[tuple[str, str], asyncio.Future[None]] = field(default_factory=dict)
