"""The tasks of a queue that can be claimed: by priority, then oldest first; for one agent only those it may claim."""

from __future__ import annotations

from redkey.ledger.ports import Reader
from redkey.readmodel.rows import entity, task_list
from redkey.reducers.claim import capabilities
from redkey.reducers.entities import Task
from redkey.reducers.world import World

_PAGE = 500
# A page ends early, with its cursor, after this many tasks that the agent may not claim.
_LOOKED_AT = 5000

Place = tuple[int, str]


def available(
    reader: Reader, topic: str, world: World, queue_id: str, agent_id: str | None, after: Place, limit: int
) -> tuple[list[Task], Place | None]:
    """Return a page of claimable tasks after a place in the list, and the place of the next page."""
    if world.queues[queue_id].settings.paused:
        return [], None
    sets = _open_sets(world, queue_id, agent_id)
    found: list[Task] = []
    looked = 0
    while sets and looked < _LOOKED_AT:
        rows = reader.rows(topic, "task", task_list(queue_id, "available"), after, _PAGE)
        for row in rows:
            looked, after = looked + 1, (row.position, row.key)
            task: Task = entity(row)
            if (task.roles, task.capabilities) in sets and world.is_running(task):
                found.append(task)
                if len(found) == limit:
                    return found, after
        if len(rows) < _PAGE:
            return found, None
    return found, after if sets else None


def _open_sets(world: World, queue_id: str, agent_id: str | None) -> set[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Return the requirement sets with tasks in the queue that the agent satisfies; all of them without an agent."""
    sets = world.heaps.get(queue_id, {}).keys()
    if agent_id is None:
        return set(sets)
    agent = world.agents.get(agent_id)
    if agent is None or not agent.active:
        return set()
    roles, able = set(agent.roles), capabilities(world, agent)
    return {key for key in sets if roles.issuperset(key[0]) and able.issuperset(key[1])}
