"""`redkey mcp`: MCP over standard input and output, for one client process.

The process is one agent (`slots`), finds or starts its server at the first call (`place`), and keeps what it holds by
threads. When the client closes standard input, or this process is asked to end, everything it holds is released.
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
from redkey.client.hold import now
from redkey.client.operation import Async
from redkey.errors import ClientError, RedKeyError, Unauthorized, Unreachable
from redkey.mcp.agent import enter
from redkey.mcp.live import ProjectBus
from redkey.mcp.place import ServerPlace, find_place, project_name
from redkey.mcp.server import build
from redkey.mcp.session import AgentSession, HeldClaim, live_claims
from redkey.mcp.slots import Slot, take_slot
from redkey.shapes.claims import Claimed, ClaimNextOutcome

# Short, because this process renews it: a client that is killed keeps its task no longer than this.
LEASE_SECONDS = 60
# How long an end may take until the rest is left to the leases.
_LEAVING_SECONDS = 2.0
_ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


@dataclass(frozen=True)
class Options:
    """How `redkey mcp` was started."""

    queue: str = "default"
    roles: tuple[str, ...] = ()
    # The name that the agent's slots begin with; the client's own when it is empty.
    agent: str = ""
    lease_seconds: int = LEASE_SECONDS


@dataclass(frozen=True)
class _Asked:
    """A claim for the next task of a queue, to be asked for until it is answered."""

    key: str
    queue: str
    wait: float


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
        # Claims that were asked for and not answered: their keys bring them again if they were won.
        self._unanswered: list[_Asked] = []

    async def adopt(self) -> None:
        """Take up what the process before this one in the slot held and could not release."""
        for one in [one async for one in live_claims(self.client, self.agent_id)]:
            found = await self.claim(one.task_id)
            if isinstance(found, Claimed):
                self._left_over.append(found)

    def left_over(self) -> Claimed | None:
        while self._left_over:
            found = self._left_over.pop(0)
            if found.claim_id in self._holds:
                return found
        return None

    async def claim_next(self, queue: str, wait: float) -> ClaimNextOutcome:
        while self._unanswered:
            found = await self._ask(self._unanswered.pop())
            if isinstance(found, Claimed):
                return found
        return await self._ask(_Asked(self.client.policy.new_key(), queue, wait))

    async def _ask(self, asked: _Asked) -> ClaimNextOutcome:
        asked_at = now()
        queues = self.client.with_options(idempotency_key=asked.key).queues
        try:
            found = await queues.claim_next(
                asked.queue, self.agent_id, lease_seconds=self.lease_seconds, wait=asked.wait
            )
        except (asyncio.CancelledError, Unreachable):
            self._unanswered.append(asked)
            raise
        if isinstance(found, Claimed):
            self.won(found, asked_at)
        return found

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
        # Roles are for admins; whoever set this client up is one.
        async with AsyncRedKey(self._place.url, self._place.api_key, timeout=15, max_retries=2) as admin:
            await admin.roles.create(role_id.removeprefix("role_"), id=role_id)

    def touch(self) -> None:
        """A tool was called: whatever is held is being worked on."""
        for hold in self._holds.values():
            hold.touch()

    async def leave(self) -> None:
        """Release everything that is held, so that others need not wait for the leases."""
        with suppress(ClientError, TimeoutError):
            async with asyncio.timeout(_LEAVING_SECONDS):
                for asked in list(self._unanswered):
                    await self._ask(asked)
        with suppress(TimeoutError):
            async with asyncio.timeout(_LEAVING_SECONDS):
                await asyncio.gather(*(hold.release() for hold in self._holds.values()), return_exceptions=True)
        await self.client.close()


class StdioSessions:
    """The one session of this process, entered at its first call: a list of tools needs no server."""

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
            # Another server may run by now: look again at the next call.
            self._is_stale = True
            raise
        except Unauthorized:
            # The key of the slot was revoked: the next call gets another one.
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
            raise AssertionError("a session that was not connected")
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
            raise AssertionError("a connection without a slot")
        await asyncio.to_thread(enter, place, slot, self._options.roles, self._options.queue)
        client = AsyncRedKey(place.url, slot.kept.api_key, timeout=15, max_retries=2)
        session = StdioSession(client, slot.kept.agent_id, self._options, self.directory, place)
        before, self._session = self._session, session
        if before is not None:
            await before.client.close()
        await self._session.adopt()

    async def leave(self) -> None:
        """Release what is held, and let the next process have the slot."""
        if self._session is not None:
            await self._session.leave()
        if self._slot is not None:
            self._slot.leave()


def client_name(ctx: Context[Any, Any]) -> str:
    """What the client calls itself; empty when it does not say."""
    params = ctx.session.client_params
    return params.client_info.name if params is not None else ""


async def serve(options: Options, directory: Path) -> None:
    """Serve until the client closes standard input or a signal comes."""
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
