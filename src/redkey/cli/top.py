"""`redkey top`: queues, agents and leases as they are now, drawn again every second."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Any

import click
import msgspec

from redkey.cli.live import watch
from redkey.cli.progress import joined
from redkey.cli.report import print_json
from redkey.cli.screen import ago, on_terminal, print_table, rich_table
from redkey.cli.session import daily, slugs_of

if TYPE_CHECKING:
    from redkey.client import RedKey
    from redkey.shapes.queues import Queue
    from redkey.shapes.tasks import TaskState, TaskSummary

_QUEUES = ("QUEUE", "STATE", "WAITING", "READY", "IN PROGRESS", "BLOCKED", "OLDEST")
_AGENTS = ("AGENT", "STATE", "CLAIMS", "LAST SEEN", "ROLES")
_LEASES = ("TASK", "STATE", "AGENT", "LEASE", "TITLE")
_IN_PROGRESS: tuple[TaskState, ...] = ("working", "claimed")
# Of more ready tasks the oldest is not known: the picture must be there within its second.
_MOST_TASKS = 2_000
_MOST_LEASES = 20


class QueuePicture(msgspec.Struct, frozen=True, rename="camel"):
    """One queue: how many tasks are in which state, and when the oldest ready one was made."""

    queue_id: str
    paused: bool
    waiting: int
    ready: int
    in_progress: int
    blocked: int
    oldest_ready_at: str | None


class Picture(msgspec.Struct, frozen=True, rename="camel"):
    """Everything that is drawn at once."""

    server: str
    queues: list[QueuePicture]
    agents: list[dict[str, Any]]
    leases: list[dict[str, Any]]
    events: int
    claims: int


@click.command()
@click.option("--once", is_flag=True, help="Print it once, and end [as where there is no terminal].")
@daily
def command(rk: RedKey, once: bool, as_json: bool) -> None:
    """Show queues, agents and leases, with rates, again every second; Ctrl-C ends it.

    \b
      redkey top
      redkey top --once
    """
    if as_json:
        print_json(msgspec.to_builtins(_take(rk)))
        return
    if once or not on_terminal():
        for titles, rows in _tables(_take(rk)):
            print_table(titles, rows)
            click.echo()
        return
    rates = _Rates()

    def draw() -> tuple[Any, bool]:
        from rich.console import Group
        from rich.text import Text

        picture = _take(rk)
        tables = [rich_table(titles, rows) for titles, rows in _tables(picture)]
        spaced = [part for table in tables for part in (Text(""), table)]
        return Group(Text(rates.told(picture), style="bold"), *spaced), False

    # Nothing to follow: it is drawn every second whatever happens.
    watch(draw, lambda: iter(()))


class _Rates:
    """How fast the counters of a server move, from one picture to the next."""

    def __init__(self) -> None:
        self._before: tuple[float, int, int] | None = None

    def told(self, picture: Picture) -> str:
        now, before = time.monotonic(), self._before
        self._before = now, picture.events, picture.claims
        in_progress = sum(queue.in_progress for queue in picture.queues)
        words = [
            picture.server,
            f"{len(picture.agents)} agent{'s' if len(picture.agents) != 1 else ''}",
            f"{in_progress} in progress",
        ]
        if before is not None and now > before[0]:
            seconds = now - before[0]
            words.append(f"{(picture.events - before[1]) / seconds:.1f} events/s")
            words.append(f"{(picture.claims - before[2]) / seconds:.1f} claims/s")
        return "   ".join(words)


def _take(rk: RedKey) -> Picture:
    usage, slugs = rk.usage.get().total, slugs_of(rk)
    held: list[TaskSummary] = []
    queues = [_queue(rk, queue, held) for queue in rk.queues.list()]
    leases = [_lease(rk, task, slugs) for task in held[:_MOST_LEASES]]
    agents: list[dict[str, Any]] = [
        {
            "slug": agent.slug,
            "state": "lost" if agent.lost else "active",
            "claims": agent.live_claims,
            "lastSeenAt": agent.last_act_at,
            "roles": [role.removeprefix("role_") for role in agent.roles],
        }
        for agent in rk.agents.list(active=True, limit=100).page().items
    ]
    agents.sort(key=lambda agent: (-agent["claims"], agent["slug"]))
    return Picture(rk.settings.shown_url, queues, agents, leases, usage.events, usage.claims)


def _queue(rk: RedKey, queue: Queue, held: list[TaskSummary]) -> QueuePicture:
    counts = rk.queues.counts(queue.queue_id).tasks
    for state in _IN_PROGRESS:
        held += islice(rk.tasks.list(queue.queue_id, state=state), _MOST_LEASES) if counts[state] else ()
    # They come by priority, so that the oldest one may be anywhere in the list.
    is_read = 0 < counts["available"] <= _MOST_TASKS
    ready = rk.tasks.list(queue.queue_id, state="available", limit=500) if is_read else ()
    return QueuePicture(
        queue_id=queue.queue_id,
        paused=queue.paused,
        waiting=counts["created"],
        ready=counts["available"],
        in_progress=sum(counts[state] for state in _IN_PROGRESS),
        blocked=counts["blocked"],
        oldest_ready_at=min((task.updated_at for task in ready), default=None),
    )


def _lease(rk: RedKey, task: TaskSummary, slugs: Any) -> dict[str, Any]:
    claim = rk.tasks.get(task.task_id).claim
    return {
        "taskId": task.task_id,
        "state": task.state,
        "agent": slugs.get(task.agent_id, task.agent_id),
        "leaseExpiresAt": claim.lease_expires_at if claim is not None else None,
        "title": task.title,
        "percent": task.progress.percent if task.progress is not None else None,
        "progress": task.progress.text if task.progress is not None else "",
    }


def _tables(picture: Picture) -> list[tuple[tuple[str, ...], Sequence[tuple[str, ...]]]]:
    now = datetime.now(UTC)
    queues = [
        (
            queue.queue_id.removeprefix("queue_"),
            "paused" if queue.paused else "open",
            f"{queue.waiting:,}",
            f"{queue.ready:,}",
            f"{queue.in_progress:,}",
            f"{queue.blocked:,}",
            ago(queue.oldest_ready_at, now),
        )
        for queue in picture.queues
    ]
    agents = [
        (one["slug"], one["state"], str(one["claims"]), ago(one["lastSeenAt"], now), ", ".join(one["roles"]))
        for one in picture.agents
    ]
    leases = [
        (
            one["taskId"],
            one["state"],
            one["agent"],
            ago(one["leaseExpiresAt"], now),
            joined(one["title"], one["percent"], one["progress"]),
        )
        for one in picture.leases
    ]
    tables: list[tuple[tuple[str, ...], Sequence[tuple[str, ...]]]] = [(_QUEUES, queues)]
    tables += [(titles, rows) for titles, rows in ((_AGENTS, agents), (_LEASES, leases)) if rows]
    return tables
