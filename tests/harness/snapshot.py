"""A world as plain values, to compare two of them without differences that mean nothing.

It leaves out entries that will be dropped later (stale timers, stale offers, dependents that have ended) and data that
rows hold instead of memory (misses of a loaded world).
"""

from __future__ import annotations

from typing import Any

import msgspec

from redkey.reducers.world import LOST_AFTER_NANOSECONDS, World


def snapshot(world: World) -> dict[str, Any]:
    return {
        "sequence": world.sequence,
        "timestamp": world.timestamp,
        "workspace": _plain(world.workspace),
        **{
            name: {key: _plain(entity) for key, entity in sorted(getattr(world, name).items())}
            for name in (
                "agents",
                "roles",
                "removed_roles",
                "queues",
                "tasks",
                "messages",
                "keys",
                "parties",
                "gates",
                "definitions",
            )
        },
        "runs": {
            key: {
                "workflow": _plain(run.workflow),
                "steps": [_plain(step) for step in run.steps],
                "active": run.active,
                "waits": run.waits,
                "broken": run.broken,
                "ready": sorted(_ready(run)),
                "extras": sorted(run.extras),
            }
            for key, run in sorted(world.runs.items())
        },
        "slugs": dict(sorted(world.slugs.items())),
        "claims": dict(sorted(world.claims.items())),
        "expired": dict(sorted(world.expired.items())),
        "dependents": _dependents(world),
        "offers": _offers(world),
        "timers": _timers(world),
        "tombstones": _tombstones(world),
        "pending": list(world.pending),
        "agenda": list(world.agenda),
        "done": {key: _plain(done) for key, done in world.done.items()},
    }


def _plain(entity: Any) -> Any:
    return msgspec.to_builtins(entity)


def _ready(run: Any) -> set[tuple[int, int]]:
    return {turn for turn in run.ready if run.steps[turn[1]].state in ("waiting", "again")}


def _dependents(world: World) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for key, waiting in sorted(world.dependents.items()):
        live = {
            task_id
            for task_id in waiting
            if (task := world.tasks.get(task_id)) is not None
            and not task.ended_at
            and key in (*task.waits_for, *task.blocked_by)
        }
        if live:
            found[key] = sorted(live)
    return found


def _offers(world: World) -> list[tuple[str, Any, tuple[int, int, str]]]:
    return sorted(
        {
            (queue_id, requirement, entry)
            for queue_id, sets in world.heaps.items()
            for requirement, heap in sets.items()
            for entry in heap
            if (task := world.tasks.get(entry[2])) is not None and task.sequence == entry[1] and world.may_offer(task)
        }
    )


def _timers(world: World) -> list[tuple[int, str, str]]:
    """The timers that still apply; the check for a lost agent repeats until it is lost."""
    held = set()
    for when, kind, key in world.timers:
        task = world.tasks.get(key)
        if kind == "lost":
            agent = world.agents[key]
            if agent.active and not agent.lost:
                held.add((agent.last_act_at + LOST_AFTER_NANOSECONDS, kind, key))
        elif kind == "gate":
            gate = world.gates.get(key)
            if gate is not None and gate.deadline_at == when and not gate.reminded:
                held.add((when, kind, key))
        elif task is not None and not task.ended_at and when == _when(task, kind):
            held.add((when, kind, key))
    return sorted(held)


def _when(task: Any, kind: str) -> int:
    return (task.lease_expires_at if task.claim_id else 0) if kind == "lease" else task.deadline_at


def _tombstones(world: World) -> list[tuple[int, str, int]]:
    return sorted(
        (when, task_id, attempt)
        for when, task_id, attempt in world.tombstones
        if (task := world.tasks.get(task_id)) is not None and task.attempt == attempt
    )
