"""An agent as the runner sees it: identity, executor, verification and limits."""

from __future__ import annotations

import msgspec

from redkey.runner.contracts import Contracts
from redkey.runner.evaluate import Evaluator
from redkey.runner.executors.port import Executor
from redkey.runner.logs import Logs
from redkey.runner.memory.port import Memories
from redkey.runner.merging import Merging
from redkey.runner.pausing import Pauses
from redkey.runner.skills import Skill
from redkey.runner.spending import Spending
from redkey.runner.workplace import Workplace
from redkey.wire.card import AgentCard


class Habits(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of how an agent is run."""

    # How many tries the agent gets to pass verification before the task is blocked.
    tries: int = 2
    budget_tokens: int | None = None
    memories: int = 5
    messages: int = 20
    # Seconds between two looks at the inbox while the agent works.
    inbox_seconds: float = 15.0
    # How often urgent messages may stop and restart the work on one task.
    restarts: int = 3


class Agent(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that stays the same from task to task."""

    slug: str
    # The card, or the prose of one that has none yet.
    identity: AgentCard | str
    executor: Executor
    workplace: Workplace
    contracts: Contracts
    spending: Spending
    pauses: Pauses
    merging: Merging
    logs: Logs
    evaluator: Evaluator | None = None
    memories: Memories | None = None
    skills: tuple[Skill, ...] = ()
    habits: Habits = Habits()

    @property
    def card(self) -> AgentCard | None:
        return self.identity if isinstance(self.identity, AgentCard) else None
