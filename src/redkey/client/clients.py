"""The two clients: `RedKey` returns results, `AsyncRedKey` returns awaitables. Otherwise they are the same."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar
from weakref import WeakSet

import msgspec

from redkey.client.calls.families import Families
from redkey.client.operation import Async, ClientSender, Mode, Sync
from redkey.client.policy import RETRIES, Policy
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
    from redkey.client.worker.log import LogStyle
    from redkey.client.worker.tally import Tally

    SyncTransport = httpx2.BaseTransport
    AsyncTransport = httpx2.AsyncBaseTransport
else:
    # httpx2 is imported only by clients that need it.
    SyncTransport = AsyncTransport = Any

H = TypeVar("H", bound=Callable[..., Any])
# The httpx2 transports that a caller may pass in.
Transport = TypeVar("Transport")
_WORKER_RETRIES = 4
_KEY = re.compile(r"[ -~]{1,255}")


class _Client(Families[Mode], Generic[Mode, Transport]):
    """The base of both clients: the resources, the options and the workers."""

    settings: Settings
    policy: Policy
    _workers: list[Worker]
    _crew: Crew | None = None
    _connection: Any
    _transport: Transport | None
    _sender: ClientSender
    # The heartbeats of holds use their own connections.
    _pulse: Connection | None = None
    _holds: WeakSet[Hold[Mode]]

    def __init__(
        self,
        url: str | None = None,
        api_key: str | None = None,
        *,
        data: str | Path | None = None,
        timeout: float = 30.0,
        max_retries: int = RETRIES,
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
        """Declare a function as the handler of a queue's tasks; `run` starts the work. See `redkey.client.worker`.

        `agent` is the agent that claims: its id, a name (registered if it is new), or an Agent Card. Without one, the
        worker registers an agent for this run only. The worker grants missing roles and creates a missing queue if the
        key is allowed to. `pause` is called before each claim: while it returns seconds, the worker claims nothing.
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
        """Return a client over the same connections with other options."""
        other = object.__new__(type(self))
        other.settings, other._transport = self.settings, self._transport
        other.policy = _changed(self.policy, timeout, max_retries, idempotency_key)
        other._begin(self._connection)
        return other

    def keep(self, claimed: Claimed, *, lease_seconds: int, asked_at: float | None = None) -> Hold[Mode]:
        """Keep a won claim alive, without a handler, until its hold is ended; see `redkey.client.hold`.

        `lease_seconds` is the lease that the claim asked for; `asked_at` is the time of that request
        (`redkey.client.hold.now`).
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
        """Stop the heartbeats of all holds; their claims end when their leases expire."""
        if self._pulse is not None:
            for hold in list(self._holds):
                hold.close()
            self._pulse.close()

    def _connect(self) -> None:
        raise NotImplementedError

    def _begin(self, connection: Any) -> None:
        raise NotImplementedError

    def stop(self, *, at_once: bool = False) -> None:
        """End `run`, from any thread: handlers may finish, or their claims are released at once."""
        if self._crew is not None:
            self._crew.stop(at_once=at_once)

    @contextmanager
    def _crew_over(
        self, connection: Connection, transport: SyncTransport | None, grace_seconds: float
    ) -> Iterator[Crew]:
        """Create one run of the workers; agents with their own keys get their own connections."""
        from redkey.client.connection import Connection
        from redkey.client.worker.crew import Crew

        opened: list[Connection] = []

        def connect(api_key: str) -> Connection:
            opened.append(Connection(msgspec.structs.replace(self.settings, api_key=api_key), self.policy, transport))
            return opened[-1]

        # A worker waits by itself while the server is unreachable, and must notice a stop meanwhile.
        policy = replace(self.policy, max_retries=min(self.policy.max_retries, _WORKER_RETRIES))
        self._crew = Crew(self._workers, connection, connect, policy, grace_seconds)
        try:
            yield self._crew
        finally:
            self._crew = None
            # A transport that the caller passed in is closed by the caller.
            for one in opened if transport is None else ():
                one.close()

    def _open(self, sender: ClientSender) -> None:
        self._workers, self._sender = [], sender
        super()._open(sender)

    def __repr__(self) -> str:
        """Show the server, but never the key."""
        return f"{type(self).__name__}({self.settings.shown_url!r})"


class RedKey(_Client[Sync, SyncTransport]):
    """The sync client. Threads may share it; close it, or use it in a `with` block.

    `url` is `http://host:port`, `https://host`, `host:port` or `unix:/path/to/socket`. Missing arguments come from
    `REDKEY_URL`, `REDKEY_API_KEY` and `REDKEY_DATA`, then from the file that `redkey serve` wrote to its data
    directory.
    """

    def _connect(self) -> None:
        from redkey.client.connection import Connection

        self._begin(Connection(self.settings, self.policy, self._transport))

    def _begin(self, connection: Connection) -> None:
        from redkey.client.connection import SyncSender

        self._connection: Connection = connection
        self._open(SyncSender(connection, self.policy))

    def run(self, *, grace_seconds: float = 10.0, log: LogStyle = "auto") -> Tally:
        """Work until SIGTERM, SIGINT or `stop`; return the tally of the tasks.

        After a stop, handlers have `grace_seconds` to finish; then their claims are released. `log` says how the
        worker's log is written to standard error: `text`, `json`, `quiet` (warnings and errors only), or `auto`: text
        if the program has not set up logging itself.
        """
        from redkey.client.worker.log import shown
        from redkey.client.worker.signals import stopped_by_signals

        with (
            shown(log),
            self._crew_over(self._connection, self._transport, grace_seconds) as crew,
            stopped_by_signals(crew),
        ):
            return crew.run()

    def hold(
        self, queue: str, agent_id: str, *, lease_seconds: int = 60, wait: float = 0
    ) -> Hold[Sync] | Missed | Rejected | NoTasks:
        """Claim the next task of a queue and keep it, without a handler, until the hold is ended."""
        asked_at = now()
        outcome = self.queues.claim_next(queue, agent_id, lease_seconds=lease_seconds, wait=wait)
        if not isinstance(outcome, Claimed):
            return outcome
        return self.keep(outcome, lease_seconds=lease_seconds, asked_at=asked_at)

    def hold_task(self, task_id: str, agent_id: str, *, lease_seconds: int = 60) -> Hold[Sync] | Missed | Rejected:
        """Claim this task and keep it, without a handler, until the hold is ended."""
        asked_at = now()
        outcome = self.tasks.claim(task_id, agent_id, lease_seconds=lease_seconds, with_task=True)
        if not isinstance(outcome, Claimed):
            return outcome
        return self.keep(outcome, lease_seconds=lease_seconds, asked_at=asked_at)

    def close(self) -> None:
        """Close the connections. Claims that are still held end when their leases expire."""
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

    async def run(self, *, grace_seconds: float = 10.0, log: LogStyle = "auto") -> Tally:
        """Work until SIGTERM, SIGINT, `stop` or cancellation; return the tally of the tasks. `log` is as in `RedKey`.

        Async handlers run on this event loop. Threads send claims, heartbeats and verdicts, so a handler that blocks
        the loop keeps its claim.
        """
        from redkey.client.connection import Connection
        from redkey.client.worker.log import shown
        from redkey.client.worker.signals import run_beside

        if self._transport is not None:
            raise CallMisused(
                "a worker's threads cannot use an async transport: run workers with RedKey(transport=...)",
                code="transport_unusable",
            )
        with (
            closing(Connection(self.settings, self.policy)) as connection,
            shown(log),
            self._crew_over(connection, None, grace_seconds) as crew,
        ):
            return await run_beside(crew)

    async def hold(
        self, queue: str, agent_id: str, *, lease_seconds: int = 60, wait: float = 0
    ) -> Hold[Async] | Missed | Rejected | NoTasks:
        """Claim the next task of a queue and keep it, without a handler, until the hold is ended."""
        asked_at = now()
        outcome = await self.queues.claim_next(queue, agent_id, lease_seconds=lease_seconds, wait=wait)
        if not isinstance(outcome, Claimed):
            return outcome
        return self.keep(outcome, lease_seconds=lease_seconds, asked_at=asked_at)

    async def hold_task(
        self, task_id: str, agent_id: str, *, lease_seconds: int = 60
    ) -> Hold[Async] | Missed | Rejected:
        """Claim this task and keep it, without a handler, until the hold is ended."""
        asked_at = now()
        outcome = await self.tasks.claim(task_id, agent_id, lease_seconds=lease_seconds, with_task=True)
        if not isinstance(outcome, Claimed):
            return outcome
        return self.keep(outcome, lease_seconds=lease_seconds, asked_at=asked_at)

    async def close(self) -> None:
        """Close the connections. Claims that are still held end when their leases expire."""
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
