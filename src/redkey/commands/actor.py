"""The authenticated caller of a command. Its scopes say what it may do."""

from __future__ import annotations

import msgspec

from redkey.reducers.world import World


class Actor(msgspec.Struct, frozen=True):
    """The key that a request came with, in one workspace."""

    workspace_id: str
    key_id: str
    scopes: frozenset[str]
    agent_id: str = ""

    @property
    def is_admin(self) -> bool:
        return "admin" in self.scopes or "operator" in self.scopes

    @property
    def is_runner(self) -> bool:
        """True for a key that acts for agents and is not an agent itself."""
        return "runner" in self.scopes and not self.agent_id

    def may_act_as(self, agent_id: str) -> bool:
        """An agent key acts only as its agent; admin and runner keys act as any agent of the workspace."""
        return self.agent_id == agent_id if self.agent_id else self.is_admin or "runner" in self.scopes

    def sender(self, world: World) -> str:
        """The sender name on this actor's wires; a request body cannot set it."""
        if self.agent_id:
            agent = world.agents.get(self.agent_id)
            return f"agent:{agent.slug}" if agent is not None else f"human:{self.key_id}"
        return f"runner:{self.key_id}" if "runner" in self.scopes else f"human:{self.key_id}"
