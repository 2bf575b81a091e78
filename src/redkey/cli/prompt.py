"""`redkey prompt`: the exact prompt that an agent would get."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from redkey.cli.run import with_memory_options
from redkey.cli.screen import print_item
from redkey.cli.session import daily

if TYPE_CHECKING:
    from redkey.client import RedKey


@click.group()
def command() -> None:
    """Show the prompts of agents."""


@command.command()
@click.option("--card", type=click.Path(exists=True, dir_okay=False), help="The Agent Card.")
@click.option("--persona", type=click.Path(exists=True, dir_okay=False), help="Prose instead of a card; needs --name.")
@click.option("--name", metavar="SLUG", help="Another slug than the card's.")
@click.option("--task", "task_id", required=True, metavar="TASK", help="The task.")
@click.option("--skill", "skills", multiple=True, metavar="NAME", help="A skill of its own; may be repeated.")
@click.option(
    "--skills", "skills_dirs", multiple=True, type=click.Path(exists=True, file_okay=False), help="Where skills are."
)
@click.option("--work", type=click.Path(file_okay=False), help="The runner's directory, whose memories count.")
@with_memory_options
@click.option("--budget", "budget_tokens", type=click.IntRange(1), help="Tokens that the prompt may take.")
@daily
def show(rk: RedKey, task_id: str, as_json: bool, **options: Any) -> None:
    """Print the prompt that an agent would get for a task, with its skills, memories and unread messages."""
    from redkey.runner.preview import preview
    from redkey.runner.spec import read_spec

    given = {name: value for name, value in options.items() if value not in (None, ())}
    prompt = preview(rk, read_spec({"queue": "preview", "exec": "true", **given}), task_id)
    if as_json:
        print_item(prompt)
        return
    click.echo(prompt.text, nl=False)
    for what in prompt.dropped:
        click.echo(f"left out for the budget: {what}", err=True)
