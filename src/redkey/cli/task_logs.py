"""`redkey task logs`: what a runner on this machine stored about attempts that failed or were blocked."""

from __future__ import annotations

from pathlib import Path

import click

from redkey.cli.report import print_json, shown
from redkey.cli.session import json_option

_SHOWN = ("stdout", "stderr", "output.json", "transcript.jsonl")
_CHARACTERS = 10_000


@click.command()
@click.argument("task_id", metavar="TASK")
@click.option(
    "--work",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(".redkey/runner"),
    show_default=True,
    help="The runner's directory.",
)
@json_option
def logs(task_id: str, work: Path, as_json: bool) -> None:
    """Show what the agent was given and said in attempts that failed or were blocked.

    Logs are on the machine of the runner, for some days (`redkey run --keep-days`). With --json: where they are.
    """
    from msgspec import to_builtins

    from redkey.runner.logs import Logs

    logged = Logs(work).tasks(task_id)
    if len(logged) > 1:
        raise click.UsageError(f"{shown(task_id)} is the beginning of several ids: {', '.join(logged)}")
    found = [one for name in logged for one in Logs(work).of(name)]
    if not found:
        raise click.ClickException(f"no logs of {shown(task_id)} in {work}; give the runner's directory with --work")
    for end, directory in found:
        if as_json:
            print_json({**to_builtins(end), "directory": str(directory)})
            continue
        click.echo(f"attempt {end.attempt} by {shown(end.agent)} {end.event} at {end.at}: {shown(end.reason)}")
        for attempt in sorted(directory.glob("try-*"), key=lambda path: int(path.name[4:])):
            for name in _SHOWN:
                path = attempt / name
                if path.is_file() and path.stat().st_size:
                    click.echo(f"--- {path}")
                    text = path.read_bytes()[-_CHARACTERS:].decode("utf-8", "replace")
                    click.echo("\n".join(shown(line) for line in text.splitlines()))
        for path in sorted((directory / "files").rglob("*")):
            if path.is_file():
                click.echo(f"file {shown(str(path))}")
        if (directory / "changes.patch").is_file():
            click.echo(f"changes {directory / 'changes.patch'}")
