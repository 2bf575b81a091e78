"""`redkey task result` and `redkey task messages`: the result of a task, and the messages about it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

import click
import msgspec

from redkey.cli.next_step import Step, print_step
from redkey.cli.report import print_json, shown
from redkey.cli.screen import ago, on_terminal, print_list
from redkey.cli.session import daily, ids_option, limit_option, slugs_of

if TYPE_CHECKING:
    from redkey.client import RedKey
    from redkey.shapes.tasks import TaskMessage


@click.command()
@click.argument("task_id", metavar="TASK")
@daily
@click.pass_context
def result(ctx: click.Context, rk: RedKey, task_id: str, as_json: bool) -> None:
    """Print the result of a task: its output as JSON, or else its summary.

    Exit code 0: it is completed. 1: it is not, and standard error shows its state.

    \b
      redkey task result TASK | jq .guest
    """
    found = rk.tasks.get(task_id)
    if found.state not in ("completed", "awaiting_approval"):
        why = f"{found.failure.kind}: {found.failure.reason}" if found.failure else found.cancelled_because
        click.echo(f"redkey: {task_id} is {found.state}" + (f": {shown(why)}" if why else ""), err=True)
        has_ended = found.state in ("failed", "cancelled")
        print_step(Step(f"redkey task show {task_id}") if has_ended else Step(f"redkey task watch {task_id}"))
        ctx.exit(1)
    if as_json:
        print_json({"taskId": found.task_id, "output": found.output, "summary": found.summary})
    elif found.output is not None:
        print_json(found.output)
    else:
        click.echo("\n".join(shown(line) for line in found.summary.splitlines()))
    if found.artifacts and on_terminal():
        print_step(Step(f"redkey artifact list {found.task_id}"))


@click.command()
@click.argument("task_id", metavar="TASK")
@limit_option
@ids_option
@daily
def messages(rk: RedKey, task_id: str, limit: int, ids_only: bool, as_json: bool) -> None:
    """Show the messages about a task, in order."""
    slugs = {} if as_json or ids_only else slugs_of(rk)
    print_list(
        islice(rk.tasks.messages(task_id), limit),
        ("WHEN", "FROM", "MESSAGE"),
        partial(_said, slugs),
        as_json=as_json,
        ids_only=ids_only,
        id_of=lambda message: message.message_id,
        empty="nothing was said about it",
    )


def _said(slugs: Mapping[str, str], message: TaskMessage) -> tuple[str, ...]:
    sender = message.sender.partition(":")[2] or message.sender
    parts = [_part(msgspec.to_builtins(part)) for part in message.parts]
    return ago(message.at), slugs.get(sender, sender), "(erased)" if message.erased else " ".join(parts)


def _part(part: Mapping[str, Any]) -> str:
    """Return one part of a message on one line."""
    if part["kind"] == "text":
        return " ".join(str(part["text"]).split())
    if part["kind"] == "data":
        return json.dumps(part["data"], ensure_ascii=False)
    return str(part.get("artifact_id") or part.get("uri"))
