"""`redkey queue`: create queues, show their tasks, pause them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args

import click

from redkey.cli.declared import add_declared
from redkey.cli.live import watch, watch_option
from redkey.cli.look import Look
from redkey.cli.screen import ago, print_done, print_facts, print_list, rich_table
from redkey.cli.session import daily, ids_option
from redkey.cli.values import extensions_option
from redkey.shapes.tasks import TaskState

if TYPE_CHECKING:
    from redkey.client import RedKey
    from redkey.shapes.queues import Queue

STATES: tuple[str, ...] = get_args(TaskState)
_TITLES = ("QUEUE", "STATE", "LEASE", "ATTEMPTS", "PRIORITY", "NAME")


@click.group()
def command() -> None:
    """Create queues, show their tasks, pause them."""


@command.command("list")
@watch_option
@ids_option
@daily
def list_queues(rk: RedKey, live: bool, ids_only: bool, as_json: bool) -> None:
    """List the queues."""
    if live:
        watch(lambda: (rich_table(_TITLES, [_row(one) for one in rk.queues.list()]), False), rk.events.follow)
    print_list(
        rk.queues.list(),
        _TITLES,
        _row,
        as_json=as_json,
        ids_only=ids_only,
        empty="no queues yet: redkey queue create NAME",
    )


def _row(queue: Queue) -> tuple[str, ...]:
    state = "paused" if queue.paused else "open"
    return queue.queue_id, state, f"{queue.lease_seconds}s", str(queue.max_attempts), queue.priority, queue.name


@command.command()
@click.argument("queue")
@daily
def show(rk: RedKey, queue: str, as_json: bool) -> None:
    """Show one queue: its settings, and the number of tasks in each state."""
    found = rk.queues.get(queue)
    counts = rk.queues.counts(found.queue_id).tasks
    if as_json:
        import msgspec

        from redkey.cli.report import print_json

        print_json({**msgspec.to_builtins(found), "tasks": counts})
        return
    print_facts(
        [
            ("queue", found.queue_id),
            ("name", found.name),
            ("description", found.description),
            ("state", "paused" if found.paused else "open"),
            ("lease", f"{found.lease_seconds}s"),
            ("attempts", found.max_attempts),
            ("priority", found.priority),
            ("created", ago(found.created_at)),
            *((state, f"{counts[state]:,}") for state in STATES if counts[state]),
        ]
    )


@command.command("watch")
@click.argument("queue")
@daily
def watch_queue(rk: RedKey, queue: str, as_json: bool) -> None:
    """Show open tasks and who works on them, live; without a terminal, events as they happen."""
    from redkey.cli.progress import print_followed
    from redkey.cli.screen import on_terminal

    found = rk.queues.get(queue)
    if as_json or not on_terminal():
        for event in rk.events.follow(queue=found.queue_id):
            print_followed(rk, event, as_json=as_json)
        return
    from redkey.cli.task import live_tasks

    watch(lambda: (live_tasks(rk, found.queue_id), False), lambda: rk.events.follow(queue=found.queue_id))


@command.command()
@click.argument("queue")
@extensions_option
@daily
def pause(rk: RedKey, queue: str, extensions: dict[str, Any] | None, as_json: bool) -> None:
    """Stop claims from QUEUE; tasks in progress continue."""
    _say(rk.queues.update(queue, paused=True, extensions=extensions), as_json)


@command.command()
@click.argument("queue")
@extensions_option
@daily
def resume(rk: RedKey, queue: str, extensions: dict[str, Any] | None, as_json: bool) -> None:
    """Allow claims from a paused QUEUE again."""
    _say(rk.queues.update(queue, paused=False, extensions=extensions), as_json)


def _say(queue: Queue, as_json: bool) -> None:
    print_done(queue, _told(queue), as_json=as_json)


def _told(queue: Queue) -> str:
    return f"{queue.queue_id} is {'paused' if queue.paused else 'open'}"


add_declared(
    command,
    "queue",
    {
        "create": Look(
            told="{queue_id}",
            next_step="redkey task create --queue {queue_id} --title 'A first task'",
            examples=("redkey queue create podcast --lease 60 --max-attempts 3",),
        ),
        "update": Look(told=_told),
    },
)
