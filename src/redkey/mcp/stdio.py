"""`redkey mcp`: MCP over standard input and output, for one client process.

The process is one agent (`slots`), finds or starts its server at the first call (`place`), and renews its leases in
threads. When the client closes standard input, or a signal ends this process, it releases everything that it holds.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcp.server.mcpserver import Context

from redkey.client import AsyncRedKey, Hold
from redkey.client.agent_slots import Slot
from redkey.client.hold import now
from redkey.client.operation import Async
from redkey.errors import ClientError, RedKeyError, Unauthorized, Unreachable
from redkey.mcp.agent import enter
from redkey.mcp.live import ProjectBus
from redkey.mcp.place import ServerPlace, find_place, project_name
from redkey.mcp.server import build
from redkey.mcp.session import AgentSession, Extensions, HeldClaim, live_claims
from redkey.mcp.slots import take_slot
from redkey.shapes.claims import Claimed, ClaimNextOutcome

# Short, because this process renews it: a client that is killed loses its task after this time.
LEASE_SECONDS = 60
# How long the release of claims may take; after that their leases expire.
_LEAVING_SECONDS = 2.0
_ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


@dataclass(frozen=True)
class Options:
    """The options of `redkey mcp`."""

    queue: str = "default"
    roles: tuple[str, ...] = ()
    # The first part of the slot names; if empty, the client's own name.
    agent: str = ""
    lease_seconds: int = LEASE_SECONDS


@dataclass(frozen=True)
class _OpenRequest:
    """A claim-next request that is repeated until it is answered."""

    key: str
    queue: str
    wait: float
    extensions: Extensions


class StdioSession(AgentSession):
    """The agent of this process and what it holds."""

    def __init__(
        self, client: AsyncRedKey, agent_id: str, options: Options, directory: Path, place: ServerPlace
    ) -> None:
        super().__init__(client, agent_id, options.queue)
        self._place = place
        self.lease_seconds: int = options.lease_seconds
        self.directory = directory
        self._holds: dict[str, Hold[Async]] = {}
        self._left_over: list[Claimed] = []
        # Requests without an answer: their keys return the claim again if it was won.
        self._unanswered: list[_OpenRequest] = []

    async def adopt(self) -> None:
        """Resume the claims that the last process in the slot held and could not release."""
        for claim in [claim async for claim in live_claims(self.client, self.agent_id)]:
            outcome = await self.claim(claim.task_id)
            if isinstance(outcome, Claimed):
                self._left_over.append(outcome)

    def left_over(self) -> Claimed | None:
        while self._left_over:
            claimed = self._left_over.pop(0)
            if claimed.claim_id in self._holds:
                return claimed
        return None

    async def claim_next(self, queue: str, wait: float, extensions: Extensions = None) -> ClaimNextOutcome:
        while self._unanswered:
            outcome = await self._send(self._unanswered.pop())
            if isinstance(outcome, Claimed):
                return outcome
        return await self._send(_OpenRequest(self.client.policy.new_key(), queue, wait, extensions))

    async def _send(self, request: _OpenRequest) -> ClaimNextOutcome:
        asked_at = now()
        queues = self.client.with_options(idempotency_key=request.key).queues
        try:
            outcome = await queues.claim_next(
                request.queue,
                self.agent_id,
                lease_seconds=self.lease_seconds,
                wait=request.wait,
                extensions=request.extensions,
            )
        except (asyncio.CancelledError, Unreachable):
            self._unanswered.append(request)
            raise
        if isinstance(outcome, Claimed):
            self.won(outcome, asked_at)
        return outcome

    def won(self, claimed: Claimed, asked_at: float) -> None:
        if claimed.claim_id not in self._holds:
            self._holds[claimed.claim_id] = self.client.keep(
                claimed, lease_seconds=self.lease_seconds, asked_at=asked_at
            )

    def ended(self, claim_id: str) -> None:
        hold = self._holds.pop(claim_id, None)
        if hold is not None:
            hold.close()

    async def held(self) -> list[HeldClaim]:
        for claim_id in [claim_id for claim_id, hold in self._holds.items() if hold.lost]:
            self.ended(claim_id)
        return [HeldClaim(hold.claim_id, hold.task.task_id, hold.task.title) for hold in self._holds.values()]

    async def create_role(self, role_id: str) -> None:
        # Only admins create roles; the person who set this client up has an admin key.
        async with AsyncRedKey(self._place.url, self._place.api_key, timeout=15, max_retries=2) as admin:
            await admin.roles.create(role_id.removeprefix("role_"), id=role_id)

    def touch(self) -> None:
        """Note activity on all held tasks: a tool was called."""
        for hold in self._holds.values():
            hold.touch()

    async def leave(self) -> None:
        """Release all held tasks, so that others need not wait for the leases to expire."""
        with suppress(ClientError, TimeoutError):
            async with asyncio.timeout(_LEAVING_SECONDS):
                for request in list(self._unanswered):
                    await self._send(request)
        with suppress(TimeoutError):
            async with asyncio.timeout(_LEAVING_SECONDS):
                await asyncio.gather(*(hold.release() for hold in self._holds.values()), return_exceptions=True)
        await self.client.close()


class StdioSessions:
    """The one session of this process, created at its first call: listing the tools needs no server."""

    def __init__(self, options: Options, directory: Path) -> None:
        self._options, self.directory = options, directory
        self._session: StdioSession | None = None
        self._slot: Slot | None = None
        self._lock = asyncio.Lock()
        self._is_stale = False
        self.place: ServerPlace | None = None

    @asynccontextmanager
    async def open(self, ctx: Context[Any, Any]) -> AsyncIterator[AgentSession]:
        session = await self.enter(client_name(ctx))
        session.touch()
        try:
            yield session
        except Unreachable:
            # The server may have been replaced: look for it again at the next call.
            self._is_stale = True
            raise
        except Unauthorized:
            # The key of the slot was revoked: the next call gets a new one.
            self._is_stale, self.place = True, None
            raise

    async def enter(self, client: str = "") -> StdioSession:
        """The session, once its server answers and its agent is registered."""
        async with self._lock:
            if self._session is None or self._is_stale:
                place = await asyncio.to_thread(find_place, self.directory, os.environ)
                if self._slot is None:
                    await asyncio.to_thread(self._take_slot, place, client)
                if self._session is None or place != self.place:
                    await self._connect(place)
                self.place, self._is_stale = place, False
        if self._session is None:
            raise AssertionError("the session was not connected")
        return self._session

    @property
    def name(self) -> str:
        """The name of the slot; empty before the first call."""
        return self._slot.name if self._slot is not None else ""

    def _take_slot(self, place: ServerPlace, client: str) -> None:
        name = self._options.agent or client or "agent"
        self._slot = take_slot(os.environ, place.identity, name, project_name(self.directory))
        self._slot.kept.pid, self._slot.kept.client_pid = os.getpid(), os.getppid()

    async def _connect(self, place: ServerPlace) -> None:
        slot = self._slot
        if slot is None:
            raise AssertionError("cannot connect without a slot")
        await asyncio.to_thread(enter, place, slot, self._options.roles, self._options.queue)
        client = AsyncRedKey(place.url, slot.kept.api_key, timeout=15, max_retries=2)
        session = StdioSession(client, slot.kept.agent_id, self._options, self.directory, place)
        before, self._session = self._session, session
        if before is not None:
            await before.client.close()
        await self._session.adopt()

    async def leave(self) -> None:
        """Release all held tasks, and free the slot for the next process."""
        if self._session is not None:
            await self._session.leave()
        if self._slot is not None:
            self._slot.leave()


def client_name(ctx: Context[Any, Any]) -> str:
    """The name of the client; empty when it sends none."""
    params = ctx.session.client_params
    return params.client_info.name if params is not None else ""


async def serve(options: Options, directory: Path) -> None:
    """Serve until the client closes standard input or a signal arrives."""
    sessions = StdioSessions(options, directory)
    bus = ProjectBus(sessions)
    serving = asyncio.ensure_future(build(sessions, bus).run_stdio_async())
    loop = asyncio.get_running_loop()
    for number in _ENDING:
        loop.add_signal_handler(number, serving.cancel)
    try:
        with suppress(asyncio.CancelledError):
            await serving
    finally:
        with suppress(RedKeyError, OSError):
            await bus.leave()
        await sessions.leave()
