"""Sessions: which agent a tool call acts as, over which client, and what that agent holds.

The two transports differ only here. `redkey mcp` has one session for the life of its process and renews its leases in
threads (`redkey.mcp.stdio`); `/mcp` of a server has one session per call, which renews them (`redkey.mcp.http`).
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError

from redkey.client import AsyncRedKey
from redkey.client.hold import now
from redkey.errors import NotFound
from redkey.shapes.claims import Claimed, ClaimNextOutcome, ClaimOutcome

# Data for the record beside its fields.
Extensions: TypeAlias = dict[str, Any] | None
# How many of an agent's claims are searched for those that it still holds.
_CLAIMS_SEARCHED = 500


@dataclass(frozen=True)
class HeldClaim:
    """A claim that holds its task now."""

    claim_id: str
    task_id: str
    title: str


class AgentSession:
    """One agent and its client. Without an agent, only tools that need none work."""

    # The base of relative paths; None if the caller's files are on another machine.
    directory: Path | None = None
    # None uses the lease of the queue.
    lease_seconds: int | None = None

    def __init__(self, client: AsyncRedKey, agent_id: str, queue: str) -> None:
        self.client, self._agent_id, self.queue = client, agent_id, queue

    @property
    def agent_id(self) -> str:
        """The agent that claims; a tool error if the key belongs to no agent."""
        if not self._agent_id:
            raise ToolError(
                "This key belongs to no agent, so it cannot claim, send or hold. Use the key of an agent: an admin "
                "creates one with `redkey agent register NAME`. A local `redkey mcp` creates one for each client."
            )
        return self._agent_id

    async def claim_next(self, queue: str, wait: float, extensions: Extensions = None) -> ClaimNextOutcome:
        """Claim the next task of a queue."""
        asked_at = now()
        outcome = await self.client.queues.claim_next(
            queue, self.agent_id, lease_seconds=self.lease_seconds, wait=wait, extensions=extensions
        )
        if isinstance(outcome, Claimed):
            self.won(outcome, asked_at)
        return outcome

    async def claim(self, task_id: str, extensions: Extensions = None) -> ClaimOutcome:
        """Claim one task."""
        asked_at = now()
        outcome = await self.client.tasks.claim(
            task_id, self.agent_id, lease_seconds=self.lease_seconds, with_task=True, extensions=extensions
        )
        if isinstance(outcome, Claimed):
            self.won(outcome, asked_at)
        return outcome

    async def create_role(self, role_id: str) -> None:
        """Create a role that a task requires."""
        await self.client.roles.create(role_id.removeprefix("role_"), id=role_id)

    def won(self, claimed: Claimed, asked_at: float) -> None:
        """Record a claim that was won, and when it was requested."""

    def ended(self, claim_id: str) -> None:
        """Record that a claim no longer holds its task."""

    def left_over(self) -> Claimed | None:
        """Return, once, a claim that this agent held before its process started; the model does not know of it yet."""
        return None

    async def held(self) -> list[HeldClaim]:
        """The claims that the agent holds now."""
        return [claim async for claim in live_claims(self.client, self.agent_id)]

    async def find(self, claim_id: str) -> HeldClaim:
        """Return the named claim or, without a name, the only claim that is held."""
        held = await self.held()
        named = [claim for claim in held if claim_id in ("", claim.claim_id, claim.task_id)]
        if len(named) == 1:
            return named[0]
        have = "; ".join(f"{claim.claim_id} ({claim.title or claim.task_id})" for claim in held)
        if not held:
            raise ToolError("You hold no task. Get one with wait_for_task or claim_task first.")
        if not named:
            raise ToolError(f"You do not hold {claim_id[:64]!r}. Do not work on it any more. You hold: {have}.")
        raise ToolError(f"You hold several tasks; name one in claim_id: {have}.")


async def live_claims(client: AsyncRedKey, agent_id: str) -> AsyncIterator[HeldClaim]:
    """The claims of an agent that hold their tasks now, newest first."""
    left = (await client.agents.get(agent_id)).live_claims
    searched = 0
    if not left:
        return
    async for item in client.agents.claim_history(agent_id, limit=100):
        searched += 1
        if item.status == "claimed":
            try:
                task = await client.tasks.get(item.task_id)
            except NotFound:
                continue
            if task.claim is not None and task.claim.claim_id == item.claim_id:
                left -= 1
                yield HeldClaim(item.claim_id, item.task_id, task.title)
        if not left or searched >= _CLAIMS_SEARCHED:
            return


class Sessions(Protocol):
    """The source of sessions for calls."""

    def open(self, ctx: Context[Any, Any]) -> AbstractAsyncContextManager[AgentSession]:
        """The session of a call."""
        ...
