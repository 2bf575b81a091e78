"""What an agent remembers of its tasks: recall memories for a brief, store what was done. A failure costs no work."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from redkey.errors import MemoryRefused
from redkey.runner.agent import Agent
from redkey.runner.memory.port import Memory, Owner
from redkey.runner.prompt import Remembered
from redkey.wire.legacy import Brief

_log = logging.getLogger("redkey.runner")


def question_of(brief: Brief) -> str:
    """Return the text by which memories are recalled: goal and acceptance criteria."""
    return " ".join([brief.goal, *brief.acceptance_criteria])


def as_remembered(memories: Sequence[Memory]) -> list[Remembered]:
    """Convert memories for the prompt."""
    return [Remembered(memory.text, memory.written_at, memory.task_id) for memory in memories]


async def recall(agent: Agent, owner: Owner, brief: Brief) -> list[Remembered]:
    """Return the memories that are nearest to a brief; none, with a warning, if they cannot be read."""
    memories, limit = agent.memories, agent.habits.memories
    if memories is None or not limit:
        return []
    try:
        return as_remembered(await asyncio.to_thread(memories.recall, owner, question_of(brief), limit))
    except MemoryRefused as refused:
        _log.warning("memories cannot be recalled: %s", refused.message)
        return []


async def remember(agent: Agent, owner: Owner, task_id: str, texts: Sequence[str]) -> None:
    """Store what was done in a task; only warn if it cannot be stored."""
    memories = agent.memories
    if memories is None:
        return
    try:
        await asyncio.to_thread(memories.remember, owner, "\n".join(texts), task_id=task_id)
    except MemoryRefused as refused:
        _log.warning("the work cannot be remembered: %s", refused.message)
