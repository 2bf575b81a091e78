"""The two clients: `RedKey` answers at once, `AsyncRedKey` is awaited. Everything else about them is the same."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar
from weakref import WeakSet

from redkey.client.calls.families import Families
from redkey.client.operation import Async, ClientSender, Mode, Sync
from redkey.client.policy import Policy
from redkey.client.settings import Settings, find_settings
from redkey.client.worker.declared import ClaimMode, Worker
from redkey.client.worker.lease import Lease, now
from redkey.errors import CallMisused
from redkey.shapes.claims import Claimed, Missed, NoTasks, Rejected

if TYPE_CHECKING:
    from types import TracebackType

    import httpx2

    from redkey.client.async_connection import AsyncConnection
    from redkey.client.connection import Connection
    from redkey.client.hold import Hold
    from redkey.client.worker.crew import Crew
    from redkey.client.worker.tally import Tally

    SyncTransport = httpx2.BaseTransport
    AsyncTransport = httpx2.AsyncBaseTransport
else:
    # httpx2 is imported only by clients that need it.
    SyncTransport = AsyncTransport = Any

H = TypeVar("H", bound=Callable[..., Any])
# What a caller may hand to httpx2 in place of its own way to send.
Transport = TypeVar("Transport")
_KEY = re.compile(r"[ -~]{1,255}")


class _Client(Families[Mode], Generic[Mode, Transport]):
    """What both clients are: every family of calls, and workers."""

    settings: Settings
    policy: Policy
    _workers: list[Worker]
    _crew: Crew | None = None
    _connection: Any
    _transport: Transport | None
    _sender: ClientSender
    # Heartbeats of holds have connections of their own.
    _pulse: Connection | None = None
    _holds: WeakSet[Hold[Mode]]

    def __init__(
        self,
        url: str | None = None,
        api_key: str | None = None,
        *,
        data: str | Path | None = None,
        timeout: float = 30.0,
        max_retries: int = 4,
        transport: Transport | None = None,
    ) -> None:
        self.settings = find_settings(url, api_key, data, os.environ)
        self.policy = Policy(timeout, max_retries, origin=self.settings.origin)
        self._transport = transport
        self._connect()

    def worker(
        self,
        *,
        queue: str,
        roles: Sequence[str] = (),
        agent: str | dict[str, Any] | None = None,
        concurrency: int = 1,
        lease_seconds: int = 60,
        claim: ClaimMode = "next",
        pause: Callable[[], float] = lambda: 0.0,
    ) -> Callable[[H], H]:
        """Declare a function as the handler of a queue's tasks; `run` begins the work. See `redkey.client.worker`.

        `agent` is who claims: an agent's id, a name (registered when it is new), or an Agent Card. Without one the
        worker registers an agent for this run alone. Missing roles are granted, and a missing queue is made, when
        the key may. `pause` is asked before each claim: while it answers with seconds, the worker claims nothing.
        """
        declared = partial(
            Worker,
            queue=queue,
            roles=tuple(roles),
            agent=agent,
            concurrency=concurrency,
            lease_seconds=lease_seconds,
            claim=claim,
            pause=pause,
        )

        def declare(handler: H) -> H:
            self._workers.append(declared(handler))
            return handler

        return declare

    def with_options(
        self, *, timeout: float | None = None, max_retries: int | None = None, idempotency_key: str | None = None
    ) -> Self:
        """The same client over the same connections, with other options for the calls that are made through it."""
        other = object.__new__(type(self))
        other.settings, other._transport = self.settings, self._transport
        other.policy = _changed(self.policy, timeout, max_retries, idempotency_key)
        other._begin(self._connection)
        return other

    def keep(self, claimed: Claimed, *, lease_seconds: int, asked_at: float | None = None) -> Hold[Mode]:
        """Keep a claim that was won alive, without a handler, until its hold is ended; see `redkey.client.hold`.

        `lease_seconds` is the lease that was asked for with the claim, `asked_at` when (`redkey.client.hold.now`).
        """
        from redkey.client.connection import Connection
        from redkey.client.hold import Hold

        if self._pulse is None:
            self._pulse, self._holds = Connection(self.settings, self.policy), WeakSet()
        lease = Lease(lease_seconds, now() if asked_at is None else asked_at, claimed.lease_expires_at)
        hold: Hold[Mode] = Hold(self._sender, self._pulse, claimed, lease)
        self._holds.add(hold)
        return hold

    def _leave_holds(self) -> None:
        """Stop their heartbeats: what they still have is left to their leases."""
        if self._pulse is not None:
            for hold in list(self._holds):
                hold.close()
            self._pulse.close()

    def _connect(self) -> None:
        raise NotImplementedError

    def _begin(self, connection: Any) -> None:
        raise NotImplementedError

    def stop(self, *, at_once: bool = False) -> None:
        """End `run`, from whatever thread: handlers may finish, or what they hold is given back at once."""
        if self._crew is not None:
            self._crew.stop(at_once=at_once)

    def _open(self, sender: ClientSender) -> None:
        self._workers, self._sender = [], sender
        super()._open(sender)

    def __repr__(self) -> str:
        """Where it calls, never with which key."""
        return f"{type(self).__name__}({self.settings.shown_url!r})"


class RedKey(_Client[Sync, SyncTransport]):
    """The sync client. Threads may share one; close it, or use it in a `with` block.

    `url` is `http://host:port`, `https://host`, `host:port` or `unix:/path/to/socket`. What is not given comes from
    `REDKEY_URL`, `REDKEY_API_KEY` and `REDKEY_DATA`, then from the file that `redkey serve` left in its data directory.
    """

    def _connect(self) -> None:
        from redkey.client.connection import Connection

        self._begin(Connection(self.settings, self.policy, self._transport))

    def _begin(self, connection: Connection) -> None:
        from redkey.client.connection import SyncSender

        self._connection: Connection = connection
        self._open(SyncSender(connection, self.policy))

    def run(self, *, grace_seconds: float = 10.0) -> Tally:
        """Work until SIGTERM, SIGINT or `stop`: what became of the tasks.

        After a stop, handlers have `grace_seconds` to end; what they still hold then is given back.
        """
        from redkey.client.connection import Connection
        from redkey.client.worker.crew import Crew, stopped_by_signals

        # Heartbeats have connections of their own, unless the caller chose how there are any.
        pulse = Connection(self.settings, self.policy) if self._transport is None else self._connection
        self._crew = Crew(self._workers, self._connection, pulse, self.policy, grace_seconds)
        try:
            with stopped_by_signals(self._crew):
                return self._crew.run()
        finally:
            self._crew = None
            if pulse is not self._connection:
                pulse.close()

    def hold(
        self, queue: str, agent_id: str, *, lease_seconds: int = 60, wait: float = 0
    ) -> Hold[Sync] | Missed | Rejected | NoTasks:
        """Claim the next task of a queue and keep it, without a handler, until its hold is ended."""
        asked_at = now()
        found = self.queues.claim_next(queue, agent_id, lease_seconds=lease_seconds, wait=wait)
        return self.keep(found, lease_seconds=lease_seconds, asked_at=asked_at) if isinstance(found, Claimed) else found

    def hold_task(self, task_id: str, agent_id: str, *, lease_seconds: int = 60) -> Hold[Sync] | Missed | Rejected:
        """Claim this task and keep it, without a handler, until its hold is ended."""
        asked_at = now()
        found = self.tasks.claim(task_id, agent_id, lease_seconds=lease_seconds, with_task=True)
        return self.keep(found, lease_seconds=lease_seconds, asked_at=asked_at) if isinstance(found, Claimed) else found

    def close(self) -> None:
        """Close its connections. What its holds still have is left to their leases."""
        self._leave_holds()
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class AsyncRedKey(_Client[Async, AsyncTransport]):
    """The async client, for one event loop; close it, or use it in an `async with` block. Configured like `RedKey`."""

    def _connect(self) -> None:
        from redkey.client.async_connection import AsyncConnection

        self._begin(AsyncConnection(self.settings, self.policy, self._transport))

    def _begin(self, connection: AsyncConnection) -> None:
        from redkey.client.async_connection import AsyncSender

        self._connection: AsyncConnection = connection
        self._open(AsyncSender(connection, self.policy))

    async def run(self, *, grace_seconds: float = 10.0) -> Tally:
        """Work until SIGTERM, SIGINT, `stop` or cancellation: what became of the tasks.

        Async handlers run on this event loop; claims, heartbeats and verdicts are sent by threads, so that a handler
        that blocks the loop keeps its claim.
        """
        from redkey.client.connection import Connection
        from redkey.client.worker.crew import Crew, run_beside

        if self._transport is not None:
            raise CallMisused(
                "a worker's threads cannot use an async transport: run workers with RedKey(transport=...)",
                code="transport_unusable",
            )
        connection, pulse = (Connection(self.settings, self.policy) for _ in range(2))
        self._crew = Crew(self._workers, connection, pulse, self.policy, grace_seconds)
        try:
            return await run_beside(self._crew)
        finally:
            self._crew = None
            connection.close()
            pulse.close()

    async def hold(
        self, queue: str, agent_id: str, *, lease_seconds: int = 60, wait: float = 0
    ) -> Hold[Async] | Missed | Rejected | NoTasks:
        """Claim the next task of a queue and keep it, without a handler, until its hold is ended."""
        asked_at = now()
        found = await self.queues.claim_next(queue, agent_id, lease_seconds=lease_seconds, wait=wait)
        return self.keep(found, lease_seconds=lease_seconds, asked_at=asked_at) if isinstance(found, Claimed) else found

    async def hold_task(
        self, task_id: str, agent_id: str, *, lease_seconds: int = 60
    ) -> Hold[Async] | Missed | Rejected:
        """Claim this task and keep it, without a handler, until its hold is ended."""
        asked_at = now()
        found = await self.tasks.claim(task_id, agent_id, lease_seconds=lease_seconds, with_task=True)
        return self.keep(found, lease_seconds=lease_seconds, asked_at=asked_at) if isinstance(found, Claimed) else found

    async def close(self) -> None:
        """Close its connections. What its holds still have is left to their leases."""
        self._leave_holds()
        await self._connection.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


def _changed(policy: Policy, timeout: float | None, max_retries: int | None, idempotency_key: str | None) -> Policy:
    if idempotency_key is not None and not _KEY.fullmatch(idempotency_key):
        raise CallMisused("an idempotency key has 1 to 255 printable ASCII characters", code="idempotency_key_invalid")
    asked: dict[str, Any] = {
        "timeout_seconds": timeout,
        "max_retries": max_retries,
        "idempotency_key": idempotency_key,
    }
    return replace(policy, **{name: value for name, value in asked.items() if value is not None})
