"""`redkey workflow`: start plans, and follow, pause and end their runs."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from redkey.cli.declared import add_declared
from redkey.cli.live import events_to_end, watch, watch_option
from redkey.cli.look import Look
from redkey.cli.progress import print_followed, title_with_progress
from redkey.cli.provision import with_missing
from redkey.cli.report import shown
from redkey.cli.screen import (
    ago,
    on_terminal,
    print_created,
    print_facts,
    print_item,
    print_list,
    print_table,
    rich_table,
    styled,
)
from redkey.cli.session import daily, ids_option, limit_option, queue_option, recording, slugs_of
from redkey.cli.values import json_file, json_value

if TYPE_CHECKING:
    from redkey.client import RedKey
    from redkey.shapes.workflows import Step, Workflow, WorkflowState

_TITLES = ("WORKFLOW", "STATE", "DONE", "STARTED", "NAME")
_STEPS = ("STEP", "STATE", "TRY", "ROLE", "AGENT", "WAITS FOR", "TITLE")
_LIVE = ("running", "paused")
_STATES = ("live", "ended", *_LIVE, "completed", "failed", "cancelled")
_workflow = click.argument("workflow_id", metavar="WORKFLOW")


@click.group()
def command() -> None:
    """Start plans, and follow, pause and end their runs."""


@command.command()
@click.argument("plan", metavar="PLAN")
@queue_option
@click.option("--input", "given", type=json_value, metavar="JSON", help="The input of the run: JSON, @FILE, or -.")
@click.option("--version", type=int, help="Which version of a definition [the newest].")
@recording
def start(
    rk: RedKey,
    plan: str,
    queue: str,
    given: Any,
    version: int | None,
    extensions: dict[str, Any] | None,
    ids_only: bool,
    as_json: bool,
) -> None:
    """Start PLAN: a plan.json, or the id of a published definition (def_...). The queue is created when it is missing.

    \b
      redkey workflow start plan.json --input '{"guest": "Piers Gorman"}'
    """
    if plan.startswith("def_"):
        asked: dict[str, Any] = {"definition_id": plan, "version": version}
    elif version is not None:
        raise click.UsageError("--version is for definitions; a file is what it is")
    else:
        if plan != "-" and not Path(plan).exists():
            known = "PLAN is a file, or the id of a published definition (def_...)"
            raise click.UsageError(f"{plan} cannot be read: there is no such file. {known}")
        asked = {"plan": json_file(plan)}
    made = with_missing(rk, lambda: rk.workflows.start(queue, input=given, extensions=extensions, **asked), queue=queue)
    for warning in made.validation.warnings if not (ids_only or as_json) else ():
        click.echo(f"note: {shown(warning.message)} [{warning.code}]", err=True)
    step = f"redkey workflow watch {made.workflow_id}"
    print_created(made, made.workflow_id, made.workflow_id, ids_only=ids_only, as_json=as_json, next_step=step)


@command.command("list")
@click.option("--all", "ended", is_flag=True, help="Include runs that have ended.")
@click.option("--state", type=click.Choice(_STATES), help="Only runs in this state [live ones].")
@limit_option
@watch_option
@ids_option
@daily
def list_workflows(rk: RedKey, ended: bool, state: Any, limit: int, live: bool, ids_only: bool, as_json: bool) -> None:
    """List active runs, or the runs in one state."""
    if ended and state:
        raise click.UsageError("--all lists the runs in every state; leave it out to see those in one")
    state = None if ended else state or "live"
    if live:
        watch(
            lambda: (rich_table(_TITLES, [_row(one) for one in islice(rk.workflows.list(state=state), limit)]), False),
            rk.events.follow,
        )
    found = islice(rk.workflows.list(state=state), limit)
    print_list(
        found, _TITLES, _row, as_json=as_json, ids_only=ids_only, empty="no active runs: redkey workflow start PLAN"
    )


def _row(run: Workflow) -> tuple[str, ...]:
    done = f"{run.counts.completed}/{run.counts.total}"
    return run.workflow_id, run.state, done, ago(run.started_at), run.name


@command.command()
@_workflow
@click.option("--at", type=click.IntRange(min=1), metavar="SEQUENCE", help="Show the state at this ledger sequence.")
@daily
def show(rk: RedKey, workflow_id: str, at: int | None, as_json: bool) -> None:
    """Show one run: every task, who has it, and what it waits for."""
    found = rk.workflows.state(workflow_id, at_sequence=at)
    if as_json:
        print_item(found)
        return
    print_facts(
        [
            ("workflow", found.workflow_id),
            ("name", found.name),
            ("state", found.state),
            ("done", f"{found.counts.completed} of {found.counts.total}"),
            ("started", ago(found.started_at)),
            ("ended", ago(found.ended_at)),
            ("critical path", " → ".join(found.critical_path)),
        ]
    )
    click.echo()
    print_table(_STEPS, _steps(found, slugs_of(rk)))


def _steps(state: WorkflowState, slugs: Mapping[str, str]) -> list[tuple[str, ...]]:
    return [_step(slugs, one) for one in state.tasks]


def _step(slugs: Mapping[str, str], step: Step) -> tuple[str, ...]:
    agent = step.claim.agent_id if step.claim else step.completed_by
    waits = ", ".join(step.blocked_by) or step.waits_because
    if step.gate is not None and step.gate.state == "open":
        waits = f"approval: {step.gate.gate_id}"
    tries, role = f"{step.attempt}/{step.max_attempts}", step.role.removeprefix("role_")
    title = title_with_progress(step.title, step.state, step.progress)
    return step.plan_task_id, step.state, tries, role, slugs.get(agent, agent), waits, title


@command.command("watch")
@_workflow
@daily
@click.pass_context
def watch_workflow(ctx: click.Context, rk: RedKey, workflow_id: str, as_json: bool) -> None:
    """Follow a run to its end; Ctrl-C stops the watching, not the run.

    Exit code 0: it is completed. 1: it failed or was cancelled.
    """
    if on_terminal() and not as_json:
        slugs = slugs_of(rk)
        watch(lambda: _draw(rk.workflows.state(workflow_id), slugs), lambda: rk.workflows.follow(workflow_id))
    else:
        _tell(rk, workflow_id, as_json=as_json)
    ended = rk.workflows.get(workflow_id)
    if not as_json:
        click.echo(f"{workflow_id} is {styled(ended.state)}")
    ctx.exit(0 if ended.state == "completed" else 1)


def _draw(state: WorkflowState, slugs: Mapping[str, str]) -> tuple[Any, bool]:
    from rich.console import Group
    from rich.text import Text

    head = Text(f"{shown(state.name)}  {state.counts.completed} of {state.counts.total} done\n", style="bold")
    return Group(head, rich_table(_STEPS, _steps(state, slugs))), state.state not in _LIVE


def _tell(rk: RedKey, workflow_id: str, *, as_json: bool) -> None:
    """Print every event of the run, one per line, until it is final."""
    events = events_to_end(
        lambda: rk.ledger.query(workflow_id=workflow_id),
        lambda last: rk.workflows.follow(workflow_id, after=last),
        lambda: rk.workflows.get(workflow_id).state not in _LIVE,
        lambda event: event.type.startswith("workflow."),
    )
    for event in events:
        print_followed(rk, event, as_json=as_json)


@command.command()
@_workflow
@daily
def graph(rk: RedKey, workflow_id: str, as_json: bool) -> None:
    """Show a run as a Mermaid diagram, or as nodes and edges with --json."""
    if as_json:
        print_item(rk.workflows.graph(workflow_id))
    else:
        for line in rk.workflows.mermaid(workflow_id).splitlines():
            click.echo(shown(line))


_CHANGED = Look(told="{workflow_id} is {state}")
add_declared(command, "workflow", {"pause": _CHANGED, "resume": _CHANGED, "cancel": _CHANGED})
