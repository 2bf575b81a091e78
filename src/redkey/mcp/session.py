"""Sessions: which agent a tool call acts as, over which client, and what that agent holds.

The two faces differ only here. `redkey mcp` has one session for the life of its process and keeps its claims by
threads (`redkey.mcp.stdio`); `/mcp` of a server has one for each call, and every call renews (`redkey.mcp.http`).
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError

from redkey.client import AsyncRedKey
from redkey.client.hold import now
from redkey.errors import NotFound
from redkey.shapes.claims import Claimed, ClaimNextOutcome, ClaimOutcome

# How far back an agent's claims are looked through for those that it still holds.
_CLAIMS_LOOKED_AT = 500


@dataclass(frozen=True)
class HeldClaim:
    """A claim that holds its task now."""

    claim_id: str
    task_id: str
    title: str


class AgentSession:
    """One agent and its client. Without an agent, only what needs none can be done."""

    # Where relative paths of tools begin; None where the caller's files are on another machine.
    directory: Path | None = None
    # None leaves the lease to the queue.
    lease_seconds: int | None = None

    def __init__(self, client: AsyncRedKey, agent_id: str, queue: str) -> None:
        self.client, self._agent_id, self.queue = client, agent_id, queue

    @property
    def agent_id(self) -> str:
        """The agent that claims; a tool error when the key is no agent's."""
        if not self._agent_id:
            raise ToolError(
                "This key belongs to no agent, so it cannot claim, send or hold. Use the key of an agent: an admin "
                "makes one with `redkey agent register NAME`. A local `redkey mcp` makes one for each client by itself."
            )
        return self._agent_id

    async def claim_next(self, queue: str, wait: float) -> ClaimNextOutcome:
        """Claim the next task of a queue."""
        asked_at = now()
        found = await self.client.queues.claim_next(queue, self.agent_id, lease_seconds=self.lease_seconds, wait=wait)
        if isinstance(found, Claimed):
            self.won(found, asked_at)
        return found

    async def claim(self, task_id: str) -> ClaimOutcome:
        """Claim one task."""
        asked_at = now()
        found = await self.client.tasks.claim(task_id, self.agent_id, lease_seconds=self.lease_seconds, with_task=True)
        if isinstance(found, Claimed):
            self.won(found, asked_at)
        return found

    async def create_role(self, role_id: str) -> None:
        """Create a role that a task asks for."""
        await self.client.roles.create(role_id.removeprefix("role_"), id=role_id)

    def won(self, claimed: Claimed, asked_at: float) -> None:
        """Take note of a claim that was won, and of when it was asked for."""

    def ended(self, claim_id: str) -> None:
        """Take note of a claim that holds nothing any more."""

    def left_over(self) -> Claimed | None:
        """Return, once, a claim that this agent held before its process started; the model does not know of it yet."""
        return None

    async def held(self) -> list[HeldClaim]:
        """What the agent holds now."""
        return [one async for one in live_claims(self.client, self.agent_id)]

    async def find(self, claim_id: str) -> HeldClaim:
        """The claim that is meant: the named one, or the only one that is held."""
        held = await self.held()
        named = [one for one in held if claim_id in ("", one.claim_id, one.task_id)]
        if len(named) == 1:
            return named[0]
        have = "; ".join(f"{one.claim_id} ({one.title or one.task_id})" for one in held)
        if not held:
            raise ToolError("You hold no task. Get one with wait_for_task or claim_task first.")
        if not named:
            raise ToolError(f"You do not hold {claim_id[:64]!r}. Do not work on it any more. You hold: {have}.")
        raise ToolError(f"You hold several tasks; name one in claim_id: {have}.")


async def live_claims(client: AsyncRedKey, agent_id: str) -> AsyncIterator[HeldClaim]:
    """The claims of an agent that hold their tasks now, the newest first."""
    left = (await client.agents.get(agent_id)).live_claims
    looked_at = 0
    if not left:
        return
    async for item in client.agents.claim_history(agent_id, limit=100):
        looked_at += 1
        if item.status == "claimed":
            try:
                task = await client.tasks.get(item.task_id)
            except NotFound:
                continue
            if task.claim is not None and task.claim.claim_id == item.claim_id:
                left -= 1
                yield HeldClaim(item.claim_id, item.task_id, task.title)
        if not left or looked_at >= _CLAIMS_LOOKED_AT:
            return


class Sessions(Protocol):
    """Where the session of a call comes from."""

    def open(self, ctx: Context[Any, Any]) -> AbstractAsyncContextManager[AgentSession]:
        """The session that a call acts in."""
        ...
