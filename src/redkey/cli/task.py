"""`redkey task`: create tasks, show their state, and follow them to their end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from redkey.cli.declared import add_declared
from redkey.cli.live import events_to_end, watch, watch_option
from redkey.cli.look import Look
from redkey.cli.next_step import print_step, step_for, step_lines
from redkey.cli.progress import print_followed, progress_words, report, title_with_progress
from redkey.cli.provision import with_missing
from redkey.cli.queue import STATES
from redkey.cli.report import shown
from redkey.cli.screen import (
    ago,
    on_terminal,
    print_created,
    print_details,
    print_item,
    print_list,
    rich_table,
    styled,
)
from redkey.cli.session import daily, ids_option, limit_option, queue_option, recording, slugs_of
from redkey.cli.short_ids import whole_id
from redkey.cli.task_logs import logs
from redkey.cli.task_results import messages, result
from redkey.cli.values import document_file, json_value, retry_value
from redkey.errors import NotFound

if TYPE_CHECKING:
    from rich.table import Table

    from redkey.client import RedKey
    from redkey.shapes.events import Event
    from redkey.shapes.tasks import Task, TaskSummary

_TITLES = ("TASK", "STATE", "TRY", "ROLE", "AGENT", "SINCE", "TITLE")
_OPEN_STATES = ("created", "available", "claimed", "working", "blocked", "awaiting_approval")
_EARLIER = 5
# Few events follow a completion: at most its approval.
_LAST_EVENTS = 20
_ENDED = ("completed", "failed", "cancelled")


@click.group()
def command() -> None:
    """Create tasks, show their state, and follow them to their end."""


for written in (logs, messages, report, result):
    command.add_command(written)


@command.command()
@click.option("--title", required=True, help="What is to be done, in a sentence.")
@click.option("--role", "roles", multiple=True, metavar="ROLE", help="A role to claim it; repeat: all are required.")
@queue_option
@click.option("--description", help="More about it; the agent is shown all of it.")
@click.option("--brief", type=document_file, metavar="FILE", help="Its Brief Wire, JSON or YAML; - reads stdin.")
@click.option("--input", type=json_value, metavar="JSON", help="Its input: JSON, @FILE, or - for stdin.")
@click.option("--capability", "capabilities", multiple=True, metavar="NAME", help="A capability of its agent.")
@click.option("--depends-on", multiple=True, metavar="TASK", help="A task that must complete first; repeat.")
@click.option("--parent-task-id", metavar="TASK", help="The task that it is a part of.")
@click.option("--reference", "reference_task_ids", multiple=True, metavar="TASK", help="A task to read; repeat.")
@click.option("--correlation-id", metavar="KIND:NAME", help="The larger work that it belongs to, as in order:4711.")
@click.option("--output", "outputs", multiple=True, metavar="NAME", help="A required artifact; repeat.")
@click.option("--criterion", "criteria", multiple=True, metavar="TEXT", help="A completion criterion; repeat.")
@click.option("--priority", type=click.Choice(["urgent", "high", "normal", "low"]), help="[normal]")
@click.option("--max-attempts", type=int, metavar="N", help="The maximum number of attempts.")
@click.option("--retry", type=retry_value, metavar="NAME=NUMBER,...", help="Its retries, as in attempts=3,delay=10.")
@click.option("--lease", "lease_seconds", type=int, metavar="SECONDS", help="How long a claim of it lasts.")
@click.option("--deadline", "deadline_seconds", type=int, metavar="SECONDS", help="The time after which it fails.")
@click.option("--gate", is_flag=True, help="A human approves its result.")
@recording
def create(
    rk: RedKey,
    title: str,
    roles: tuple[str, ...],
    queue: str,
    capabilities: tuple[str, ...],
    criteria: tuple[str, ...],
    max_attempts: int | None,
    retry: dict[str, float] | None,
    gate: bool,
    ids_only: bool,
    as_json: bool,
    **settings: Any,
) -> None:
    """Put a task on a queue. The queue and the roles are created when they do not exist yet.

    \b
      redkey task create --role researcher --title "Research Piers Gorman"
      redkey task create --title "Summarize" --input '{"url": "https://example.com"}' --priority high
    """
    for name in ("depends_on", "reference_task_ids"):
        settings[name] = tuple(whole_id(rk, one, "task_") for one in settings[name])
    named = {"--depends-on": settings["depends_on"], "--reference": settings["reference_task_ids"]}
    for option, ids in {**named, "--parent-task-id": filter(None, [settings["parent_task_id"]])}.items():
        for one in ids:
            # Refuse an unknown task before a queue is created for this one.
            _get_named(rk, one, option)
    asked: dict[str, Any] = {
        "required_roles": roles,
        "required_capabilities": capabilities,
        "completion_criteria": criteria,
        "retry": {**(retry or {}), **({"maxAttempts": max_attempts} if max_attempts is not None else {})} or None,
        "approval_gate": gate or None,
        **settings,
    }
    given = {name: value for name, value in asked.items() if value not in (None, ())}
    made = with_missing(rk, lambda: rk.tasks.create(queue, title=title, **given), queue=queue, roles=roles)
    for warning in made.warnings if not (ids_only or as_json) else ():
        click.echo(f"note: {shown(warning.message)} [{warning.code}]", err=True)
    step = f"redkey task watch {made.task_id}"
    print_created(made, made.task_id, made.task_id, ids_only=ids_only, as_json=as_json, next_step=step)


def _get_named(rk: RedKey, task_id: str, option: str) -> None:
    try:
        rk.tasks.get(task_id)
    except NotFound as refused:
        refused.detail = f"{refused.detail.rstrip('.')}: {task_id} (from {option})"
        raise


@command.command("list")
@click.option("--queue", metavar="QUEUE", help="Only of this queue [all].")
@click.option("--state", "states", multiple=True, type=click.Choice(STATES), help="Repeat for more [those not ended].")
@limit_option
@watch_option
@ids_option
@daily
def list_tasks(
    rk: RedKey, queue: str | None, states: tuple[str, ...], limit: int, live: bool, ids_only: bool, as_json: bool
) -> None:
    """List tasks: those that have not ended, or those in the given states."""
    wanted = states or _OPEN_STATES
    if live:
        watch(lambda: (live_tasks(rk, queue, wanted, limit), False), lambda: rk.events.follow(queue=queue))
    empty = "no task is waiting, ready or in progress" if not states else f"no task is {' or '.join(states)}"
    found = islice(_tasks(rk, queue, wanted), limit)
    slugs = {} if as_json else slugs_of(rk)
    print_list(found, _TITLES, partial(_row, slugs), as_json=as_json, ids_only=ids_only, empty=empty)


def _tasks(rk: RedKey, queue: str | None, states: tuple[Any, ...]) -> Iterator[TaskSummary]:
    queues = [queue] if queue else [one.queue_id for one in rk.queues.list()]
    for state in states:
        for name in queues:
            yield from rk.tasks.list(name, state=state)


def _row(slugs: Mapping[str, str], task: TaskSummary) -> tuple[str, ...]:
    return (
        task.task_id,
        task.state,
        str(task.attempt),
        ", ".join(role.removeprefix("role_") for role in task.required_roles),
        slugs.get(task.agent_id, task.agent_id),
        ago(task.updated_at),
        title_with_progress(task.title or ("(erased)" if task.erased else ""), task.state, task.progress),
    )


def live_tasks(rk: RedKey, queue: str | None, states: tuple[str, ...] = _OPEN_STATES, most: int = 40) -> Table:
    """Show a queue's open tasks and who works on them, as they are now."""
    slugs = slugs_of(rk)
    return rich_table(_TITLES, [_row(slugs, one) for one in islice(_tasks(rk, queue, states), most)])


@command.command()
@click.argument("task_id", metavar="TASK")
@click.option("--at", type=click.IntRange(min=1), metavar="SEQUENCE", help="Show the state at this ledger sequence.")
@daily
def show(rk: RedKey, task_id: str, at: int | None, as_json: bool) -> None:
    """Show one task in full: its description, state and results."""
    found = rk.tasks.get(task_id, at_sequence=at)
    facts = [] if as_json else [*_facts(found, slugs_of(rk)), *_verification(rk, found), *_earlier(rk, found)]
    print_details(found, facts, as_json=as_json)


def _verification(rk: RedKey, task: Task) -> list[tuple[str, str]]:
    """Return the checks before the completion, as reported with it."""
    if task.state not in ("completed", "awaiting_approval") or task.sequence is not None:
        return []
    events = rk.tasks.events(task.task_id, order="desc", limit=_LAST_EVENTS).page().items
    completion = next((event.data for event in events if event.type == "task.complete"), {})
    checked = completion.get("verification") or {}
    return [("verification", ", ".join(f"{name}: {verdict}" for name, verdict in checked.items()))]


def _earlier(rk: RedKey, task: Task) -> list[tuple[str, str]]:
    """Return how the last earlier attempts ended."""
    if task.attempt == 1:
        return []
    failed = [event for event in rk.tasks.events(task.task_id) if event.type == "task.failed"]
    told = []
    for event in failed[-_EARLIER:]:
        then = rk.tasks.get(task.task_id, at_sequence=event.sequence)
        if then.attempt < task.attempt and then.failure is not None:
            why = f"{then.failure.kind}: {then.failure.reason}".removesuffix(": ")
            told.append((f"attempt {then.attempt}", f"{why} ({ago(event.timestamp)})"))
    return told


def _facts(task: Task, slugs: Mapping[str, str]) -> list[tuple[str, Any]]:
    claim, blocker, failure = task.claim, task.blocker, task.failure
    return [
        ("task", task.task_id),
        ("title", task.title),
        ("state", task.state),
        ("progress", _progress(task)),
        ("why", task.cancelled_because),
        ("failure", f"{failure.kind}: {failure.reason}" if failure else ""),
        ("blocker", f"{blocker.blocker_type}: {blocker.reason}" if blocker else ""),
        ("gate", task.gate_id),
        ("note", task.note),
        ("answer", task.answer),
        ("queue", task.queue_id.removeprefix("queue_")),
        ("workflow", f"{task.workflow_id} {task.plan_task_id}" if task.workflow_id else ""),
        ("parent", task.parent_task_id),
        ("references", task.reference_task_ids),
        ("correlation", task.correlation_id),
        ("extensions", task.extensions),
        ("attempt", f"{task.attempt} of {max(task.attempt, task.max_attempts)}"),
        ("priority", task.priority),
        ("roles", [role.removeprefix("role_") for role in task.required_roles]),
        ("capabilities", task.required_capabilities),
        ("description", task.description),
        ("input", task.input),
        ("waits for", task.waits_for),
        ("agent", slugs.get(task.agent_id, task.agent_id)),
        ("claim", claim.claim_id if claim else ""),
        ("lease ends", ago(claim.lease_expires_at) if claim else ""),
        ("artifacts", [f"{one.name} ({one.bytes:,} bytes)" for one in task.artifacts]),
        ("summary", task.summary),
        ("notes", task.notes),
        ("output", task.output),
        ("created", ago(task.created_at)),
        ("ended", ago(task.ended_at)),
        ("took", f"{task.duration_seconds:,} s" if task.duration_seconds is not None else ""),
        ("cost", f"${task.cost_usd:,.6f}" if task.cost_usd else ""),
    ]


def _progress(task: Task) -> str:
    said = task.progress
    return f"{progress_words(said.percent, said.text)} ({ago(said.at)})" if said is not None else ""


@command.command("watch")
@click.argument("task_id", metavar="TASK")
@daily
@click.pass_context
def watch_task(ctx: click.Context, rk: RedKey, task_id: str, as_json: bool) -> None:
    """Follow a task to its end; Ctrl-C stops the watching, not the task.

    Exit code 0: it is completed. 1: it failed or was cancelled.
    """
    task = rk.tasks.get(task_id)
    if on_terminal() and not as_json:
        watch(lambda: _draw(rk, task_id), lambda: _around(rk, task, None))
    else:
        _tell(rk, task, as_json=as_json)
    ended = rk.tasks.get(task_id)
    if not as_json:
        click.echo(f"{task_id} is {styled(ended.state)}" + (f": {shown(ended.summary)}" if ended.summary else ""))
    ctx.exit(0 if ended.state == "completed" else 1)


def _around(rk: RedKey, task: Task, after: int | None) -> Iterator[Event]:
    """Follow the events of the task's run, which include approvals, or else of its queue."""
    if task.workflow_id:
        return rk.workflows.follow(task.workflow_id, after=after)
    return rk.events.follow(queue=task.queue_id, after=after)


def _tell(rk: RedKey, task: Task, *, as_json: bool) -> None:
    """Print every event of the task, one per line, until it is final."""

    def about(event: Event) -> bool:
        return task.task_id in (event.subject.id, event.data.get("taskId"))

    def follow(last: int) -> Iterator[Event]:
        # An approval event may only name its gate.
        return (one for one in _around(rk, task, last) if about(one) or one.type.startswith("gate."))

    def is_over() -> bool:
        return _is_over(rk.tasks.get(task.task_id))

    for event in events_to_end(lambda: rk.tasks.events(task.task_id), follow, is_over):
        if about(event):
            print_followed(rk, event, as_json=as_json)


def _is_over(task: Task) -> bool:
    """Whether the task is final; an approval may still send a completed task back."""
    return task.state in _ENDED and not task.gate_id


def _draw(rk: RedKey, task_id: str) -> tuple[Any, bool]:
    from rich.console import Group
    from rich.text import Text

    task = rk.tasks.get(task_id)
    events = list(rk.tasks.events(task_id, order="desc", limit=8).page().items)[::-1]
    slugs = slugs_of(rk)
    facts = [(name, str(value)) for name, value in _facts(task, slugs) if value and name in _WATCHED]
    happened = [(ago(event.timestamp), event.type, slugs.get(event.actor.id, event.actor.id)) for event in events]
    reasons = [] if _is_over(task) else rk.tasks.explain(task_id).reasons
    waits = [Text("\n  ".join([shown(one.message), *step_lines(step_for(one.next))]), style="dim") for one in reasons]
    return Group(rich_table(("", ""), facts), *waits, rich_table(("WHEN", "EVENT", "BY"), happened)), _is_over(task)


_NOW = ("task", "title", "state", "progress", "agent", "lease ends", "attempt")
_WATCHED = (*_NOW, "failure", "blocker", "gate", "summary")


@command.command()
@click.argument("task_id", metavar="TASK")
@daily
def explain(rk: RedKey, task_id: str, as_json: bool) -> None:
    """Explain why a task is not in progress, and what to do."""
    found = rk.tasks.explain(task_id)
    if as_json:
        print_item(found)
        return
    click.echo(f"{found.task_id} is {styled(found.state)}{_held(rk, task_id) if found.running else ''}")
    for reason in found.reasons:
        click.echo(f"  {shown(reason.message)} [{reason.code}]")
        print_step(step_for(reason.next), indent="    ", err=False)


def _held(rk: RedKey, task_id: str) -> str:
    """Return who holds a task, and for how long."""
    task = rk.tasks.get(task_id)
    ends = f"; its lease ends {ago(task.claim.lease_expires_at)}" if task.claim else ""
    return f" by {slugs_of(rk).get(task.agent_id, task.agent_id)}{ends}" if task.agent_id else ""


_CHANGED = Look(told="{task_id} is {state}")
add_declared(command, "task", {"cancel": _CHANGED, "retry": _CHANGED, "unblock": _CHANGED})
