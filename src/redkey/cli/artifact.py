"""`redkey artifact`: the artifacts of tasks."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from redkey.cli.screen import on_terminal, print_list
from redkey.cli.session import connected, daily, ids_option
from redkey.errors import NotFound

if TYPE_CHECKING:
    from redkey.client import RedKey
    from redkey.shapes.tasks import Artifact, Task

_TITLES = ("NAME", "VERSION", "STATE", "BYTES", "TYPE", "ARTIFACT")


@click.group()
def command() -> None:
    """List and get the artifacts of tasks."""


@command.command("list")
@click.argument("task_id", metavar="TASK")
@ids_option
@daily
def list_artifacts(rk: RedKey, task_id: str, ids_only: bool, as_json: bool) -> None:
    """List the artifacts of a task's current attempt; -q prints their names, as `artifact get` takes them.

    \b
      redkey artifact list TASK
      redkey artifact get TASK script > script.md
    """
    found = rk.tasks.get(task_id).artifacts
    print_list(found, _TITLES, _row, as_json=as_json, ids_only=ids_only, empty="the task has no artifacts")


def _row(one: Artifact) -> tuple[str, ...]:
    state = "erased" if one.erased else one.readiness
    return one.name, str(one.version), state, f"{one.bytes:,}", one.media_type, one.artifact_id


@command.command()
@click.argument("task_id", metavar="TASK")
@click.argument("name", required=False)
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="Write it to this file [stdout].")
@connected
def get(rk: RedKey, task_id: str, name: str | None, output: Path | None) -> None:
    """Get an artifact of a task: its bytes, to standard output or a file. NAME is needed where there are several.

    The bytes are checked against the hash in the ledger; a file is only created when it is complete.

    \b
      redkey artifact get TASK
      redkey artifact get TASK script -o script.md
    """
    found = _chosen(rk.tasks.get(task_id), name)
    if found.uri and not found.sha256:
        raise click.UsageError(f"{found.name} is kept elsewhere: {found.uri}")
    if output is None:
        if on_terminal() and not found.media_type.startswith(("text/", "application/json")):
            raise click.UsageError(f"{found.name} is {found.media_type or 'binary'}; write it to a file with -o FILE")
        for piece in rk.content.pieces(found.sha256):
            sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()
        return
    draft = output.with_name(f".{output.name}.part")
    try:
        with draft.open("wb") as file:
            for piece in rk.content.pieces(found.sha256):
                file.write(piece)
        draft.replace(output)
    except OSError as cause:
        raise click.UsageError(f"{output} cannot be written: {cause.strerror}") from cause
    finally:
        draft.unlink(missing_ok=True)
    click.echo(f"{output}: {found.bytes:,} bytes", err=True)


def _chosen(task: Task, name: str | None) -> Artifact:
    names = ", ".join(sorted({one.name for one in task.artifacts}))
    if not task.artifacts:
        raise NotFound(404, "artifact_not_found", f"{task.task_id} has no artifacts; it is {task.state}")
    matching = [one for one in task.artifacts if name is None or name in (one.name, one.artifact_id)]
    if not matching:
        raise NotFound(404, "artifact_not_found", f"{task.task_id} has no artifact {name}; it has: {names}")
    if name is None and len({one.name for one in matching}) > 1:
        raise click.UsageError(f"{task.task_id} has several artifacts; name one: {names}")
    found = max(matching, key=lambda one: one.version)
    if found.erased:
        raise click.UsageError(f"{found.name} was erased: the ledger has its hash, and nothing has its bytes")
    return found
