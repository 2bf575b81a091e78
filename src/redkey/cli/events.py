"""`redkey events`: what happened, and what happens."""

from __future__ import annotations

import sys
from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from redkey.cli.screen import print_details, print_item, until_reader_leaves
from redkey.cli.session import daily, ids_option

if TYPE_CHECKING:
    from redkey.client import RedKey
    from redkey.shapes.events import Event

# What of an event's data tells the reader most, in this order.
_TOLD = ("percent", "agentId", "winningAgentId", "reason", "claimId", "gateId", "workflowId", "name", "leaseExpiresAt")


@click.group()
def command() -> None:
    """What happened, in the order of the ledger, and what happens."""


@command.command()
@click.option("-n", "--lines", "count", type=click.IntRange(0, 100_000), default=10, show_default=True)
@click.option("-f", "--follow", is_flag=True, help="Stay, and show what happens from now on.")
@click.option("--type", "types", multiple=True, metavar="TYPE", help="Only this type, as in task.claimed; repeat.")
@click.option("--task", "task_id", metavar="TASK", help="Only about this task.")
@click.option("--agent", "agent_id", metavar="AGENT", help="Only about this agent, by its id.")
@click.option("--workflow", "workflow_id", metavar="WORKFLOW", help="Only of this run.")
@click.option("--queue", metavar="QUEUE", help="Only of this queue.")
@ids_option
@daily
@until_reader_leaves()
def tail(
    rk: RedKey,
    count: int,
    follow: bool,
    types: tuple[str, ...],
    task_id: str | None,
    agent_id: str | None,
    workflow_id: str | None,
    queue: str | None,
    ids_only: bool,
    as_json: bool,
) -> None:
    """The last events.

    \b
      redkey events tail --follow
      redkey events tail --type task.claimed --type task.claim_missed --json
    """
    chosen: dict[str, Any] = {"agent_id": agent_id, "workflow_id": workflow_id, "queue": queue}
    head = next((event.sequence for event in rk.ledger.query(order="desc", limit=1)), 0)
    found = list(islice(rk.ledger.query(type=types or None, task_id=task_id, order="desc", **chosen), count))
    for event in reversed(found):
        print_event(event, as_json=as_json, ids_only=ids_only)
    if not follow:
        return
    # The head was read first, so that nothing falls in between; what came since may be among those that were shown.
    last = max(head, found[0].sequence if found else 0)
    for event in rk.events.follow(types=types or None, after=last, **chosen):
        if task_id is None or task_id in (event.subject.id, event.data.get("taskId")):
            print_event(event, as_json=as_json, ids_only=ids_only)


@command.command()
@click.argument("event_id", metavar="EVENT")
@daily
def show(rk: RedKey, event_id: str, as_json: bool) -> None:
    """One event in full."""
    event = rk.events.get(event_id)
    print_details(
        event,
        [
            ("event", event.event_id),
            ("type", event.type),
            ("sequence", event.sequence),
            ("time", event.timestamp),
            ("actor", f"{event.actor.type} {event.actor.id}"),
            ("subject", f"{event.subject.type} {event.subject.id}"),
            *event.data.items(),
        ],
        as_json=as_json,
    )


def print_event(event: Event, *, as_json: bool, ids_only: bool = False) -> None:
    """One event on one line, at once: somebody may be waiting for it."""
    if as_json:
        print_item(event)
        return
    if ids_only:
        click.echo(event.event_id)
        sys.stdout.flush()
        return
    told = [f"{name}={event.data[name]}" for name in _TOLD if event.data.get(name) not in (None, event.subject.id)]
    parts = [f"{event.sequence:>6}", event.timestamp[11:19], f"{event.type:<20}", event.subject.id, *told]
    from redkey.cli.report import shown

    click.echo(shown("  ".join(parts)))
    sys.stdout.flush()
