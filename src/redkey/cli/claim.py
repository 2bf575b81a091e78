"""`redkey claim`: do by hand, or in a shell script, what agents do.

If there is no task to claim, the exit code is 1, so that scripts can branch on it.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from redkey.cli.declared import add_declared
from redkey.cli.look import Look
from redkey.cli.next_step import Step, print_step, step_for
from redkey.cli.report import shown
from redkey.cli.screen import ago, print_done, print_facts, print_item, wrapped
from redkey.cli.session import agent_id_of, agent_option, daily, queue_option, recording, slugs_of
from redkey.cli.values import extensions_option, json_value

if TYPE_CHECKING:
    from redkey.client import RedKey

_lease_option = click.option("--lease", "lease_seconds", type=int, metavar="SECONDS", help="How long the claim lasts.")
_claim = click.argument("claim_id", metavar="CLAIM")


@click.group()
def command() -> None:
    """Claim tasks and report on them, as an agent does."""


@command.command("next")
@agent_option
@queue_option
@click.option("--wait", type=click.FloatRange(0, 60), default=0.0, metavar="SECONDS", help="Wait for a task.")
@_lease_option
@recording
@click.pass_context
def next_claim(
    ctx: click.Context, /, rk: RedKey, agent: str, queue: str, ids_only: bool, as_json: bool, **asked: Any
) -> None:
    """Claim the next task of a queue that the agent may claim. Exit code 1: there was none.

    \b
      redkey claim next --agent atlas --wait 20
      CLAIM=$(redkey claim next --agent atlas --quiet) && redkey claim start $CLAIM
    """
    found = rk.queues.claim_next(queue, agent_id_of(rk, agent), **asked)
    _say(ctx, rk, found, ids_only, as_json)


@command.command()
@click.argument("task_id", metavar="TASK")
@agent_option
@_lease_option
@recording
@click.pass_context
def take(
    ctx: click.Context, /, rk: RedKey, task_id: str, agent: str, ids_only: bool, as_json: bool, **asked: Any
) -> None:
    """Claim this TASK. Exit code 1: another agent was first, or the agent is not allowed to."""
    _say(ctx, rk, rk.tasks.claim(task_id, agent_id_of(rk, agent), with_task=True, **asked), ids_only, as_json)


def _say(ctx: click.Context, rk: RedKey, found: Any, ids_only: bool, as_json: bool) -> None:
    if as_json:
        print_item(found)
        ctx.exit(0 if found.status == "claimed" else 1)
    if found.status == "claimed" and ids_only:
        click.echo(found.claim_id)
        return
    if found.status == "claimed":
        task = found.task
        print_facts(
            [
                ("claim", found.claim_id),
                ("task", found.task_id),
                ("title", task.title if task else ""),
                ("input", task.input if task else None),
                ("criteria", task.completion_criteria if task else ()),
                ("outputs", task.outputs if task else ()),
                ("note", task.note if task else ""),
                ("lease ends", ago(found.lease_expires_at)),
            ]
        )
        return
    step = step_for(found.next, found.agent_id)
    queue = found.next.queue_id.removeprefix("queue_")
    if found.status == "missed":
        holder = rk.tasks.get(found.task_id).claim
        left = f"; its lease ends {ago(holder.lease_expires_at)}" if holder is not None else ""
        why = f"missed: {slugs_of(rk).get(found.winning_agent_id, found.winning_agent_id)} was first{left}"
    elif found.status == "rejected":
        detail = found.detail.removeprefix("role_")
        why = f"rejected: {found.reason.replace('_', ' ')}" + (f": {detail}" if detail else "") + f" [{found.reason}]"
    else:
        why = f"no task in the queue {queue} that the agent may claim"
    if found.status != "missed" and queue and rk.queues.get(queue).paused:
        why, step = f"{why}; the queue {queue} is paused", Step(f"redkey queue resume {queue}")
    click.echo(wrapped(f"redkey: {shown(why)}", 2, sys.stderr), err=True)
    print_step(step)
    ctx.exit(1)


@command.command()
@_claim
@extensions_option
@daily
@click.pass_context
def heartbeat(ctx: click.Context, rk: RedKey, claim_id: str, extensions: dict[str, Any] | None, as_json: bool) -> None:
    """Extend the lease. Exit code 1: the claim is lost, or the task was cancelled."""
    found = rk.claims.heartbeat(claim_id, extensions=extensions)
    print_done(
        found,
        found.state + (f", lease ends {ago(found.lease_expires_at)}" if found.lease_expires_at else ""),
        as_json=as_json,
    )
    ctx.exit(0 if found.state == "held" else 1)


@command.command()
@_claim
@click.option("--summary", help="What was done, in a sentence.")
@click.option("--output", type=json_value, metavar="JSON", help="The result: JSON, @FILE, or - for stdin.")
@click.option(
    "--artifact", "artifacts", multiple=True, metavar="NAME=FILE", help="Add this file as the artifact NAME; repeat."
)
@extensions_option
@daily
def complete(
    rk: RedKey,
    claim_id: str,
    summary: str | None,
    output: Any,
    artifacts: tuple[str, ...],
    extensions: dict[str, Any] | None,
    as_json: bool,
) -> None:
    """Complete the task, with its result and artifacts.

    \b
      redkey claim complete CLAIM --summary "Five facts found" --artifact research_packet=facts.md
    """
    added = [_add(rk, claim_id, text) for text in artifacts]
    told: Any = {"output": output, "summary": summary, "artifact_ids": added or None, "extensions": extensions}
    _done(rk.claims.complete(claim_id, **told), as_json)


def _add(rk: RedKey, claim_id: str, text: str) -> str:
    name, separator, path = text.partition("=")
    if not separator or not Path(path).is_file():
        raise click.BadParameter(f"{text} is not NAME=FILE with a file that is there", param_hint="--artifact")
    kept = rk.content.put(Path(path))
    return rk.claims.add_artifact(claim_id, name, sha256=kept.sha256).artifact_id


def _done(found: Any, as_json: bool) -> None:
    print_done(found, f"{found.task_id} {found.status}", as_json=as_json)


_DONE = Look(told="{task_id} {status}")
add_declared(
    command,
    "claim",
    {
        "start": _DONE,
        "release": _DONE,
        "fail": Look(told="{task_id} {status}", options={"claim_next": ""}),
        "block": Look(
            told="{task_id} {status}", options={"blocker_type": "--type", "suggested_resolution": "--suggestion"}
        ),
    },
)
