"""`redkey events`: what happened, and what happens."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from redkey.cli.report import shown
from redkey.cli.screen import cut, on_terminal, print_details, print_item, terminal_columns, until_reader_leaves
from redkey.cli.session import agent_id_of, daily, ids_option, slugs_of
from redkey.cli.short_ids import shorten_within

if TYPE_CHECKING:
    from redkey.client import RedKey
    from redkey.shapes.events import Event

# What of an event's data tells the reader most, in this order.
_TOLD = ("percent", "agentId", "winningAgentId", "reason", "claimId", "gateId", "workflowId", "name", "leaseExpiresAt")

# Ten characters of an event's id are a millisecond; three more tell the events of one unit of work apart.
_APART = 13


@click.group()
def command() -> None:
    """What happened, in the order of the ledger, and what happens."""


@command.command()
@click.option("-n", "--lines", "count", type=click.IntRange(0, 100_000), default=10, show_default=True)
@click.option("-f", "--follow", is_flag=True, help="Stay, and show what happens from now on.")
@click.option("--type", "types", multiple=True, metavar="TYPE", help="Only this type, as in task.claimed; repeat.")
@click.option("--task", "task_id", metavar="TASK", help="Only about this task.")
@click.option("--agent", "agent_id", metavar="AGENT", help="Only about this agent, by id or name.")
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
    agent = agent_id_of(rk, agent_id) if agent_id else None
    slugs = slugs_of(rk) if on_terminal() and not (as_json or ids_only) else {}
    chosen: dict[str, Any] = {"agent_id": agent, "workflow_id": workflow_id, "queue": queue}
    head = next((event.sequence for event in rk.ledger.query(order="desc", limit=1)), 0)
    found = list(islice(rk.ledger.query(type=types or None, task_id=task_id, order="desc", **chosen), count))
    for event in reversed(found):
        print_event(event, as_json=as_json, ids_only=ids_only, slugs=slugs, with_id=True)
    if not follow:
        return
    # The head was read first, so that nothing falls in between; what came since may be among those that were shown.
    last = max(head, found[0].sequence if found else 0)
    for event in rk.events.follow(type=types or None, after=last, **chosen):
        if task_id is None or task_id in (event.subject.id, event.data.get("taskId")):
            print_event(event, as_json=as_json, ids_only=ids_only, slugs=slugs, with_id=True)


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


def print_event(
    event: Event,
    *,
    as_json: bool,
    ids_only: bool = False,
    slugs: Mapping[str, str] | None = None,
    with_id: bool = False,
) -> None:
    """One event on one line, at once: somebody may be waiting for it. On a terminal the line fits, with short ids."""
    if as_json:
        print_item(event)
        return
    if ids_only:
        click.echo(event.event_id)
        sys.stdout.flush()
        return
    told = [f"{name}={event.data[name]}" for name in _TOLD if event.data.get(name) not in (None, event.subject.id)]
    named = [_event_id(event)] if with_id else []
    parts = [f"{event.sequence:>6}", *named, event.timestamp[11:19], f"{event.type:<20}", event.subject.id, *told]
    line = shown("  ".join(parts))
    click.echo(cut(shorten_within(_with_names(line, slugs or {})), terminal_columns()) if on_terminal() else line)
    sys.stdout.flush()


def _event_id(event: Event) -> str:
    """The id; on a terminal the characters that tell it apart, although later events are not known yet."""
    return event.event_id.removeprefix("evt_")[:_APART] if on_terminal() else event.event_id


def _with_names(text: str, slugs: Mapping[str, str]) -> str:
    for agent_id, slug in slugs.items():
        text = text.replace(agent_id, slug)
    return text
